"""Throttled connections as a peer on a socket sees them, with timers that the test ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers import create_topics
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import InProcessBroker, ManualClock, RawClient, batch_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

VALUE = b"x" * 10_000


class KeptTimers:
    """Stands in for the broker's timers: keeps what is asked for until the test ends it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def after(self, delay_ms: float, callback: Callable[[], None]) -> Any:
        entry = (delay_ms, callback)
        self.waiting.append(entry)
        timers = self

        class Handle:
            def cancel(self) -> None:
                timers.waiting.remove(entry)
                timers.cancelled += 1

        return Handle()

    def end(self) -> float:
        """End the only wait; how long it was to be, in ms."""
        ((delay_ms, callback),) = self.waiting
        self.waiting.clear()
        callback()
        return delay_ms


class Throttling:
    """A broker whose clock stands still, with a topic and a client that may have limits."""

    def __init__(self, running: InProcessBroker, clock: ManualClock, timers: KeptTimers) -> None:
        self.running = running
        self.clock = clock
        self.timers = timers

    async def limit(self, **values: float | None) -> None:
        """Alter the quotas of client id `raw` over the wire, as another client."""
        async with await self.running.connect("admin") as admin:
            answer = await admin.call(
                AlterClientQuotasRequest(
                    entries=[
                        RequestEntryData(
                            entity=[EntityData(entity_type="client-id", entity_name="raw")],
                            ops=[
                                OpData(key=key, value=value or 0.0, remove=value is None)
                                for key, value in values.items()
                            ],
                        )
                    ]
                ),
                1,
            )
        assert answer.entries[0].error_code == 0, answer.entries[0].error_message


@pytest.fixture
async def throttling(tmp_path: Path) -> AsyncIterator[Throttling]:
    clock = ManualClock()
    async with InProcessBroker(tmp_path, clock=clock) as running:
        await running.create_topic("t")
        timers = KeptTimers()
        running.broker.services.timers = timers  # type: ignore[assignment]
        yield Throttling(running, clock, timers)


def produce(acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch_of(VALUE))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )


def fetch(**session: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1_000_000,
        topics=[FetchTopic(topic="t", partitions=[part])],
        **({"session_epoch": -1} | session),
    )


async def is_unread(client: RawClient, throttling: Throttling, version: int = 3) -> float:
    """Check that a request stays unanswered until the timer ends; ms that it was set to."""
    client.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version)
    waiting = asyncio.ensure_future(client.receive())
    async with await throttling.running.connect("other") as other:
        await other.call(
            ApiVersionsRequest(client_software_name="t", client_software_version="1"), version
        )
    assert not waiting.done()
    delay_ms = throttling.timers.end()
    await waiting
    return delay_ms


async def test_a_moved_clock_ends_a_throttle(tmp_path: Path) -> None:
    clock = ManualClock()
    async with InProcessBroker(tmp_path, clock=clock) as running:
        await running.create_topic("t")
        throttling = Throttling(running, clock, KeptTimers())
        await throttling.limit(producer_byte_rate=1000)
        async with await running.connect() as client:
            delay_ms = (await client.call(produce(), 9)).throttle_time_ms
            assert delay_ms > 0
            (connection,) = [
                connection
                for connection in running.server.connections
                if not connection._transport.is_reading()
            ]
            clock.advance(delay_ms - 1)
            assert not connection._transport.is_reading()
            clock.advance(1)
            assert connection._transport.is_reading()
            assert (await client.call(produce(), 9)).throttle_time_ms > 0


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
async def test_produce_is_answered_at_once_and_then_not_read(
    throttling: Throttling, version: int
) -> None:
    await throttling.limit(producer_byte_rate=1000)
    async with await throttling.running.connect() as client:
        first = await client.call(produce(), version)
        # 10 KB in ten windows are 1000 a second; the header and the batch's own bytes are over.
        assert 0 < first.throttle_time_ms < 300
        assert first.responses[0].partition_responses[0].base_offset == 0
        assert await is_unread(client, throttling) == first.throttle_time_ms
        second = await client.call(produce(), version)
        assert 10_000 < second.throttle_time_ms < 10_600
        throttling.timers.end()


