"""DeleteRecords: files that go, followers that are waited for. Starts: tests/compat."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster.image import BrokerInfo
from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.partitions.role import Follower, Leader, OfflineReason, go_offline
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.record_requests import fill
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition
    from tests.support.in_process import InProcessBroker, ManualClock, RawClient

CHECK_MS = 1_000
DELAY_MS = 5_000
LATER_MS = 600_000
FOLLOWER = 9


@pytest.fixture
def settings() -> dict[str, str]:
    return {
        "log.retention.check.interval.ms": str(CHECK_MS),
        "log.initial.task.delay.ms": str(CHECK_MS),
        "log.segment.delete.delay.ms": str(DELAY_MS),
    }


def request_for(offsets: dict[int, int], name: str = "t") -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in offsets.items()
                ],
            )
        ],
        timeout_ms=1000,
    )


async def delete(
    client: RawClient, offset: int, version: int = 2, *, name: str = "t", index: int = 0
) -> Any:
    answer = await client.call(request_for({index: offset}, name), version)
    return answer.topics[0].partitions[0]


async def test_the_files_below_it_go_with_the_next_check_and_after_the_delay(
    running: InProcessBroker, client: RawClient, clock: ManualClock
) -> None:
    log = running.partitions.get("t", 0).log
    for _ in range(5):
        await fill(client, b"x")
        log.roll()
    assert (await delete(client, 4)).low_watermark == 4
    old = [Path(segment.log_path) for segment in list(log.segments)[:4]]
    deleted = [path.with_suffix(".log.deleted") for path in old]
    assert all(path.exists() for path in old)
    clock.advance(CHECK_MS)
    assert log.segments.base_offsets == [4, 5]
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in deleted)
    clock.advance(DELAY_MS)
    running.broker.workers.close()  # what it was asked to do is done then
    assert not any(path.exists() for path in deleted)


@pytest.fixture
async def led(running: InProcessBroker, client: RawClient) -> Partition:
    """Return `t`-0 with three records; broker 9 has fetched them all."""
    await fill(client, b"a", b"b", b"c")
    partition = running.partitions.get("t", 0)
    rules = running.partitions.replica_rules._replace(
        brokers=lambda: {FOLLOWER: BrokerInfo(FOLLOWER, ())}
    )
    both = [rules.broker_id, FOLLOWER]
    role = partition.role
    assert isinstance(role, Leader)
    partition.take_role(role._replace(replicas=both, metadata_isr=both), rules)
    partition.follower_fetched(FollowerId(FOLLOWER, -1), 3, 0)
    return partition


async def deleting(client: RawClient, led: Partition, timeout_ms: int = LATER_MS) -> Any:
    """Ask to delete two records; return the task of the answer, which waits for the follower."""
    request = request_for({0: 2})
    request.timeout_ms = timeout_ms
    task = asyncio.ensure_future(client.call(request, 2))
    await eventually(lambda: led.log_start_offset == 2)
    return task


def outcome(answer: Any) -> tuple[int, int]:
    result = answer.topics[0].partitions[0]
    return result.error_code, result.low_watermark


async def test_the_answer_waits_until_the_follower_has_deleted(
    client: RawClient, led: Partition
) -> None:
    task = await deleting(client, led)
    assert led.replicas is not None
    led.follower_fetched(FollowerId(FOLLOWER, -1), 3, 1)
    assert len(led.replicas.deletions) == 1
    led.follower_fetched(FollowerId(FOLLOWER, -1), 3, 2)
    assert outcome(await task) == (0, 2)


async def test_a_wait_for_followers_takes_no_place_of_a_task(
    running: InProcessBroker, client: RawClient, led: Partition
) -> None:
    task = await deleting(client, led)
    await eventually(lambda: running.server.connections._tasks_running == 0)
    assert not task.done()
    led.follower_fetched(FollowerId(FOLLOWER, -1), 3, 2)
    await task


async def test_a_follower_that_takes_too_long_is_a_time_out(
    client: RawClient, led: Partition
) -> None:
    task = await deleting(client, led, timeout_ms=1)
    assert outcome(await task) == (ErrorCode.REQUEST_TIMED_OUT, 0)


async def test_the_answer_says_that_another_broker_leads_meanwhile(
    client: RawClient, led: Partition
) -> None:
    task = await deleting(client, led)
    led.take_role(Follower(1, -1, FOLLOWER))
    assert outcome(await task) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_the_answer_says_that_the_topic_is_deleted_meanwhile(
    running: InProcessBroker, client: RawClient, led: Partition
) -> None:
    task = await deleting(client, led)
    await running.broker.cluster.delete_topic("t")
    assert outcome(await task) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


async def test_the_answer_says_that_the_directory_failed_meanwhile(
    client: RawClient, led: Partition
) -> None:
    task = await deleting(client, led)
    led.take_role(go_offline(led.role, OfflineReason.DIRECTORY_FAILED))
    assert outcome(await task) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
