"""From a directory to a log: clean stops, kills, torn tails, damaged files, leftovers."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import log_reads, retention
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.kafka.errors import StorageError
from tests.support.check import broken_things
from tests.support.faulty_files import FaultyFiles, keep_everything, keep_nothing
from tests.support.logs import (
    DEFAULTS,
    NOW_MS,
    TOPIC_ID,
    abandon,
    append,
    append_records,
    batch,
    config,
    flush,
    open_manager,
    sync,
    values_of,
)
from tests.support.watched_files import CountingFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.config.topic import TopicConfig
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog

SETTINGS = config(segment_bytes=2000, index_interval_bytes=200)
VALUES = [b"%03d" % number * 20 for number in range(40)]


def start(
    path: Path, settings: TopicConfig = SETTINGS, files: Files | None = None
) -> tuple[LogManager, PartitionLog]:
    manager = open_manager(str(path), topic=settings, files=files or Files())
    return manager, manager.create_log("t", 0, TOPIC_ID, settings)


def write_values(path: Path, *, clean: bool) -> Path:
    """Forty one-record batches, idempotent, in several segments; the partition's directory."""
    manager, log = start(path)
    for number, value in enumerate(VALUES):
        append(
            log,
            value,
            timestamp_ms=NOW_MS + number,
            producer_id=5,
            producer_epoch=0,
            sequence=number,
        )
    if clean:
        manager.close()
    else:
        abandon(manager)
    return path / "t-0"


def check_whole(log: PartitionLog) -> None:
    assert values_of(log) == VALUES
    assert log.log_end_offset == len(VALUES)
    for segment in log.segments:
        segment.offset_index.check(segment.size_bytes)
        segment.time_index.check()
    found = log_reads.offset_for_timestamp(log, NOW_MS + 17)
    assert found is not None
    assert found.offset == 17
    repeated = append_records(
        log,
        batch(VALUES[-1], timestamp_ms=NOW_MS, producer_id=5, producer_epoch=0, sequence=39),
        0,
        NOW_MS,
    )
    assert (repeated.duplicate, repeated.first_offset) == (True, 39)


