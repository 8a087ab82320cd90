"""The leader sends a consumer to a follower in the consumer's rack (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster.image import BrokerInfo, Endpoint
from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.partitions.role import Leader
from tests.support.in_process import START_MS, batch_of
from tests.support.record_requests import asking, fill, first, part, parts_of_answer
from tests.unit.broker.partitions.conftest import Claim

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition
    from minibroker.kafka.protocol.messages.fetch import FetchPartition
    from tests.support.in_process import InProcessBroker, ManualClock, RawClient

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
READ_HERE = -1


@pytest.fixture
def settings() -> dict[str, str]:
    return {"broker.rack": "here", "replica.selector.class": SELECTOR}


@pytest.fixture
async def partition(running: InProcessBroker, client: RawClient) -> Partition:
    """Return `t`-0 with three records, led here; followers 7 and 8 are in rack `there`."""
    await fill(client, b"a", b"b", b"c")
    led = running.partitions.get("t", 0)
    lead(running, led, isr=[0, 7, 8])
    for broker_id in (7, 8):
        register(running, broker_id)
        led.follower_fetched(FollowerId(broker_id, -1), 3, 0)
    return led


def register(running: InProcessBroker, broker_id: int, listener: str = "PLAINTEXT") -> None:
    brokers = running.broker.cluster.image.brokers
    endpoint = Endpoint(listener, "127.0.0.1", 9)
    brokers[broker_id] = BrokerInfo(broker_id, (endpoint,), rack="there")


def lead(running: InProcessBroker, partition: Partition, *, isr: list[int]) -> None:
    role = partition.role
    assert isinstance(role, Leader)
    partition.take_role(
        role._replace(replicas=[0, 7, 8], metadata_isr=isr), running.partitions.replica_rules
    )


async def fetch(
    client: RawClient, *parts: FetchPartition, rack: str = "there", version: int = 11, **more: Any
) -> Any:
    request = asking(*parts, **more)
    request.rack_id = rack
    return await client.call(request, version)


async def preferred(client: RawClient, *, offset: int = 0, rack: str = "there") -> int:
    """Return the replica that a consumer at `offset` is sent to."""
    answer = first(await fetch(client, part(offset=offset), rack=rack))
    assert answer.error_code == 0
    assert bool(answer.records) == (answer.preferred_read_replica == READ_HERE and offset < 3)
    chosen: int = answer.preferred_read_replica
    return chosen


async def test_the_answer_names_the_replica_and_has_no_records(
    partition: Partition, client: RawClient
) -> None:
    answer = first(await fetch(client, part(), max_wait_ms=600_000, min_bytes=1 << 20))
    assert (answer.error_code, answer.preferred_read_replica) == (0, 8)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (3, 3, 0)
    assert not answer.records
    assert answer.aborted_transactions is None


async def test_only_consumers_with_a_foreign_rack_are_sent_away(
    partition: Partition, client: RawClient
) -> None:
    assert await preferred(client, rack="there") == 8
    for rack in ("here", "nowhere", ""):
        assert await preferred(client, rack=rack) == READ_HERE
    assert parts_of_answer(await fetch(client, part(), version=10))[0][2] > 0


async def test_a_follower_has_to_be_in_sync_and_to_have_the_offset(
    running: InProcessBroker, partition: Partition, client: RawClient
) -> None:
    lead(running, partition, isr=[0, 7])
    assert await preferred(client, offset=3) == 7
    partition.append(memoryview(batch_of(b"d")), 1, START_MS, Claim())
    running.partitions.commit()
    assert await preferred(client, offset=4) == READ_HERE
    partition.follower_fetched(FollowerId(7, -1), 4, 2)
    assert await preferred(client, offset=4) == 7
    assert await preferred(client, offset=1) == READ_HERE


async def test_a_follower_has_to_be_reached_by_the_clients_listener(
    running: InProcessBroker, partition: Partition, client: RawClient
) -> None:
    register(running, 8, listener="INTERNAL")
    assert await preferred(client) == 7
    del running.broker.cluster.image.brokers[7]
    assert await preferred(client) == READ_HERE


async def test_the_most_advanced_then_the_latest_caught_up_is_preferred(
    running: InProcessBroker, partition: Partition, client: RawClient, clock: ManualClock
) -> None:
    clock.advance(10)
    partition.follower_fetched(FollowerId(7, -1), 3, 0)
    assert await preferred(client) == 7
    partition.append(memoryview(batch_of(b"d")), 1, START_MS, Claim())
    running.partitions.commit()
    partition.follower_fetched(FollowerId(8, -1), 4, 0)
    clock.advance(10)
    partition.follower_fetched(FollowerId(7, -1), 3, 0)
    assert await preferred(client) == 8


async def test_a_session_tells_it_once_a_follower_has_caught_up(
    running: InProcessBroker, partition: Partition, client: RawClient
) -> None:
    partition.append(memoryview(batch_of(b"d")), 1, START_MS, Claim())
    running.partitions.commit()
    for broker_id in (7, 8):
        partition.follower_fetched(FollowerId(broker_id, -1), 3, 0)
    first_answer = await fetch(client, part(offset=4), session=(0, 0))
    assert first(first_answer).preferred_read_replica == READ_HERE
    assert parts_of_answer(await fetch(client, session=(first_answer.session_id, 1))) == {}
    partition.follower_fetched(FollowerId(7, -1), 4, 0)
    for epoch in (2, 3):  # as often as the consumer asks here
        answer = await fetch(client, session=(first_answer.session_id, epoch))
        assert first(answer).preferred_read_replica == 7


class TestWithoutSelector:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"broker.rack": "here"}

    async def test_every_consumer_reads_from_the_leader(
        self, partition: Partition, client: RawClient
    ) -> None:
        assert await preferred(client) == READ_HERE
