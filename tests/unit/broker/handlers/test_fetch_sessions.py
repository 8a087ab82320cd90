"""Incremental fetches look at partitions that have news, and answer as if they looked at all."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchResponse
from minibroker.kafka.records.control import TransactionMarker, build_marker
from tests.support.in_process import START_MS, batch_of
from tests.support.record_requests import asking, fill, first, id_of, part, parts_of_answer
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import Claim

if TYPE_CHECKING:
    from minibroker.broker.partitions.fetch_session import FetchSession
    from minibroker.broker.partitions.partition import Partition
    from tests.support.in_process import InProcessBroker, RawClient

VERSION = 12
READ_COMMITTED = 1
MANY = "many"


class Consumer:
    """One session over its own connection, with the offsets that its client keeps."""

    def __init__(self, running: InProcessBroker, client: RawClient) -> None:
        self._running = running
        self._client = client
        self._epoch = 0
        self.session_id = 0

    @property
    def session(self) -> FetchSession:
        return self._running.broker.services.fetch_sessions._sessions[self.session_id]

    def ask(self, *parts: FetchPartition, version: int = VERSION, **more: Any) -> None:
        request = asking(*parts, session=(self.session_id, self._epoch), **more)
        self._client.send(request, version)
        self._epoch += 1

    async def receive(self) -> FetchResponse:
        answer = await self._client.receive()
        self.session_id = answer.session_id
        return answer

    async def fetch(self, *parts: FetchPartition, **more: Any) -> FetchResponse:
        self.ask(*parts, **more)
        return await self.receive()


def fields_of(answer: FetchResponse) -> Any:
    """Everything in the answer but the session's id, in its order."""
    return [
        (
            group.topic,
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            bytes(partition.records or b""),
            partition.aborted_transactions,
        )
        for group in answer.responses
        for partition in group.partitions
    ]


@pytest.fixture
async def consumer(running: InProcessBroker, client: RawClient) -> Consumer:
    return Consumer(running, client)


async def settle(consumer: Consumer, *parts: FetchPartition) -> None:
    """Begin a session that has seen everything."""
    await consumer.fetch(*parts)
    await consumer.fetch()
    assert consumer.session.news == {}


