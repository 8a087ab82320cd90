"""Snapshots on disk: named, loaded with a replay, cleaned up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage import producer_files
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.producer_state import ProducerState
from tests.support.logs import NOW_MS, NewLog, append

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog


def idempotent(log: PartitionLog, count: int) -> None:
    for sequence in range(count):
        append(log, b"v", producer_id=3, producer_epoch=0, sequence=sequence)


def load(log: PartitionLog, end: int, expiration_ms: int = 1000) -> ProducerState:
    state = ProducerState("t-0")
    producer_files.load_state(
        REAL_FILES,
        log.directory,
        log.segments,
        state=state,
        log_start_offset=0,
        end_offset=end,
        now_ms=NOW_MS,
        expiration_ms=expiration_ms,
    )
    return state


def test_a_snapshot_and_what_lies_behind_it_make_the_state(new_log: NewLog) -> None:
    log = new_log()
    idempotent(log, 4)
    log.roll()
    append(log, b"v", producer_id=3, producer_epoch=0, sequence=4)
    append(log, b"w", producer_id=9, producer_epoch=2, sequence=0)
    assert producer_files.snapshot_offsets(REAL_FILES, log.directory) == [4]
    last = {key: entry.last_sequence for key, entry in load(log, 6).producers.items()}
    assert last == {3: 4, 9: 0}
    last = {key: entry.last_sequence for key, entry in load(log, 5).producers.items()}
    assert last == {3: 4}
    last = {key: entry.last_sequence for key, entry in load(log, 2).producers.items()}
    assert last == {3: 1}


def test_a_damaged_snapshot_is_left_out(new_log: NewLog) -> None:
    log = new_log()
    idempotent(log, 3)
    log.roll()
    path = producer_files.snapshot_path(log.directory, 3)
    REAL_FILES.write_atomically(path, b"\0\1damaged")
    assert load(log, 3).producers[3].last_sequence == 2
    assert producer_files.snapshot_offsets(REAL_FILES, log.directory) == [3]  # others may read it


def write_snapshot(directory: Path, offset: int) -> None:
    path = producer_files.snapshot_path(str(directory), offset)
    producer_files.write_content(REAL_FILES, path, ProducerState("t-0").to_snapshot())


def test_torn_snapshots_beyond_the_recovery_point_go(tmp_path: Path) -> None:
    for offset in (5, 10, 15):
        write_snapshot(tmp_path, offset)
    for offset in (5, 10):
        (tmp_path / f"{offset:020d}.snapshot").write_bytes(b"")
    assert producer_files.remove_damaged(REAL_FILES, str(tmp_path), [5, 10, 15], 7) == [5, 15]
    assert producer_files.snapshot_offsets(REAL_FILES, str(tmp_path)) == [5, 15]


def test_a_torn_snapshot_at_the_recovery_point_goes(tmp_path: Path) -> None:
    (tmp_path / f"{5:020d}.snapshot").write_bytes(b"")
    assert producer_files.remove_damaged(REAL_FILES, str(tmp_path), [5], 5) == []


def test_strays_go_but_the_newest_and_those_of_segments_stay(tmp_path: Path) -> None:
    for offset in (0, 5, 10, 15, 20, 30):
        write_snapshot(tmp_path, offset)
    (tmp_path / "other.snapshot").write_text("")
    offsets = producer_files.snapshot_offsets(REAL_FILES, str(tmp_path))
    remaining = producer_files.remove_strays(
        REAL_FILES, str(tmp_path), offsets, base_offsets=[0, 10], recovery_point=17, end_offset=20
    )
    assert remaining == [0, 10, 15, 20]  # a start after a kill begins at 15
    assert producer_files.snapshot_offsets(REAL_FILES, str(tmp_path)) == remaining
    producer_files.remove_snapshots(REAL_FILES, str(tmp_path), [10, 11])
    assert producer_files.snapshot_offsets(REAL_FILES, str(tmp_path)) == [0, 15, 20]
