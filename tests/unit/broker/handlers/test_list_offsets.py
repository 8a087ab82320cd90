"""ListOffsets: times out of order, epochs, open transactions, other replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.partitions.role import Follower, Leader
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.in_process import START_MS, batch_of
from tests.support.record_requests import produce
from tests.unit.broker.partitions.conftest import Claim

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition
    from tests.support.in_process import InProcessBroker, RawClient

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
VERSIONS = range(1, 12)


def asking(
    timestamp: int,
    *,
    topic: str = "t",
    index: int = 0,
    isolation_level: int = 0,
    leader_epoch: int = -1,
    max_num_offsets: int = 1,
    replica_id: int = -1,
) -> ListOffsetsRequest:
    part = ListOffsetsPartition(
        partition_index=index,
        timestamp=timestamp,
        current_leader_epoch=leader_epoch,
        max_num_offsets=max_num_offsets,
    )
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[part])],
    )


async def ask(client: RawClient, timestamp: int, version: int, **more: Any) -> Any:
    answer = await client.call(asking(timestamp, **more), version)
    return answer.topics[0].partitions[0]


async def time_and_offset(
    client: RawClient, timestamp: int, version: int, **more: Any
) -> tuple[int, int]:
    """Timestamp and offset."""
    part = await ask(client, timestamp, version, **more)
    assert part.error_code == 0, ErrorCode(part.error_code).name
    return part.timestamp, part.offset


async def fill(client: RawClient, *times: int, codec: str = "none", topic: str = "t") -> None:
    """One batch with a record for each time."""
    records = [Record(i, START_MS + time, None, b"%d" % time, ()) for i, time in enumerate(times)]
    request = produce(build_batch(records, codec=codec), topic=topic)
    (answer,) = (await client.call(request, 9)).responses
    assert answer.partition_responses[0].error_code == 0


@pytest.mark.parametrize("codec", ["none", "zstd"])
async def test_times_out_of_order_lose_no_record(client: RawClient, codec: str) -> None:
    await fill(client, 50, 10, 70, codec=codec)
    await fill(client, 20, 60, codec=codec)
    assert await time_and_offset(client, START_MS + 15, 7) == (START_MS + 50, 0)
    assert await time_and_offset(client, START_MS + 55, 7) == (START_MS + 70, 2)
    assert await time_and_offset(client, START_MS + 71, 7) == (-1, -1)


async def test_read_committed_ends_at_the_open_transaction(
    running: InProcessBroker, client: RawClient
) -> None:
    await fill(client, 0)
    batch = batch_of(b"b", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    running.partitions.get("t", 0).append(memoryview(batch), -1, START_MS, Claim())
    running.partitions.commit()
    assert await time_and_offset(client, LATEST, 2) == (-1, 2)
    assert await time_and_offset(client, LATEST, 2, isolation_level=1) == (-1, 1)


# A new leader (KIP-207), other replicas.


def begin_epoch_behind(running: InProcessBroker, *, follower: int = 9) -> Partition:
    """Let the broker lead `t`-0 in a new epoch, with a follower in sync; the last record is not
    committed as far as it knows.
    """
    partition = running.partitions.get("t", 0)
    committed = partition.high_watermark
    role = partition.role
    assert isinstance(role, Leader)
    both = [0, follower]
    partition.take_role(
        Leader(role.epoch, role.partition_epoch, role.start_offset, both, both),
        running.partitions.replica_rules,
    )
    partition.append(memoryview(batch_of(b"not on both")), 1, START_MS + 99, Claim())
    running.partitions.commit()
    partition.take_role(
        Leader(role.epoch + 1, role.partition_epoch, partition.log_end_offset, both, both),
        running.partitions.replica_rules,
    )
    assert (partition.high_watermark, partition.log_end_offset) == (committed, committed + 1)
    return partition


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_end_is_not_available_below_the_start_of_an_epoch(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    await fill(client, 0, 10)
    partition = begin_epoch_behind(running)
    refused = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    for timestamp in (LATEST, START_MS + 11):
        part = await ask(client, timestamp, version)
        assert (part.error_code, part.timestamp, part.offset) == (refused, -1, -1)
    assert await time_and_offset(client, EARLIEST, version) == (-1, 0)
    assert await time_and_offset(client, START_MS + 5, version) == (START_MS + 10, 1)
    assert await time_and_offset(client, LATEST, version, replica_id=9) == (-1, 3)
    if version >= 9:
        assert await time_and_offset(client, -5, version) == (-1, -1)

    partition.follower_fetched(FollowerId(9, -1), 3, 0)
    assert await time_and_offset(client, LATEST, version) == (-1, 3)


async def test_version_0_gives_the_high_watermark_of_a_new_leader(
    running: InProcessBroker, client: RawClient
) -> None:
    await fill(client, 0, 10)
    begin_epoch_behind(running)
    part = await ask(client, LATEST, 0, max_num_offsets=10)
    assert (part.error_code, list(part.old_style_offsets)) == (0, [2, 0])


async def test_a_follower_answers_a_debugger_only(
    running: InProcessBroker, client: RawClient
) -> None:
    await fill(client, 0, 10)
    partition = running.partitions.get("t", 0)
    partition.take_role(Follower(1, -1, 9))
    for version in (0, 5):
        part = await ask(client, LATEST, version)
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await time_and_offset(client, LATEST, 5, replica_id=-2) == (-1, 2)
    assert list((await ask(client, LATEST, 0, replica_id=-2)).old_style_offsets) == [2]
    part = await ask(client, LATEST, 5, replica_id=-2, leader_epoch=0)
    assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH


# Version 0.
