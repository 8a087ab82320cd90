"""The producers of a log: loaded once, their snapshots synced once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.producers import LogProducers
from minibroker.clock import SystemClock
from minibroker.kafka.errors import StorageError
from tests.support.logs import append

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


def producers_of(log: PartitionLog) -> LogProducers:
    """Return what a start knows of the producers of `log`."""
    return LogProducers(
        Disk(),
        SystemClock(),
        log.place,
        log.segments,
        log,
        log_end_offset=log.log_end_offset,
        snapshot_offset=0,
    )


def filled(new_log: NewLog) -> PartitionLog:
    log = new_log()
    for sequence in range(4):
        append(log, b"v", producer_id=3, producer_epoch=0, sequence=sequence)
    return log


def test_the_state_is_loaded_once(new_log: NewLog) -> None:
    log = filled(new_log)
    producers = producers_of(log)
    assert producers.is_on_disk
    first = producers.loading()
    assert producers.loading() is first
    first()
    state = first.state
    first()
    assert first.state is state
    first.apply()
    first.apply()
    assert not producers.is_on_disk
    assert producers.state is state
    assert state is not None
    assert state.producers[3].last_sequence == 3


def test_producers_loaded_before_a_truncation_are_dropped(new_log: NewLog) -> None:
    log = filled(new_log)
    producers = producers_of(log)
    late = producers.loading()
    late()
    producers.truncate_to(2, 0)
    late.apply()
    assert producers.is_on_disk
    assert producers.loaded().producers[3].last_sequence == 1


def test_an_error_is_told_to_the_next_who_asks_and_then_it_is_tried_again(new_log: NewLog) -> None:
    log = filled(new_log)
    producers = producers_of(log)
    path = log.active_segment.log_path
    content = Path(path).read_bytes()
    Path(path).write_bytes(b"\xff" * len(content))
    failing = producers.loading()
    failing()
    failing.apply()
    assert producers.is_on_disk
    with pytest.raises(StorageError, match="cannot load the producers of"):
        producers.require()
    Path(path).write_bytes(content)
    assert producers.loaded().producers[3].last_sequence == 3


def test_a_snapshot_waits_for_a_flush_that_ends_well(new_log: NewLog) -> None:
    log = filled(new_log)
    producers = producers_of(log)
    producers.stage_snapshot(4)
    first = producers.unsynced
    assert list(first) == [4]
    assert producers.unsynced == first  # that flush failed: the next one has it again
    producers.note_synced(first)
    assert producers.unsynced == {}


def test_a_snapshot_that_was_staged_again_meanwhile_is_not_synced(new_log: NewLog) -> None:
    log = filled(new_log)
    producers = producers_of(log)
    producers.stage_snapshot(4)
    first = producers.unsynced
    producers.truncate_to(3, 0)
    producers.stage_snapshot(4)
    producers.note_synced(first)
    assert list(producers.unsynced) == [4]
    producers.forget_snapshot(4)
    assert producers.unsynced == {}


def test_truncation_takes_later_snapshots_and_the_state(new_log: NewLog) -> None:
    log = filled(new_log)
    producers = producers_of(log)
    for offset in (2, 3, 4):
        producers.stage_snapshot(offset)
    producers.write_unsynced()
    producers.truncate_to(3, 0)
    assert sorted(path.name for path in Path(log.directory).glob("*.snapshot")) == [
        f"{2:020d}.snapshot",
        f"{3:020d}.snapshot",
    ]
    assert producers.snapshot_offset == 3
    assert producers.known_to == 3
    assert producers.state is None
    assert sorted(producers.unsynced) == [2, 3]


def test_a_snapshot_is_superseded_unless_a_segment_begins_there(new_log: NewLog) -> None:
    log = filled(new_log)
    log.roll()
    producers = producers_of(log)
    assert producers.note_snapshot(3) is None  # it is the first one
    assert producers.note_snapshot(4) == (f"{log.directory}/{3:020d}.snapshot")
    assert producers.note_snapshot(5) is None
    assert producers.note_snapshot(2) is None