async def test_a_fast_answer_with_a_delay_is_the_general_one(throttling: Throttling) -> None:
    await throttling.limit(producer_byte_rate=1000)
    async with await throttling.running.connect() as client:
        answer = await client.call(produce(), 9)
        throttling.timers.end()
        part = answer.responses[0].partition_responses[0]
        assert (part.error_code, part.log_start_offset, part.error_message) == (0, 0, None)


async def test_acks_0_is_held_back_too(throttling: Throttling) -> None:
    await throttling.limit(producer_byte_rate=1000, request_percentage=0.000001)
    async with await throttling.running.connect() as client:
        client.send(produce(acks=0), 9)
        client._unanswered.clear()
        assert 0 < await is_unread(client, throttling) < 300
        throttling.timers.end()  # the request that waited went over request_percentage


async def test_versions_without_the_field_wait_as_long(throttling: Throttling) -> None:
    await throttling.limit(request_percentage=0.000001)
    async with await throttling.running.connect() as client:
        answer = await client.call(ApiVersionsRequest(), 0)
        assert answer.throttle_time_ms == 0
        assert await is_unread(client, throttling, version=0) == 1000
        throttling.timers.end()


async def test_a_fetch_over_the_quota_is_empty(throttling: Throttling) -> None:
    async with await throttling.running.connect() as client:
        await client.call(produce(), 9)
        await throttling.limit(consumer_byte_rate=1100)
        whole = await client.call(fetch(), 12)
        assert whole.throttle_time_ms == 0
        assert len(whole.responses[0].partitions[0].records) > len(VALUE)
        empty = await client.call(fetch(), 12)
        assert empty.responses == []
        assert await is_unread(client, throttling) == empty.throttle_time_ms > 5000
        throttling.clock.advance(11_000)
        again = await client.call(fetch(), 12)
        assert again.throttle_time_ms == 0
        assert len(again.responses[0].partitions[0].records) > len(VALUE)


async def test_a_throttled_fetch_leaves_its_session_as_it_is(throttling: Throttling) -> None:
    async with await throttling.running.connect() as client:
        await client.call(produce(), 9)
        await throttling.limit(consumer_byte_rate=1100)
        first = await client.call(fetch(session_epoch=0), 12)
        assert first.session_id
        empty = await client.call(fetch(session_id=first.session_id, session_epoch=1), 12)
        assert (empty.session_id, empty.responses) == (first.session_id, [])
        throttling.timers.end()
        # A session is not begun by an answer without its partitions.
        full = await client.call(fetch(session_epoch=0), 12)
        assert (full.session_id, full.responses) == (0, [])
        throttling.timers.end()
        throttling.clock.advance(11_000)
        assert len(throttling.running.broker.services.fetch_sessions) == 1


async def test_a_fetch_may_ask_for_more_than_fits_into_its_windows(throttling: Throttling) -> None:
    async with await throttling.running.connect() as client:
        for _ in range(5):
            await client.call(produce(), 9)
        await throttling.limit(consumer_byte_rate=2500)
        answer = await client.call(fetch(), 12)
        assert answer.throttle_time_ms in range(1, 300)  # what frames the records is over
        throttling.timers.end()


async def test_mutations_are_refused_with_the_time_to_wait(throttling: Throttling) -> None:
    await throttling.limit(controller_mutation_rate=1)

    def create(name: str, count: int) -> CreateTopicsRequest:
        topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        return CreateTopicsRequest(topics=[topic], timeout_ms=1000)

    async with await throttling.running.connect() as client:
        assert (await client.call(create("a", 15), 7)).throttle_time_ms == 0
        refused = await client.call(create("b", 1), 7)
        assert (refused.throttle_time_ms, refused.topics[0].error_code) == (4000, 89)
        assert await is_unread(client, throttling) == 4000
        old = await client.call(create("c", 1), 5)
        assert (old.throttle_time_ms, old.topics[0].error_code) == (5000, 0)
        throttling.timers.end()


