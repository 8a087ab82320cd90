"""A round over a log: what a reader finds afterwards, and what the directory holds."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.compaction.cleaning import CleaningAborted, replace_segments
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.records.batch import DELETE_HORIZON_FLAG
from tests.support.compaction import (
    DAY_MS,
    NoHurry,
    compact,
    end_transaction,
    put,
    roll_and_compact,
)
from tests.support.faulty_files import PowerCut
from tests.support.logs import (
    NOW_MS,
    NewLog,
    abandon,
    fill_segments,
    flush,
    logs_on_faulty_files,
    names_of,
    open_manager,
    records_of,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog


def _clean(log: PartitionLog, bases: dict[int, list[int]]) -> None:
    """Write a cleaner's output: at each base offset the bytes of the segments named beside it."""
    directory = Path(log.directory)
    for base, sources in bases.items():
        content = b"".join((directory / f"{source:020d}.log").read_bytes() for source in sources)
        (directory / f"{base:020d}.log.cleaned").write_bytes(content)
        for suffix in (".index", ".timeindex"):
            (directory / f"{base:020d}{suffix}.cleaned").write_bytes(b"")


def test_replaced_segments_are_served_from_the_new_files(new_log: NewLog) -> None:
    log = new_log()
    fill_segments(log, 4)
    later: list[Callable[[], None]] = []
    log.disk.run_after = lambda _delay_ms, task: later.append(task)
    old = list(log.segments)[:4]
    _clean(log, {0: [0], 2: [2, 3]})
    records = log_reads.read(log, 1, 1000, end_offset=4, min_one_batch=True).records
    assert replace_segments(log, [0, 2], old)
    assert log.segments.base_offsets == [0, 2, 4]
    assert values_of(log) == [b"0", b"2", b"3"]
    assert len(bytes(records)) > 0
    assert f"{1:020d}.snapshot.deleted" in names_of(log, ".deleted")
    assert f"{2:020d}.snapshot" in names_of(log, ".snapshot")
    for task in later:
        task()
    assert names_of(log, ".deleted") == []
    assert names_of(log, ".log") == [f"{base:020d}.log" for base in (0, 2, 4)]


def test_nothing_is_replaced_when_a_segment_is_gone(new_log: NewLog) -> None:
    log = new_log()
    fill_segments(log, 3)
    old = list(log.segments)[:2]
    _clean(log, {0: [0, 1]})
    log.remove_segments(old[:1])
    assert not replace_segments(log, [0], old)
    assert names_of(log, ".cleaned") == []
    assert values_of(log, 1) == [b"1", b"2"]


@pytest.mark.parametrize("loses_power", [False, True])
def test_a_crash_at_any_step_of_a_replacement_leaves_the_old_or_the_new(
    tmp_path: Path, *, loses_power: bool
) -> None:
    """Every step is tried, until the replacement has no further one."""
    outcomes = set()
    for step, files, manager, log in logs_on_faulty_files(tmp_path, 200, 4):
        root = log.log_directory
        _clean(log, {0: [0], 2: [2, 3]})
        flush(log)
        files.sync_directory(log.directory)
        for path in Path(log.directory).glob("*.cleaned"):
            files.sync_path(str(path))
        files.cut_at = files.call_count + step
        finished = False
        try:
            finished = replace_segments(log, [0, 2], list(log.segments)[:4])
        except PowerCut:
            if loses_power:
                files.power_cut()
        files.cut_at = -1
        abandon(manager)
        again = open_manager(root, files=files)
        reopened = again.logs[log.name]
        values = tuple(values_of(reopened))
        assert values in {(b"0", b"1", b"2", b"3"), (b"0", b"2", b"3")}
        assert not names_of(reopened, ".cleaned", ".swap", ".deleted")
        outcomes.add(values)
        abandon(again)
        files.forget_pins()
        shutil.rmtree(root)
        if finished:
            break
    else:
        pytest.fail("200 steps and no end")
    assert len(outcomes) == 2