def test_after_a_clean_stop_no_segment_is_opened(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    files = CountingFiles()
    manager, log = start(tmp_path, files=files)
    assert (log.log_end_offset, log.recovery_point) == (40, 40)
    assert [path for path in files.opened if "t-0/" in path] == []
    check_whole(log)
    manager.close()


@pytest.mark.parametrize("clean", [True, False])
def test_a_recovered_log_has_all_its_records(tmp_path: Path, clean: bool) -> None:
    write_values(tmp_path, clean=clean)
    manager, log = start(tmp_path)
    check_whole(log)
    assert append(log, b"next") == 40
    manager.close()


def test_of_large_batches_below_the_recovery_point_only_headers_are_read(tmp_path: Path) -> None:
    settings = config()
    manager, log = start(tmp_path, settings)
    for number in range(5):
        append(log, b"x" * 1_000_000, timestamp_ms=NOW_MS + number)
    flush(log)
    manager.checkpoint_now()
    append(log, b"tail", timestamp_ms=NOW_MS - 1)
    abandon(manager)
    files = CountingFiles()
    manager, log = start(tmp_path, settings, files)
    assert log.log_end_offset == 6
    assert files.read_bytes < 150_000
    found = log_reads.offset_for_timestamp(log, NOW_MS + 4)
    assert found is not None
    assert found.offset == 4
    manager.close()


def test_where_an_index_points_elsewhere_everything_is_checked(tmp_path: Path) -> None:
    """A bit of a record below the recovery point has turned, and the index is away."""
    manager, log = start(tmp_path, config(index_interval_bytes=0))
    for _ in range(5):
        append(log, b"x" * 1000)
    flush(log)
    manager.checkpoint_now()
    abandon(manager)
    (tmp_path / "t-0" / f"{0:020d}.index").unlink()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    manager, log = start(tmp_path, config(index_interval_bytes=0))
    assert log.log_end_offset == 4
    manager.close()


def test_only_records_behind_the_recovery_point_are_read(tmp_path: Path) -> None:
    """One large segment, flushed up to its last batches, then a kill: a sixteenth of 2 MB is read,
    headers for the producers and the batches behind the recovery point."""
    settings = config()
    manager, log = start(tmp_path, settings)
    for _ in range(200):
        append(log, b"x" * 10_000)
    flush(log)
    manager.checkpoint_now()
    append(log, b"tail")
    abandon(manager)
    files = CountingFiles()
    manager, log = start(tmp_path, settings, files)
    assert log.log_end_offset == 201
    assert files.read_bytes < 130_000
    assert values_of(log, 200) == [b"tail"]
    assert log.active_segment.offset_index.entry_count == 100 - 1 or log.size_bytes > 2_000_000
    manager.close()


@pytest.mark.parametrize("lost_bytes", [1, 30, 61, 100, 150, 400])
def test_a_torn_tail_is_cut_at_a_batch(tmp_path: Path, lost_bytes: int) -> None:
    directory = write_values(tmp_path, clean=False)
    last = max(directory.glob("*.log"))
    os.truncate(last, last.stat().st_size - lost_bytes)
    manager, log = start(tmp_path)
    kept = log.log_end_offset
    assert kept < 40
    assert values_of(log) == VALUES[:kept]
    assert append(log, b"again") == kept
    assert values_of(log)[-1] == b"again"
    manager.close()


def test_garbage_behind_the_end_is_cut(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=False)
    last = max(directory.glob("*.log"))
    size = last.stat().st_size
    with last.open("ab") as file:
        file.write(bytes(5000))
    manager, log = start(tmp_path)
    assert last.stat().st_size == size
    check_whole(log)
    manager.close()


def test_a_flipped_bit_ends_the_log_and_removes_later_segments(tmp_path: Path) -> None:
    """Without a checkpoint every segment is checked; the bad batch and all behind it go."""
    directory = write_values(tmp_path, clean=False)
    second = sorted(directory.glob("*.log"))[1]
    content = bytearray(second.read_bytes())
    content[-10] ^= 1
    second.write_bytes(content)
    (tmp_path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    manager, log = start(tmp_path)
    assert log.segments.last.log_path == str(second)
    assert values_of(log) == VALUES[: log.log_end_offset]
    assert log.log_end_offset < 40
    assert not list(directory.glob("*.deleted"))
    manager.close()


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["missing", "empty", "odd", "zeros", "beyond"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_or_damaged_index_is_made_again(
    tmp_path: Path, suffix: str, damage: str, clean: bool
) -> None:
    directory = write_values(tmp_path, clean=clean)
    before = {path.name: path.read_bytes() for path in directory.glob(f"*.{suffix}")}
    for path in sorted(directory.glob(f"*.{suffix}")):
        content = path.read_bytes()
        if damage == "missing":
            path.unlink()
        elif damage == "empty":
            path.write_bytes(b"")
        elif damage == "odd":
            path.write_bytes(content + b"\0\0\0")
        elif damage == "zeros":
            path.write_bytes(content + bytes(240))
        else:
            path.write_bytes(content + b"\x7f" * 24)
    manager, log = start(tmp_path)
    check_whole(log)
    manager.close()
    if damage != "empty":
        rebuilt = {path.name: path.read_bytes() for path in directory.glob(f"*.{suffix}")}
        assert rebuilt.keys() == before.keys()
        assert all(
            len(content) % (8 if suffix == "index" else 12) == 0 for content in rebuilt.values()
        )


def test_a_damaged_snapshot_is_replaced_by_the_one_before_and_a_replay(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=True)
    newest = max(directory.glob("*.snapshot"))
    newest.write_bytes(newest.read_bytes()[:-1])
    manager, log = start(tmp_path)
    check_whole(log)
    manager.close()


def test_without_any_snapshot_the_log_is_replayed(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=False)
    for path in directory.glob("*.snapshot"):
        path.unlink()
    manager, log = start(tmp_path)
    check_whole(log)
    manager.close()


def test_lost_leader_epochs_come_back_from_the_batches(tmp_path: Path) -> None:
    manager, log = start(tmp_path)
    append(log, b"a", leader_epoch=2)
    append(log, b"b", leader_epoch=6)
    abandon(manager)
    (tmp_path / "t-0/leader-epoch-checkpoint").write_text("rubbish")
    manager, log = start(tmp_path)
    assert log.epochs.history.entries == [(2, 0), (6, 1)]
    manager.close()


@pytest.mark.parametrize("torn", ["", "0\n", "0\n2\n2 0\n"])
def test_torn_leader_epochs_come_back_from_synced_batches_too(tmp_path: Path, torn: str) -> None:
    manager, log = start(tmp_path)
    append(log, b"a", leader_epoch=2)
    append(log, b"b", leader_epoch=6)
    manager.close()
    (tmp_path / "t-0/leader-epoch-checkpoint").write_text(torn)
    manager, log = start(tmp_path)
    assert log.epochs.history.entries == [(2, 0), (6, 1)]
    assert values_of(log) == [b"a", b"b"]
    manager.close()


def test_an_empty_epoch_file_of_a_log_without_records_is_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka makes one with every partition."""
    start(tmp_path)[0].close()
    (tmp_path / "t-0/leader-epoch-checkpoint").write_text("")
    manager, log = start(tmp_path)
    assert log.epochs.history.entries == []
    assert "leader-epoch-checkpoint" not in caplog.text
    manager.close()


def test_leader_epochs_that_a_start_changes_survive_a_power_cut(tmp_path: Path) -> None:
    """The last epoch has no record and is forgotten; a roll makes the file's new name durable."""
    files = FaultyFiles(str(tmp_path))
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    append(log, b"a", leader_epoch=2)
    log.begin_leader_epoch(3)
    manager.close()
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    assert log.epochs.history.entries == [(2, 0)]
    log.roll()
    abandon(manager)
    files.power_cut()
    assert (tmp_path / "t-0/leader-epoch-checkpoint").read_text() == "0\n1\n2 0\n"


def test_deleted_segments_that_a_power_cut_brings_back_have_their_epochs(tmp_path: Path) -> None:
    """The epochs are stored at once, and the names of the deleted segments are not synced yet."""
    files = FaultyFiles(str(tmp_path))
    settings = config(segment_bytes=2000, retention_bytes=1, retention_ms=-1)
    manager, log = start(tmp_path, settings, files)
    for epoch in (2, 4):
        append(log, b"x", leader_epoch=epoch)
        log.roll()
    append(log, b"x", leader_epoch=7)
    flush(log)
    manager.checkpoint_now()
    assert retention.delete_old_segments(log, log.log_end_offset, NOW_MS) == 2
    assert log.epochs.history.entries == [(7, 2)]
    abandon(manager)
    files.power_cut()
    manager, log = start(tmp_path, settings)
    assert len(log.segments) == 3
    assert log.epochs.history.entries == [(2, 0), (4, 1), (7, 2)]
    manager.close()
    assert (tmp_path / "t-0/leader-epoch-checkpoint").read_text() == "0\n3\n2 0\n4 1\n7 2\n"


def test_producers_that_a_stop_wrote_survive_a_power_cut(tmp_path: Path) -> None:
    """All records were synced before, only the snapshot is new."""
    files = FaultyFiles(str(tmp_path))
    manager, log = start(tmp_path, files=files)
    append(log, b"a", producer_id=5, producer_epoch=0, sequence=0)
    flush(log)
    manager.close()
    (snapshot,) = (tmp_path / "t-0").glob("*.snapshot")
    content = snapshot.read_bytes()
    files.sync_directory(f"{tmp_path}/t-0")  # its name is durable sooner or later
    files.power_cut()
    assert snapshot.read_bytes() == content


def test_a_closed_segment_has_its_last_time_after_a_power_cut(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir()
    files = FaultyFiles(str(path))
    waiting: list[Callable[[], None]] = []
    manager = open_manager(str(path), files=files, topic=SETTINGS, run_later=waiting.append)
    log = manager.create_log("t", 0, TOPIC_ID, SETTINGS)
    for number, value in enumerate(VALUES[:4]):
        append(log, value, timestamp_ms=NOW_MS + number)
    sync(manager, log)
    waiting.clear()
    log.roll()
    waiting[0]()  # the files of the new segment; the sync of the old one comes too late
    abandon(manager)
    LogDirectory.held.discard(str(path))
    files.power_cut(keep_nothing, keep_everything)
    files.forget_pins()
    assert broken_things(path, is_strict=False) == []
    manager, log = start(path)
    assert [segment.base_offset for segment in log.segments] == [0, 4]
    assert log.segments.first.max_timestamp == NOW_MS + 3
    assert log.segments.first.time_index.last_entry() == (NOW_MS + 3, 3)
    found = log_reads.offset_for_timestamp(log, NOW_MS + 3)
    assert found is not None
    assert found.offset == 3
    abandon(manager)


def test_lost_checkpoints_lose_nothing(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    for path in tmp_path.glob("*checkpoint"):
        path.write_text("0\n1\nnonsense\n")
    manager, log = start(tmp_path)
    check_whole(log)
    manager.close()


def test_leftovers_of_deletion_and_compaction_go(tmp_path: Path) -> None:
    """A finished `.swap` replaces the segment it covers; `.cleaned` and `.deleted` files go; an
    index without its log goes.
    """
    directory = write_values(tmp_path, clean=True)
    first, second = sorted(path.stem for path in directory.glob("*.log"))[:2]
    for suffix in ("log", "index", "timeindex"):
        shutil.copy(directory / f"{first}.{suffix}", directory / f"{first}.{suffix}.swap")
        shutil.copy(directory / f"{first}.{suffix}", directory / f"{second}.{suffix}.deleted")
    (directory / f"{'9' * 20}.log.cleaned").write_bytes(b"half")
    (directory / f"{'7' * 20}.index").write_bytes(b"")
    manager, log = start(tmp_path)
    check_whole(log)
    left = {path.name for path in directory.iterdir()}
    assert not any(name.endswith((".swap", ".cleaned", ".deleted")) for name in left)
    assert f"{'7' * 20}.index" not in left
    manager.close()


def test_a_swap_that_was_still_being_cleaned_goes_with_its_source(tmp_path: Path) -> None:
    directory = write_values(tmp_path, clean=True)
    first = min(path.stem for path in directory.glob("*.log"))
    (directory / f"{first}.log.swap").write_bytes(b"half")
    (directory / f"{first}.log.cleaned").write_bytes(b"half")
    manager, log = start(tmp_path)
    check_whole(log)
    manager.close()


def test_a_log_that_ends_before_its_start_begins_empty_there(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 100\n")
    manager, log = start(tmp_path)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert append(log, b"a") == 100
    manager.close()


def test_the_log_start_offset_survives(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    manager, log = start(tmp_path)
    log.advance_log_start(7)
    manager.close()
    manager, log = start(tmp_path)
    assert log.log_start_offset == 7
    manager.close()


class UnreadableFiles(Files):
    """Partition directories cannot be listed."""

    __slots__ = ()

    def list_files(self, path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)


def test_a_directory_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    write_values(tmp_path, clean=True)
    with pytest.raises(StorageError, match=r"cannot load t-0 from .*Permission denied"):
        start(tmp_path, files=UnreadableFiles())


def test_asking_for_producers_does_not_read_this_runs_records(tmp_path: Path) -> None:
    """A log without producer ids grows large before somebody asks for the last stable offset."""
    files = CountingFiles()
    manager, log = start(tmp_path, config(), files)
    for _ in range(50):
        append(log, b"x" * 10_000)
    before = files.read_bytes
    assert log.last_stable_offset == 50
    assert log.producers.loaded().producers == {}
    assert files.read_bytes == before
    manager.close()