async def test_changes_act_on_live_connections(throttling: Throttling) -> None:
    async with await throttling.running.connect() as client:
        assert (await client.call(produce(), 9)).throttle_time_ms == 0
        await throttling.limit(producer_byte_rate=1000)
        assert (await client.call(produce(), 9)).throttle_time_ms > 0
        throttling.timers.end()
        await throttling.limit(producer_byte_rate=None)
        assert (await client.call(produce(), 9)).throttle_time_ms == 0


async def test_others_are_not_held_back(throttling: Throttling) -> None:
    await throttling.limit(producer_byte_rate=1000)
    async with (
        await throttling.running.connect() as client,
        await throttling.running.connect("other") as other,
    ):
        await client.call(produce(), 9)
        assert len(throttling.timers.waiting) == 1
        for _ in range(5):
            assert (await other.call(produce(), 9)).throttle_time_ms == 0
        throttling.timers.end()


async def test_requests_behind_a_throttled_one_wait_one_by_one(throttling: Throttling) -> None:
    await throttling.limit(producer_byte_rate=1000)
    async with await throttling.running.connect() as client:
        for _ in range(3):
            client.send(produce(), 9)
        for offset in range(3):
            answer = await client.receive()
            assert answer.responses[0].partition_responses[0].base_offset == offset
            assert throttling.running.partitions.get("t", 0).log.log_end_offset == offset + 1
            throttling.timers.end()


async def test_stopping_does_not_wait_for_the_throttled(throttling: Throttling) -> None:
    await throttling.limit(producer_byte_rate=1)
    async with await throttling.running.connect() as client:
        await client.call(produce(), 9)
        async with asyncio.timeout(60):
            await throttling.running.stop()
        assert throttling.timers.cancelled == 1
        assert await client.is_closed_by_broker()


async def test_a_peer_that_leaves_ends_its_timer(throttling: Throttling) -> None:
    await throttling.limit(producer_byte_rate=1)
    async with await throttling.running.connect() as client:
        await client.call(produce(), 9)
        (connection,) = throttling.running.server.connections
    # Nothing is read of it, so the broker learns of its going by its own closing only.
    connection.abort()
    async with asyncio.timeout(60):
        while throttling.running.server.connections:  # noqa: ASYNC110  the transport's own time
            await asyncio.sleep(0)
    assert throttling.timers.cancelled == 1


async def test_the_delay_is_counted_as_throttle_time(throttling: Throttling) -> None:
    await throttling.limit(producer_byte_rate=1)
    async with await throttling.running.connect() as client:
        answer = await client.call(produce(), 9)
    times = throttling.running.broker.services.metrics.of_api("Produce").throttle
    assert (times.count, times.total_us) == (1, answer.throttle_time_ms * 1000)


async def test_topics_made_on_demand_take_tokens(throttling: Throttling) -> None:
    await throttling.limit(controller_mutation_rate=0.1)
    async with await throttling.running.connect() as client:
        for name in ("one", "two", "three"):
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            assert (await client.call(request, 8)).throttle_time_ms == 0
        topic = CreatableTopic(name="four", num_partitions=1, replication_factor=1)
        answer = await client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        throttling.timers.end()


async def test_a_client_that_has_gone_is_charged_and_nothing_else(
    throttling: Throttling, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    arrival, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(*_: Any) -> CreateTopicsResponse:
        arrival.set()
        await goes_on.wait()
        return CreateTopicsResponse()

    monkeypatch.setattr(create_topics, "handle", slow)
    await throttling.limit(request_percentage=0.000001)
    async with await throttling.running.connect() as client:
        client.send(CreateTopicsRequest(), 5)
        async with asyncio.timeout(60):
            await arrival.wait()
    server = throttling.running.server
    async with asyncio.timeout(60):
        while server.connections:  # noqa: ASYNC110  the transport's own time
            await asyncio.sleep(0)
        goes_on.set()
        while server.connections._tasks_running:  # noqa: ASYNC110  the task ends with no event of ours
            await asyncio.sleep(0)
    assert throttling.timers.waiting == []
    assert not caplog.records