@pytest.mark.pure("counts calls of Partition.read_below")
async def test_a_partition_without_news_is_not_read(
    consumer: Consumer, running: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settle(consumer, part(0), part(1))
    reads: list[int] = []
    partition_type = type(running.partitions.get("t", 0))
    read_below = partition_type.read_below

    def counted(partition: Partition, *arguments: Any, **options: Any) -> Any:
        reads.append(partition.index)
        return read_below(partition, *arguments, **options)

    monkeypatch.setattr(partition_type, "read_below", counted)
    assert parts_of_answer(await consumer.fetch()) == {}
    assert reads == []
    async with await running.connect() as producer:
        await fill(producer, b"x", index=1)
    assert set(parts_of_answer(await consumer.fetch())) == {1}
    assert reads == [1]


async def test_a_partition_whose_records_are_not_taken_is_read_again(
    consumer: Consumer, running: InProcessBroker
) -> None:
    await settle(consumer, part(0), part(1))
    async with await running.connect() as producer:
        await fill(producer, b"x", index=0)
    first_time = fields_of(await consumer.fetch())
    assert fields_of(await consumer.fetch()) == first_time
    assert len(first_time) == 1


async def test_an_error_is_told_again_until_it_is_gone(
    consumer: Consumer, running: InProcessBroker
) -> None:
    await settle(consumer, part(0), part(1))
    running.partitions.take_offline([TopicPartition("t", 0)])
    for _ in range(2):
        answer = await consumer.fetch(max_wait_ms=60_000)
        assert parts_of_answer(answer) == {0: (ErrorCode.KAFKA_STORAGE_ERROR, -1, 0)}


async def test_news_wake_a_fetch_that_has_read_nothing(
    consumer: Consumer, running: InProcessBroker
) -> None:
    await settle(consumer, part(0), part(1))
    session = consumer.session
    consumer.ask(max_wait_ms=60_000)
    await eventually(lambda: session.waiters)
    async with await running.connect() as producer:
        await fill(producer, b"x", index=1)
    assert set(parts_of_answer(await consumer.receive())) == {1}
    assert not session.waiters


async def test_news_of_several_partitions_add_up_to_min_bytes(
    consumer: Consumer, running: InProcessBroker
) -> None:
    await settle(consumer, part(0), part(1))
    consumer.ask(max_wait_ms=60_000, min_bytes=2 * len(batch_of(b"x")))
    await eventually(lambda: consumer.session.waiters)
    async with await running.connect() as producer:
        await fill(producer, b"x", index=1)
        assert consumer.session.waiters
        await fill(producer, b"x", index=0)
    assert set(parts_of_answer(await consumer.receive())) == {0, 1}


async def test_a_new_leader_epoch_ends_a_wait_with_the_old_one(
    consumer: Consumer, running: InProcessBroker
) -> None:
    await settle(consumer, part(0, current_leader_epoch=0), part(1))
    consumer.ask(max_wait_ms=60_000)
    await eventually(lambda: consumer.session.waiters)
    partition = running.partitions.get("t", 0)
    partition.take_role(partition.role._replace(epoch=3))
    partition.wake()
    assert first(await consumer.receive()).error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_deleted_topic_ends_the_wait(consumer: Consumer, running: InProcessBroker) -> None:
    await settle(consumer, part(0), part(1))
    consumer.ask(max_wait_ms=60_000)
    await eventually(lambda: consumer.session.waiters)
    await running.broker.cluster.delete_topic("t")
    answer = await consumer.receive()
    assert first(answer).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_the_stop_ends_the_wait(consumer: Consumer, running: InProcessBroker) -> None:
    await settle(consumer, part(0), part(1))
    consumer.ask(max_wait_ms=60_000)
    await eventually(lambda: consumer.session.waiters)
    running.partitions.wake_all()
    assert parts_of_answer(await consumer.receive()) == {}


async def test_a_partition_that_leaves_the_session_is_watched_no_more(
    consumer: Consumer, running: InProcessBroker
) -> None:
    partitions = [running.partitions.get("t", index) for index in (0, 1)]
    await settle(consumer, part(0), part(1))
    assert [len(partition.watchers or ()) for partition in partitions] == [1, 1]
    await consumer.fetch(forget=(0,))
    assert [len(partition.watchers or ()) for partition in partitions] == [0, 1]
    await consumer.fetch(forget=(1,))
    assert [len(partition.watchers or ()) for partition in partitions] == [0, 0]


class Changes:
    """Random changes of the topic `many` of a running broker."""

    def __init__(self, running: InProcessBroker, random: Random, count: int) -> None:
        self._running = running
        self._random = random
        self._open: set[int] = set()
        self._count = count

    def _any(self) -> Partition:
        return self._running.partitions.get(MANY, self._random.randrange(self._count))

    def _stage(self, partition: Partition, batch: bytes | bytearray) -> None:
        partition.append(memoryview(bytearray(batch)), 1, START_MS, Claim(), origin="coordinator")
        self._running.partitions.commit()

    def append(self) -> None:
        self._stage(self._any(), batch_of(b"x" * self._random.randrange(1, 400)))

    def begin_transaction(self) -> None:
        partition = self._any()
        self._open.add(partition.index)
        batch = batch_of(
            b"x", producer_id=7, producer_epoch=0, base_sequence=-1, is_transactional=True
        )
        self._stage(partition, batch)

    def end_transaction(self) -> None:
        if self._open:
            index = self._open.pop()
            marker = TransactionMarker(is_commit=self._random.random() < 0.5, coordinator_epoch=0)
            batch = build_marker(marker, producer_id=7, producer_epoch=0, timestamp_ms=START_MS)
            self._stage(self._running.partitions.get(MANY, index), batch)

    def delete_records(self) -> None:
        partition = self._any()
        offset = self._random.randint(partition.log_start_offset, partition.high_watermark)
        self._running.partitions.delete_records(partition, offset)

    def begin_epoch(self) -> None:
        partition = self._any()
        partition.take_role(partition.role._replace(epoch=partition.leader_epoch + 1))
        partition.wake()

    def nothing(self) -> None:
        """The next poll finds nothing new."""

    def one(self) -> None:
        weights = {
            self.append: 5,
            self.begin_transaction: 1,
            self.end_transaction: 2,
            self.delete_records: 2,
            self.begin_epoch: 1,
            self.nothing: 4,
        }
        [change] = self._random.choices(list(weights), list(weights.values()))
        change()


@pytest.mark.parametrize("seed", range(4))
async def test_answers_are_those_of_a_session_that_reads_everything(
    running: InProcessBroker, consumer: Consumer, seed: int
) -> None:
    """Partitions in the same order, errors, marks, records: whatever happens in between."""
    random = Random(seed)
    partition_count = 6
    await running.create_topic(MANY, partition_count)
    changes = Changes(running, random, partition_count)
    everything = [part(index) for index in range(partition_count)]
    async with await running.connect() as other:
        reference = Consumer(running, other)
        for reader in (consumer, reference):
            await reader.fetch(*everything, topic=MANY)
        offsets = [0] * partition_count
        for _ in range(200):
            for _ in range(random.randrange(3)):
                changes.one()
            places = []
            if random.random() < 0.4:
                index = random.randrange(partition_count)
                end = running.partitions.get(MANY, index).high_watermark
                offsets[index] = random.choice([end, end, random.randint(0, end + 1)])
                epoch = random.choice([-1, -1, 0])
                places.append(part(index, offsets[index], current_leader_epoch=epoch))
            more = {
                "topic": MANY,
                "isolation_level": random.choice([0, READ_COMMITTED]) if seed % 2 else 0,
                "max_bytes": random.choice([300, 1 << 20]),
            }
            reference.session.look_at_everything()
            expected = await reference.fetch(*places, **more)
            assert fields_of(await consumer.fetch(*places, **more)) == fields_of(expected)


async def test_a_session_by_topic_ids_hears_of_news(
    running: InProcessBroker, consumer: Consumer
) -> None:
    ids = {"topic_id": id_of(running), "version": 13}
    await consumer.fetch(part(0), part(1), **ids)
    await consumer.fetch(version=13)
    assert consumer.session.news == {}
    async with await running.connect() as producer:
        await fill(producer, b"x", index=1)
    assert set(parts_of_answer(await consumer.fetch(version=13))) == {1}
