"""The batches that are checked before the append, and those that a worker checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.partitions import checking
from minibroker.partitions.checking import Checker, ReceivedBatch
from minibroker.records.batch import read_produced_header
from tests.support.in_process import START_MS, batch_of
from tests.unit.partitions.conftest import Claim

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.partitions.partition import Partition
    from tests.unit.partitions.conftest import World


def at_once(task: Callable[[], None], done: Any) -> None:
    task()
    done(None)


def received(partition: Partition, records: bytearray) -> ReceivedBatch:
    view = memoryview(records)
    return ReceivedBatch(partition, view, read_produced_header(view))


@pytest.mark.parametrize(
    ("records", "is_looked_at", "is_large"),
    [
        (batch_of(b"one"), False, False),
        (batch_of(*[b"v"] * 1000), False, False),
        (batch_of(bytes(900_000)), False, False),
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
        await Checker(at_once).check_large([batch], START_MS)
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
    await Checker(at_once).check_large([larger], START_MS)
    checked = larger.checked_for(partition)
    assert checked is not None
    assert checked.number(7, 0)[1].codec == 1


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


async def test_a_bug_in_the_check_reaches_the_waiting_caller(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **_fields: object) -> None:
        raise RuntimeError("a bug")

    world.create("t")
    monkeypatch.setattr(checking, "check", fail)
    rules = world.manager.get("t", 0).log.rules
    with pytest.raises(RuntimeError, match="a bug"):
        await Checker(at_once).check(memoryview(b""), rules, START_MS, "t-0", None)