def test_a_replacement_without_room_is_undone_or_ends_the_directory(tmp_path: Path) -> None:
    """Names that were changed half-way are no log that could be served on."""
    outcomes = []
    for step, files, manager, log in logs_on_faulty_files(tmp_path, 200, 4):
        root = log.log_directory
        _clean(log, {0: [0], 2: [2, 3]})
        refusal = None
        files.fail_at = files.call_count + step
        try:
            replace_segments(log, [0, 2], list(log.segments)[:4])
        except StorageError as error:
            refusal = error
        files.fail_at = -1
        if refusal is not None and not refusal.is_lasting:
            assert values_of(log) == [b"0", b"1", b"2", b"3"]
            assert not names_of(log, ".cleaned", ".swap", ".deleted")
        abandon(manager)
        again = open_manager(root, files=files)
        values = values_of(again.logs[log.name])
        assert values in ([b"0", b"1", b"2", b"3"], [b"0", b"2", b"3"])
        abandon(again)
        files.forget_pins()
        outcomes.append(None if refusal is None else refusal.is_lasting)
        if refusal is None:
            break
    assert outcomes[0] is False
    assert outcomes[-2:] == [True, None]


def found_in(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(log)]


def headers_of(log: PartitionLog) -> list[tuple[int, int, int]]:
    """(base offset, last offset, count) of every batch."""
    return [
        (header.base_offset, header.last_offset, header.count)
        for segment in log.segments
        for _, header in segment.headers()
    ]


def files_of(log: PartitionLog) -> set[str]:
    return {path.name for path in Path(log.directory).iterdir()}


