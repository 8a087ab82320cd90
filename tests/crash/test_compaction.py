"""A crash at every file operation of a compaction: every key keeps its value, the log recovers.

A scripted life (append, roll, flush, compact, append on, compact again) runs on `FaultyFiles` and
is stopped at call 1, 2, 3, … of its compaction. Once as by kill -9: the files are as they are at
that moment. Once as by a power cut: names and bytes that were not synced are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.kafka.records.batch import crc_is_valid
from tests.support.compaction import DAY_MS, end_transaction, put, roll_and_compact
from tests.support.faulty_files import FaultyFiles, PowerCut, keep_everything, keep_nothing
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    config,
    flush,
    open_manager,
    records_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog

SETTINGS = config(cleanup_policy="compact", segment_bytes=600, index_interval_bytes=100)
PRODUCER, WRITER = 3, 4
KEYS = [b"key-%d" % number for number in range(5)]
MARKERS = b"\0\0\0\0", b"\0\0\0\1"
"""The keys of abort and commit."""


class QuickFiles(Files):
    """Files that are read after the crash; they never sync, because no second crash follows."""

    __slots__ = ()

    def sync(self, fd: int) -> None:  # type: ignore[override]
        """Do nothing."""

    def sync_directory(self, path: str) -> None:
        """Do nothing."""


class Life:
    """The records that the script has put, and the calls of the files during its compactions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir()
        self.files = FaultyFiles(str(path))
        self.manager: LogManager | None = None
        self.values: dict[bytes, bytes] = {}
        self.appended: dict[int, tuple[bytes, bytes | None]] = {}
        self.sequence = 0
        self.compactions: list[range] = []

    def run(self) -> None:
        self.manager = open_manager(
            str(self.path), files=self.files, topic=SETTINGS, clock=ManualClock()
        )
        log = self.manager.create_log("t", 0, TOPIC_ID, SETTINGS)
        for round_number in range(2):
            self._append(log, round_number)
            flush(log)
            self.manager.checkpoint_now()
            first_count = self.files.call_count
            roll_and_compact(log, NOW_MS + round_number * 2 * DAY_MS)
            self.manager.checkpoint_now()
            self.compactions.append(range(first_count + 1, self.files.call_count + 1))

    def _append(self, log: PartitionLog, round_number: int) -> None:
        for number in range(12):
            key, value = KEYS[number % 5], b"%d/%d " % (round_number, number) * 5
            offset = put(log, (key, value), producer_id=PRODUCER, sequence=self.sequence)
            self.sequence += 1
            self._note(offset, key, value)
        offset = put(log, (b"gone", None))
        self._note(offset, b"gone", None)
        writer = {"producer_id": WRITER, "is_transactional": True}
        offset = put(log, (b"tx", b"aborted"), sequence=2 * round_number, **writer)
        self.appended[offset] = b"tx", b"aborted"
        end_transaction(log, WRITER, is_commit=False)
        offset = put(log, (b"tx", b"%d" % round_number), sequence=2 * round_number + 1, **writer)
        self._note(offset, b"tx", b"%d" % round_number)
        end_transaction(log, WRITER, is_commit=True)

    def _note(self, offset: int, key: bytes, value: bytes | None) -> None:
        self.appended[offset] = key, value
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def stop(self) -> None:
        if self.manager is not None:
            abandon(self.manager)
        LogDirectory.locked_paths.discard(str(self.path))


def aborted_offsets(log: PartitionLog) -> set[int]:
    offsets = set()
    for transaction in log_reads.aborted_transactions(log, 0, log.log_end_offset):
        offsets |= set(range(transaction.first_offset, transaction.last_offset + 1))
    return offsets


def last_values(log: PartitionLog) -> dict[bytes, bytes]:
    """Return the last value of each key for a reader of committed records."""
    skipped = aborted_offsets(log)
    values: dict[bytes, bytes] = {}
    for record in records_of(log):
        if record.key is None or record.offset in skipped or record.key in MARKERS:
            continue
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
    return values


def check(life: Life) -> None:
    """Check that the log is whole and has the same values as before."""
    manager = open_manager(str(life.path), files=QuickFiles(), topic=SETTINGS, clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, SETTINGS)
    endings = {name.rpartition(".")[2] for name in Files().list_files(log.directory)}
    assert not endings & {"cleaned", "swap", "deleted"}
    assert last_values(log) == life.values
    offsets = [record.offset for record in records_of(log)]
    assert offsets == sorted(set(offsets))
    for record in records_of(log):
        if record.offset in life.appended:
            assert (record.key, record.value) == life.appended[record.offset]
    for segment in log.segments:
        segment.offset_index.check(segment.size_bytes)
        segment.time_index.check()
        for position, header in segment.headers():
            whole = bytes(segment.read(position, header.size_bytes))
            assert crc_is_valid(whole, 0, header.size_bytes)
    assert log.producers.loaded().producers[PRODUCER].last_sequence == life.sequence - 1
    put(log, (b"key-0", b"on"), producer_id=PRODUCER, sequence=life.sequence)
    roll_and_compact(log, NOW_MS + 9 * DAY_MS)
    assert last_values(log) == {**life.values, b"key-0": b"on"}
    manager.close()


def crashes(path: Path, step: int) -> Iterator[Life]:
    """Yield one life for every `step`th call of a compaction, stopped there."""
    whole = Life(path / "whole")
    whole.run()
    whole.stop()
    whole.files.forget_pins()
    check(whole)
    calls = whole.compactions[-1]  # the one that finds compacted and new segments
    assert len(calls) > 20
    for call in calls[::step]:
        life = Life(path / str(call))
        life.files.cut_at = call
        with pytest.raises(PowerCut):
            life.run()
        life.stop()
        yield life


def test_a_kill_at_every_call(tmp_path: Path) -> None:
    for life in crashes(tmp_path, 1):
        life.files.forget_pins()
        check(life)


@pytest.mark.parametrize("survival", ["nothing", "everything", "names"])
def test_a_power_cut_at_every_call(tmp_path: Path, survival: str) -> None:
    """Every record was flushed before the compaction began."""
    keep = keep_everything if survival == "everything" else keep_nothing
    keep_names = keep_nothing if survival == "nothing" else keep_everything
    for life in crashes(tmp_path, 3 if survival == "everything" else 1):
        life.files.power_cut(keep, keep_names)
        life.files.forget_pins()
        check(life)
