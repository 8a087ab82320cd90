"""Batches that would hold the loop: checked beside it, in order, and nobody else waits for them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.checking import Checker
from minibroker.broker.worker import Caller, Workers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record, decode_records
from tests.support.batches import with_crc
from tests.support.in_process import START_MS, batch_of
from tests.support.record_requests import id_of, produce, result, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.in_process import InProcessBroker, ManualClock, RawClient

MANY = [b"v" * (n % 50) for n in range(2000)]
NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class PausedWorker(Caller):
    """A worker that begins with what it is given when the test lets it."""

    def __init__(self, running: InProcessBroker) -> None:
        self._worker = running.broker.workers.checks
        self._batches: list[tuple[Callable[[], None], Any]] | None = []
        running.partitions._checker = Checker(Workers.by(self))

    def run_then(self, task: Callable[[], None], done: Any) -> None:
        if self._batches is None:
            self._worker.run_then(task, done)
        else:
            self._batches.append((task, done))

    @property
    def count(self) -> int:
        """Return the number of batches that it got."""
        return len(self._batches or ())

    def let_go(self) -> None:
        """Do all of it, and what comes later at once."""
        batches, self._batches = self._batches or [], None
        for task, done in batches:
            self._worker.run_then(task, done)


def message_set(codec: int) -> memoryview:
    records = [Record(n, START_MS, b"k", b"v" * 40) for n in range(900)]
    return memoryview(build_message_set(records, magic=1, codec=codec))


@pytest.mark.parametrize(
    ("records", "version", "count"),
    [
        (batch_of(*MANY), 9, 2000),
        (batch_of(*MANY), 3, 2000),
        (batch_of(*MANY, codec="gzip"), 9, 2000),
        (batch_of(bytes(200_000), codec="zstd"), 9, 1),
        (batch_of(bytes(200_000), codec="lz4"), 13, 1),
        (message_set(codec=0), 2, 900),
        (message_set(codec=1), 0, 900),
    ],
)
async def test_nobody_waits_for_a_batch_that_is_checked(
    running: InProcessBroker, client: RawClient, records: Any, version: int, count: int
) -> None:
    worker = PausedWorker(running)
    topic_id = id_of(running)
    client.send(produce(records, topic_id=topic_id), version)
    async with await running.connect() as other:
        small = await result(other, produce(batch_of(b"other")))
        assert (small.error_code, small.base_offset) == (0, 0)
        assert worker.count == 1
        client.send(produce(batch_of(b"behind it"), topic_id=topic_id), 9)
        small = await result(other, produce(batch_of(b"other"), index=1))
        assert (small.error_code, small.base_offset) == (0, 0)
    assert running.partitions.get("t", 0).log_end_offset == 1
    worker.let_go()
    answers = [(await client.receive()).responses[0].partition_responses[0] for _ in range(2)]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [
        (0, 1),
        (0, 1 + count),
    ]
    assert running.partitions.get("t", 0).log_end_offset == count + 2


@pytest.mark.parametrize(
    "settings", [{"compression.type": "zstd"}, {"message.timestamp.type": "LogAppendTime"}], ids=str
)
async def test_a_batch_is_stored_as_the_topic_asks(
    running: InProcessBroker, client: RawClient, clock: ManualClock, settings: dict[str, str]
) -> None:
    await running.broker.cluster.create_topic("own", 1, 1, configs=settings)
    clock.advance(5)
    answer = await result(client, produce(batch_of(*MANY), topic="own"))
    assert (answer.error_code, answer.base_offset) == (0, 0)
    batch = stored(running, "own")
    assert [record.value for record in decode_records(batch)] == MANY
    header = read_header(batch)
    if "compression.type" in settings:
        assert header.codec == 4
    else:
        assert answer.log_append_time_ms == header.max_timestamp == START_MS + 5


async def test_sequences_stay_in_order(running: InProcessBroker, client: RawClient) -> None:
    worker = PausedWorker(running)
    sequence = 0
    for values in (MANY, [b"one"], MANY, [b"two"]):
        batch = batch_of(*values, producer_id=7, producer_epoch=0, base_sequence=sequence)
        client.send(produce(batch), 9)
        sequence += len(values)
    async with await running.connect() as other:
        await result(other, produce(batch_of(b"other"), index=1))
    worker.let_go()
    for base_offset in (0, 2000, 2001, 4001):
        answer = (await client.receive()).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, base_offset)


async def test_a_lie_is_refused_and_the_partition_beside_it_is_not(
    running: InProcessBroker, client: RawClient
) -> None:
    """A count that is too high by one, which only the last record tells."""
    lying = batch_of(*MANY)
    struct.pack_into(">i", lying, 23, len(MANY))
    struct.pack_into(">i", lying, 57, len(MANY) + 1)
    request = produce(memoryview(bytearray(with_crc(bytes(lying)))))
    request.topic_data[0].partition_data.append(
        produce(batch_of(b"good"), index=1).topic_data[0].partition_data[0]
    )
    (topic,) = (await client.call(request, 9)).responses
    refused, accepted = topic.partition_responses
    assert (refused.error_code, refused.base_offset) == (int(ErrorCode.INVALID_RECORD), -1)
    assert (accepted.error_code, accepted.base_offset) == (0, 0)
    assert running.partitions.get("t", 0).log_end_offset == 0


async def test_a_topic_that_was_made_again_meanwhile(
    running: InProcessBroker, client: RawClient
) -> None:
    """The records were checked for another partition than the one that is there now."""
    worker = PausedWorker(running)
    client.send(produce(batch_of(*MANY)), 9)
    async with await running.connect() as other:
        await result(other, produce(batch_of(b"other"), index=1))
    await running.broker.cluster.delete_topic("t")
    await running.create_topic("t", 1)
    worker.let_go()
    answer = (await client.receive()).responses[0].partition_responses[0]
    assert answer.error_code == NOT_LEADER
    assert running.partitions.get("t", 0).log_end_offset == 0