def test_the_last_value_of_every_key_is_left(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    for number in range(5):
        put(log, (b"a", b"%d" % number), (b"b", b"%d" % number), (b"k%d" % number, b"once"))
    selection = roll_and_compact(log)
    assert (selection.first_dirty_offset, selection.end_offset, log.clean_offset) == (0, 15, 15)
    once = [(3 * number + 2, b"k%d" % number, b"once") for number in range(4)]
    assert found_in(log) == [*once, (12, b"a", b"4"), (13, b"b", b"4"), (14, b"k4", b"once")]
    assert log.log_start_offset == 0
    assert log.log_end_offset == 15


def test_the_active_segment_is_left_alone(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    compact(log)
    assert len(found_in(log)) == 2
    log.roll()
    put(log, (b"a", b"3"))
    put(log, (b"a", b"4"))
    compact(log)
    assert [value for _, _, value in found_in(log)] == [b"2", b"3", b"4"]


def test_segments_become_one_and_their_files_go(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact", segment_bytes=10_000)
    for number in range(6):
        put(log, (b"a", b"%d" % number), (b"k%d" % number, b"v"))
        log.roll()
    compact(log)
    assert log.segments.base_offsets == [0, 12]
    assert not any(name.endswith((".cleaned", ".swap")) for name in files_of(log))
    assert {name for name in files_of(log) if name.endswith(".log")} == {
        f"{0:020d}.log",
        f"{12:020d}.log",
    }
    assert len(found_in(log)) == 7


def test_a_reader_finds_the_next_record_behind_a_gap(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    for number in range(4):
        put(log, (b"a", b"%d" % number))
        log.roll()
    put(log, (b"z", b"end"))
    compact(log)
    for offset in range(4):
        assert [record.offset for record in records_of(log, offset)] == [3, 4]


def test_a_log_of_which_nothing_is_left_goes_on(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact", delete_retention_ms=10)
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    roll_and_compact(log)
    put(log, (b"b", b"1"))
    put(log, (b"b", None))
    roll_and_compact(log, NOW_MS + 20)
    put(log, (b"c", b"1"))
    roll_and_compact(log, NOW_MS + 40)
    assert found_in(log) == [(4, b"c", b"1")]
    assert [record.offset for record in records_of(log, 0)] == [4]


def test_tombstones_stay_for_their_time(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact", delete_retention_ms=DAY_MS)
    put(log, (b"a", b"1"))
    put(log, (b"a", None), (b"b", b"1"))
    roll_and_compact(log)
    assert found_in(log) == [(1, b"a", None), (2, b"b", b"1")]
    put(log, (b"x", b"1"))
    roll_and_compact(log, NOW_MS + DAY_MS - 1)
    assert found_in(log)[0] == (1, b"a", None)
    put(log, (b"x", b"2"))
    roll_and_compact(log, NOW_MS + DAY_MS)
    assert [key for _, key, _ in found_in(log)] == [b"b", b"x"]


def test_more_keys_than_memory_take_more_rounds(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact", segment_bytes=2000)
    for number in range(60):
        put(log, (b"a", b"%d" % number), (b"key-%02d" % number, b"1"), (b"key-%02d" % number, b"2"))
    log.roll()
    rounds = 0
    while log.clean_offset is None or log.clean_offset < log.active_segment.base_offset:
        old_clean_offset = log.clean_offset or 0
        compact(log, keys_max=7)
        assert log.clean_offset is not None
        assert log.clean_offset > old_clean_offset
        rounds += 1
    assert rounds >= 60 // 7
    rows = found_in(log)
    assert [key for _, key, _ in rows] == [b"key-%02d" % n for n in range(59)] + [b"a", b"key-59"]
    assert {value for _, key, value in rows if key != b"a"} == {b"2"}


def test_a_batch_of_more_keys_than_memory_is_done_in_parts(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    put(log, *[(b"%d" % (number % 10), b"%d" % number) for number in range(40)])
    log.roll()
    ends = []
    while log.clean_offset is None or log.clean_offset < 40:
        compact(log, keys_max=3)
        assert log.clean_offset is not None
        ends.append(log.clean_offset)
    assert ends == sorted(set(ends))
    assert [value for _, _, value in found_in(log)] == [b"%d" % number for number in range(30, 40)]


def test_a_batch_larger_than_the_buffer_is_read_whole(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    put(log, (b"a", b"x" * 5000), (b"a", b"y" * 5000))
    put(log, (b"b", b"z"))
    log.roll()
    compact(log, chunk_bytes=100)
    assert found_in(log) == [(1, b"a", b"y" * 5000), (2, b"b", b"z")]


def test_the_last_sequence_of_a_producer_outlives_its_records(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    for sequence in range(3):
        put(log, (b"a", b"%d" % sequence), producer_id=7, sequence=sequence)
    put(log, (b"a", b"last"))
    roll_and_compact(log)
    assert headers_of(log) == [(2, 2, 0), (3, 3, 1)]
    # As after a start without a snapshot: the state comes from the batches.
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    log.producers.state = None
    log.producers.known_to = log.log_end_offset
    assert log.producers.loaded().producers[7].last_sequence == 2
    put(log, (b"a", b"next"), producer_id=7, sequence=3)
    roll_and_compact(log)
    assert headers_of(log) == [(4, 4, 1)]


def test_transactions(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact", delete_retention_ms=1000)
    put(log, (b"a", b"committed"), producer_id=1, sequence=0, is_transactional=True)
    end_transaction(log, 1, is_commit=True)
    put(log, (b"a", b"aborted"), producer_id=1, sequence=1, is_transactional=True)
    put(log, (b"b", b"aborted"), producer_id=1, sequence=2, is_transactional=True)
    end_transaction(log, 1, is_commit=False)
    put(log, (b"c", b"open"), producer_id=1, sequence=3, is_transactional=True)
    log.roll()
    compact(log)
    assert log.clean_offset is None or log.clean_offset == 0, "an open transaction holds it up"
    end_transaction(log, 1, is_commit=True)
    roll_and_compact(log)
    data = [(offset, key) for offset, key, value in found_in(log) if value and b"k" not in key]  # type: ignore[operator]
    assert (0, b"a") in data
    assert all(key != b"b" for _, key in data)
    markers = [
        (header.base_offset, bool(header.attributes & DELETE_HORIZON_FLAG))
        for segment in log.segments
        for _, header in segment.headers()
        if header.is_control
    ]
    assert markers == [(1, False), (4, False), (6, False)]
    # The batches of the aborted one are gone now, so a second round dates its marker.
    put(log, (b"x", b"1"))
    roll_and_compact(log)
    assert _markers(log) == [(1, False), (4, True), (6, False)]
    put(log, (b"x", b"2"))
    roll_and_compact(log, NOW_MS + 1000)
    assert _markers(log) == [(1, False), (6, False)]


def _markers(log: PartitionLog) -> list[tuple[int, bool]]:
    return [
        (header.base_offset, bool(header.attributes & DELETE_HORIZON_FLAG))
        for segment in log.segments
        for _, header in segment.headers()
        if header.is_control
    ]


def test_the_transaction_index_follows_the_data(new_log: NewLog) -> None:
    """An empty batch kept for its producer still belongs to its aborted transaction."""
    log = new_log(cleanup_policy="compact", delete_retention_ms=0)
    put(log, (b"a", b"1"), producer_id=1, sequence=0, is_transactional=True)
    end_transaction(log, 1, is_commit=False)
    roll_and_compact(log)
    assert headers_of(log) == [(0, 0, 0), (1, 1, 1)]
    assert [
        transaction.last_offset for transaction in log_reads.aborted_transactions(log, 0, 2)
    ] == [1]
    put(log, (b"b", b"1"), producer_id=1, sequence=1)
    roll_and_compact(log)
    roll_and_compact(log)
    put(log, (b"x", b"1"))
    roll_and_compact(log)
    assert log_reads.aborted_transactions(log, 0, 2) == []


def test_old_tombstones_go_by_the_age_of_their_segment(new_log: NewLog) -> None:
    log = new_log(
        cleanup_policy="compact",
        message_format_version="0.10.0",
        delete_retention_ms=60_000,
        segment_bytes=170,  # no two become one
    )
    put(log, (b"a", b"1"), (b"a", None), (b"b", b"1" * 60))
    roll_and_compact(log)
    assert [key for _, key, _ in found_in_old(log)] == [b"a", b"b"]
    first = Path(log.segments.first.log_path)
    log.files.set_modified_ms(str(first), NOW_MS)
    put(log, (b"c", b"1" * 60))
    log.roll()
    second = log.segments.higher(0)
    assert second is not None
    log.files.set_modified_ms(second.log_path, NOW_MS + 60_001)
    compact(log)
    assert [key for _, key, _ in found_in_old(log)] == [b"a", b"b", b"c"]
    put(log, (b"d", b"1" * 60))
    log.roll()
    compact(log)
    assert [key for _, key, _ in found_in_old(log)] == [b"b", b"c", b"d"]


def found_in_old(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    from minibroker.kafka.records.conversion import read_records  # noqa: PLC0415

    rows = []
    for segment in log.segments:
        content = Path(segment.log_path).read_bytes()
        for position, header in segment.headers():
            rows += [(r.offset, r.key, r.value) for r in read_records(content, position, header)]
    return rows


def test_a_segment_that_went_meanwhile_ends_the_round(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    log.roll()
    put(log, (b"a", b"2"))
    log.roll()
    put(log, (b"b", b"1"))
    is_first = True

    def remove() -> None:
        nonlocal is_first
        if is_first:
            log.remove_segments([log.segments.first])
        is_first = False

    with pytest.raises(CleaningAborted):
        compact(log, pace=NoHurry(remove))
    assert [offset for offset, _, _ in found_in(log)] == [1, 2]
    assert not any(name.endswith((".cleaned", ".swap")) for name in files_of(log))


def test_a_truncation_meanwhile_ends_the_round(new_log: NewLog) -> None:
    """Even where the segments are as long as before: what is in them is not what was read."""
    log = new_log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll()
    is_first = True

    def truncate() -> None:
        nonlocal is_first
        if is_first:
            log.truncate_to(1)
            put(log, (b"b", b"3"))
            log.roll()
        is_first = False

    with pytest.raises(CleaningAborted):
        compact(log, pace=NoHurry(truncate))
    assert found_in(log) == [(0, b"a", b"1"), (1, b"b", b"3")]
    assert not any(name.endswith((".cleaned", ".swap")) for name in files_of(log))


def test_a_stopped_round_leaves_nothing(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact", segment_bytes=2000)
    for number in range(50):
        put(log, (b"a", b"%d" % number))
    log.roll()
    chunks = 0

    def stop() -> None:
        nonlocal chunks
        chunks += 1
        if chunks == 5:
            raise CleaningAborted

    with pytest.raises(CleaningAborted):
        compact(log, pace=NoHurry(stop), chunk_bytes=300)
    assert len(found_in(log)) == 50
    assert not any(name.endswith((".cleaned", ".swap")) for name in files_of(log))


def test_bytes_that_are_no_log_are_refused(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    put(log, (b"a", b"1"), (b"b", b"2"))
    log.roll()
    path = Path(log.segments.first.log_path)
    content = bytearray(path.read_bytes())
    content[61] = 0x7E  # the first record is longer than its batch
    path.write_bytes(content)
    with pytest.raises(CorruptionError):
        compact(log)
    path.write_bytes(content[:-3])
    log.segments.first._size_bytes = len(content) - 3
    with pytest.raises(CorruptionError, match="beyond the end"):
        compact(log)


def test_a_segment_keeps_its_age(new_log: NewLog) -> None:
    log = new_log(cleanup_policy="compact")
    put(log, (b"a", b"1"))
    log.roll()
    log.files.set_modified_ms(log.segments.first.log_path, 1_600_000_000_000)
    compact(log)
    assert log.segments.first.modified_ms == 1_600_000_000_000
