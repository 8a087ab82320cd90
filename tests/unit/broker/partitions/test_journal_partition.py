"""Staged entries in one partition of a journal, and the parsing of their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions.journal_partition import (
    JournalPartition,
    StagedAppend,
    decode_batches,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record

if TYPE_CHECKING:
    from tests.unit.broker.partitions.conftest import World


def two_batches() -> bytes:
    first = build_batch([Record(0, 1, b"a", b"1"), Record(0, 1, b"b", None)])
    return bytes(first + build_batch([Record(0, 1, b"c", b"3")], base_offset=2))


def test_a_cut_batch_is_left_for_the_next_part() -> None:
    data = two_batches()
    part = decode_batches(memoryview(data)[:-1], 0, None)
    assert [len(records) for _, records in part.batches] == [2]
    assert part.next_offset == 2
    assert decode_batches(memoryview(data), 0, None).next_offset == 3
    assert decode_batches(memoryview(data)[:20], 7, None).next_offset == 7


def test_records_that_do_not_fill_their_batch_are_corrupt() -> None:
    data = bytearray(two_batches())
    data[60] = 9  # the count of the first batch
    with pytest.raises(CorruptionError):
        decode_batches(memoryview(data), 0, None)


def test_an_append_is_told_once_whether_it_was_written() -> None:
    outcomes: list[object] = []
    staged = StagedAppend(outcomes.append, outcomes.append)
    staged.first_offset = 5
    assert staged.error_code == 0
    staged.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    staged.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    staged.succeed()
    assert outcomes == [ErrorCode.NOT_COORDINATOR]
    assert staged.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    entry = StagedAppend(outcomes.append, outcomes.append)
    entry.first_offset = 6
    entry.succeed()
    assert outcomes == [ErrorCode.NOT_COORDINATOR, 6]


def test_callbacks_end_when_leadership_ends(world: World) -> None:
    world.create("t")
    partition = JournalPartition(world.partition())
    outcomes: list[int] = []
    staged = StagedAppend(outcomes.append, None)
    staged.first_offset = staged.last_offset = 0
    partition.staged.append(staged)
    partition.stay()
    partition.leave()
    world.append(b"x")
    world.manager.commit()
    assert outcomes == []
    partition.stay()
    world.append(b"y")
    world.manager.commit()
    assert outcomes == [0]
    partition.complete()  # a new leader epoch: it stays where it is
    assert world.partition().waiters == {partition: None}


def entry(outcomes: list[object], offset: int) -> StagedAppend:
    staged = StagedAppend(outcomes.append, outcomes.append)
    staged.first_offset = staged.last_offset = offset
    return staged


def test_entries_are_told_below_the_high_watermark_and_followers_behind_them(world: World) -> None:
    """A record that is written and not synced yet has not happened; a marker behind it waits."""
    world.create("t")
    partition = JournalPartition(world.partition())
    outcomes: list[object] = []
    partition.when_told(lambda: outcomes.append("at once"))
    assert outcomes == ["at once"]
    partition.stay()
    for offset in (0, 1):
        world.append(b"x")
        partition.staged.append(entry(outcomes, offset))
    partition.when_told(lambda: outcomes.append("behind both"))
    world.partition().log.write_staged()
    partition.on_progress()
    assert outcomes == ["at once"]
    world.partition().advance_high_watermark(1)
    assert outcomes == ["at once", 0]
    world.partition().advance_high_watermark(2)
    assert outcomes == ["at once", 0, 1, "behind both"]


def test_entries_behind_a_refused_entry_are_refused_with_it(world: World) -> None:
    """Unless it waits for its turn only."""
    world.create("t")
    partition = JournalPartition(world.partition())
    refused = StagedAppend(None, None)
    refused.last_offset = 0
    partition.staged.append(refused)
    outcomes: list[object] = []
    partition.when_told(lambda: outcomes.append("visible"), outcomes.append)
    partition.when_told(lambda: outcomes.append("its turn"))
    assert outcomes == []
    refused.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    partition.complete()
    assert outcomes == [ErrorCode.NOT_COORDINATOR, "its turn"]
    partition.when_told(lambda: outcomes.append("at once"))
    assert outcomes[2:] == ["at once"]
