"""The batches that are checked before the append, and those that a worker checks."""

from __future__ import annotations

import asyncio
import gc
from os import urandom
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions import checking
from minibroker.broker.partitions.checking import Checker, ReceivedBatch
from minibroker.broker.storage.tasks import collector_at_rest
from minibroker.broker.worker import AT_ONCE, Caller, Workers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.batch import read_produced_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record
from tests.support.in_process import START_MS, batch_of
from tests.unit.broker.partitions.conftest import Claim

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.partitions.partition import Partition
    from tests.unit.broker.partitions.conftest import World


def received(partition: Partition, records: bytearray) -> ReceivedBatch:
    view = memoryview(records)
    return ReceivedBatch(partition, view, read_produced_header(view))


def with_headers(count: int, **fields: Any) -> bytearray:
    """Return a batch of one record with so many headers."""
    return build_batch([Record(0, START_MS, None, b"", (("", None),) * count)], **fields)


@pytest.mark.parametrize(
    ("records", "is_looked_at", "is_large"),
    [
        (batch_of(b"one"), False, False),
        (batch_of(*[b"v"] * 400), False, False),
        (batch_of(*[b"v"] * 1000), True, False),
        (batch_of(bytes(900_000)), True, False),
        (with_headers(2000), True, False),
        (with_headers(2001), True, True),
        (with_headers(2001, codec="zstd"), True, True),
        (batch_of(b"one", codec="lz4"), True, False),
        (batch_of(*[b"v" * 100] * 1000, codec="lz4"), True, False),
        (batch_of(*[b"v"] * 1001), True, True),
        (batch_of(*[b"v"] * 1001, codec="lz4"), True, True),
        (batch_of(bytes(140_000), codec="snappy"), True, True),
    ],
)
async def test_which_batches_are_large(
    world: World, records: bytearray, is_looked_at: bool, is_large: bool
) -> None:
    world.create("t")
    partition = world.manager.get("t", 0)
    batch = received(partition, records)
    assert batch.check(START_MS) == is_large
    assert (batch.checked_for(partition) is not None) == (is_looked_at and not is_large)
    if is_large:
        await Checker(AT_ONCE).check_large([batch], START_MS)
        assert batch.checked_for(partition) is not None


async def test_a_topic_with_a_codec_of_its_own(world: World) -> None:
    """A small batch is built anew on the loop, a larger one is not."""
    world.dynamic.set_topic("t", {"compression.type": "gzip"})
    world.create("t")
    partition = world.manager.get("t", 0)
    small = received(partition, batch_of(*[b"v"] * 200))
    larger = received(partition, batch_of(*[b"v"] * 201))
    assert not small.check(START_MS)
    assert larger.check(START_MS)
    assert small.checked_for(partition) is not None
    assert larger.checked_for(partition) is None
    await Checker(AT_ONCE).check_large([larger], START_MS)
    checked = larger.checked_for(partition)
    assert checked is not None
    checked.number(7, 0)
    assert checked.header.codec == 1


async def test_a_refusal_is_told_with_the_append(world: World) -> None:
    world.create("t")
    partition = world.manager.get("t", 0)
    records = batch_of(*[b"v"] * 2000)
    records[70] ^= 1  # the CRC is wrong now
    batch = received(partition, records)
    batch.check(START_MS)
    checked = batch.checked_for(partition)
    assert checked is not None
    with pytest.raises(KafkaError) as raised:
        partition.append(batch.records, 1, START_MS, Claim(), checked=checked)
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE


class Lane(Caller):
    """A worker that ends what it was given when the test says so."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] = []

    def run_then(self, task: Callable[[], None], done: Any) -> None:
        self.tasks.append(lambda: Caller.run_then(self, task, done))


async def test_batches_that_take_long_delay_neither_short_ones_nor_those_of_others(
    world: World,
) -> None:
    world.create("t")
    partition = world.manager.get("t", 0)
    short, first, second = Lane(), Lane(), Lane()
    workers = Workers.by(short)
    workers.long_checks = [first, second]
    checker = Checker(workers)

    def check(records: bytearray) -> asyncio.Future[Any]:
        batch = received(partition, records)
        rules = partition.log.rules
        return checker.check(batch.records, rules, START_MS, "t-0", batch.header)

    long = [check(batch_of(*[b"v"] * 10_001, codec="lz4")) for _ in range(2)]
    large = check(batch_of(urandom(17_000), codec="lz4"))
    small = check(batch_of(*[b"v"] * 2000, codec="lz4"))
    old = check(build_message_set([Record(0, START_MS, b"k", b"v")], magic=1, codec=3))
    assert [len(lane.tasks) for lane in (short, first, second)] == [1, 2, 2]
    short.tasks.pop()()
    assert small.done()
    assert not any(future.done() for future in (*long, large, old))
    second.tasks.pop(0)()
    second.tasks.pop(0)()
    assert [future.done() for future in (*long, large, old)] == [False, True, False, True]
    check(batch_of(*[b"v"] * 10_001))
    assert (len(first.tasks), len(second.tasks)) == (2, 1)


async def test_the_collector_looks_at_no_record_that_is_built_anew(world: World) -> None:
    world.dynamic.set_topic("t", {"compression.type": "gzip"})
    world.create("t")
    partition = world.manager.get("t", 0)
    lane = Lane()
    batch = received(partition, batch_of(*[b"v"] * 20_000))
    rules = partition.log.rules
    future = Checker(Workers.by(lane)).check(batch.records, rules, START_MS, "t-0", batch.header)
    phases: list[str] = []

    def note(phase: str, _facts: object) -> None:
        phases.append(phase)

    gc.callbacks.append(note)
    try:
        with collector_at_rest():  # of what follows the check
            gc.enable()
            lane.tasks.pop()()
    finally:
        gc.callbacks.remove(note)
    assert phases == []
    assert future.result().header.codec == 1


@pytest.mark.pure("replaces check_before_append")
async def test_a_bug_in_the_check_reaches_the_waiting_caller(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **_fields: object) -> None:
        raise RuntimeError("a bug")

    world.create("t")
    monkeypatch.setattr(checking, "check_before_append", fail)
    rules = world.manager.get("t", 0).log.rules
    with pytest.raises(RuntimeError, match="a bug"):
        await Checker(AT_ONCE).check(memoryview(b""), rules, START_MS, "t-0", None)
