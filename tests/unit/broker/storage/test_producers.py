"""Producers of a log: loaded beside the loop, kept, and their earlier batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import producer_state
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.open_files import ColdError
from minibroker.broker.storage.producers import LogProducers, ProducersLoad
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.records.batch import read_header
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    NewLog,
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

if TYPE_CHECKING:
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import AppendInfo, PartitionLog


def loading(log: PartitionLog, *, end_offset: int | None = None) -> ProducersLoad:
    return ProducersLoad(
        log.files,
        log.name,
        log.directory,
        log.segments,
        log_start_offset=log.log_start_offset,
        end_offset=log.log_end_offset if end_offset is None else end_offset,
        now_ms=NOW_MS,
        expiration_ms=1 << 40,
        on_loaded=lambda _load: None,
    )


@pytest.fixture
def log(new_log: NewLog) -> PartitionLog:
    """Twelve batches of producer 3 in three segments."""
    new = new_log()
    for sequence in range(12):
        if sequence in {4, 8}:
            new.roll()
        append(new, b"v", producer_id=3, producer_epoch=0, sequence=sequence)
    flush(new)
    return new


def test_the_producers_are_those_at_the_offset(log: PartitionLog) -> None:
    assert loading(log).producers()[3].last_sequence == 11
    assert loading(log, end_offset=6).producers()[3].last_sequence == 5


def test_a_snapshot_that_is_damaged_is_left_where_it_is(log: PartitionLog) -> None:
    path = f"{log.directory}/{8:020d}.snapshot"
    REAL_FILES.write_atomically(path, b"\0\1damaged")
    assert loading(log).producers()[3].last_sequence == 11
    assert Path(path).exists()


def test_a_segment_that_retention_took_is_passed_by(log: PartitionLog) -> None:
    load = loading(log)
    log.advance_log_start(8)
    log.remove_segments(list(log.segments)[:2])
    assert load.producers()[3].last_sequence == 11


def test_no_file_is_changed(log: PartitionLog) -> None:
    """Indexes that are damaged are left to who owns the segments."""
    for path in Path(log.directory).glob("*.index"):
        path.write_bytes(b"odd")
    contents = {path: path.read_bytes() for path in Path(log.directory).iterdir()}
    for path in Path(log.directory).glob("*.snapshot"):
        contents[path] = b""
        path.write_bytes(b"")
    assert loading(log).producers()[3].last_sequence == 11
    assert {path: path.read_bytes() for path in Path(log.directory).iterdir()} == contents


def test_after_a_failure_it_is_tried_again(log: PartitionLog) -> None:
    load = loading(log)
    hidden = f"{log.directory}-hidden"
    REAL_FILES.replace(log.directory, hidden)
    load()
    assert isinstance(load.failure, FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        load.producers()
    REAL_FILES.replace(hidden, log.directory)
    assert load.producers()[3].last_sequence == 11
    assert load.failure is None


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


PRODUCER = 7


def produce(
    opened_log: PartitionLog,
    sequence: int,
    *,
    producer_id: int = PRODUCER,
    epoch: int = 0,
) -> AppendInfo:
    """Append one record as an idempotent producer does, or repeat it."""
    records = batch(
        b"%d/%d" % (producer_id, sequence),
        producer_id=producer_id,
        producer_epoch=epoch,
        sequence=sequence,
    )
    info = append_records(opened_log, records, 0, NOW_MS)
    opened_log.write_staged()
    return info


def restarted(manager: LogManager, *, is_clean: bool, files: Files | None = None) -> PartitionLog:
    """Return the log after a stop, or a kill -9, and a start."""
    paths = [directory.path for directory in manager.directories]
    if is_clean:
        manager.close()
    else:
        abandon(manager)
    options = {} if files is None else {"files": files}
    (opened_log,) = open_manager(*paths, **options).logs.values()  # type: ignore[arg-type]
    return opened_log


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    return open_manager(str(tmp_path))


@pytest.fixture
def opened_log(manager: LogManager) -> PartitionLog:
    return manager.create_log("t", 0, TOPIC_ID, config())


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("synced", [1, 3, 5, 9, 12])
def test_five_batches_whose_answers_were_lost_are_known_again(
    manager: LogManager, opened_log: PartitionLog, synced: int, *, is_clean: bool
) -> None:
    for sequence in range(12):
        produce(opened_log, sequence)
        produce(opened_log, sequence, producer_id=8)
        if sequence + 1 == synced:
            sync(manager, opened_log)
    opened_log = restarted(manager, is_clean=is_clean)
    old_values = values_of(opened_log)
    for sequence in range(7, 12):
        info = produce(opened_log, sequence)
        assert (info.duplicate, info.first_offset) == (True, 2 * sequence)
    assert values_of(opened_log) == old_values
    assert produce(opened_log, 12).first_offset == 24


def test_a_sixth_batch_is_out_of_order_as_before_the_restart(
    manager: LogManager, opened_log: PartitionLog
) -> None:
    for sequence in range(12):
        produce(opened_log, sequence)
    opened_log = restarted(manager, is_clean=True)
    for sequence in (6, 0):
        with pytest.raises(KafkaError) as caught:
            produce(opened_log, sequence)
        assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batches_that_come_after_the_start_count_among_the_five(
    manager: LogManager, opened_log: PartitionLog
) -> None:
    for sequence in range(10):
        produce(opened_log, sequence)
    opened_log = restarted(manager, is_clean=True)
    produce(opened_log, 10)
    produce(opened_log, 11)
    assert produce(opened_log, 7).duplicate
    with pytest.raises(KafkaError):
        produce(opened_log, 6)


def test_batches_of_an_earlier_epoch_do_not_count(
    manager: LogManager, opened_log: PartitionLog
) -> None:
    for sequence in range(4):
        produce(opened_log, sequence)
    produce(opened_log, 0, epoch=1)
    produce(opened_log, 1, epoch=1)
    opened_log = restarted(manager, is_clean=True)
    assert produce(opened_log, 0, epoch=1).duplicate
    with pytest.raises(KafkaError):
        produce(opened_log, 2 + (1 << 20), epoch=1)
    with pytest.raises(KafkaError) as caught:
        produce(opened_log, 3)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_earlier_batches_are_read_from_closed_segments(manager: LogManager) -> None:
    opened_log = manager.create_log("t", 0, TOPIC_ID, config(index_interval_bytes=1))
    for sequence in range(6):
        produce(opened_log, sequence)
        for _ in range(20):
            append(opened_log, b"other")
        opened_log.roll()
    flush(opened_log)
    opened_log = restarted(manager, is_clean=True)
    for sequence in range(1, 6):
        assert produce(opened_log, sequence).first_offset == 21 * sequence


def test_a_batch_that_retention_took_is_out_of_order(
    manager: LogManager, opened_log: PartitionLog
) -> None:
    for sequence in range(6):
        produce(opened_log, sequence)
        opened_log.roll()
    opened_log.advance_log_start(4)
    opened_log.remove_segments(list(opened_log.segments)[:4])
    opened_log = restarted(manager, is_clean=True)
    assert produce(opened_log, 4).duplicate
    with pytest.raises(KafkaError):
        produce(opened_log, 3)


def test_a_start_reads_none_of_them(manager: LogManager, opened_log: PartitionLog) -> None:
    """A producer that goes on where it was has no need of them."""
    for sequence in range(8):
        produce(opened_log, sequence)
    opened_log = restarted(manager, is_clean=True)
    produce(opened_log, 8)
    earlier = opened_log.producers.loaded().earlier
    assert earlier is not None
    assert (earlier.start, earlier.room) == (8, producer_state.BATCHES_MAX)


def test_one_walk_serves_all_producers(manager: LogManager, opened_log: PartitionLog) -> None:
    for sequence in range(8):
        for producer_id in range(5):
            produce(opened_log, sequence, producer_id=producer_id)
    opened_log = restarted(manager, is_clean=True)
    assert produce(opened_log, 3, producer_id=0).duplicate
    earlier = opened_log.producers.loaded().earlier
    assert earlier is not None
    room = earlier.room
    for producer_id in range(5):
        for sequence in range(3, 8):
            assert produce(opened_log, sequence, producer_id=producer_id).duplicate
    assert earlier.room == room


def test_the_walk_goes_on_where_the_last_one_ended(
    manager: LogManager, opened_log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producer 1 is further back than producer 0."""
    monkeypatch.setattr("minibroker.broker.storage.producers._PART_OFFSETS", 4)
    for producer_id in (1, 0):
        for sequence in range(9):
            produce(opened_log, sequence, producer_id=producer_id)
            opened_log.roll()
    opened_log = restarted(manager, is_clean=True)
    assert produce(opened_log, 4, producer_id=0).duplicate
    earlier = opened_log.producers.loaded().earlier
    assert earlier is not None
    assert 9 <= earlier.start < 18
    assert produce(opened_log, 4, producer_id=1).duplicate
    assert 0 < earlier.start < 9


def test_the_headers_that_are_read_are_bounded(
    manager: LogManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer that claims what nobody sent costs one walk, and no second one."""
    monkeypatch.setattr(producer_state, "BATCHES_MAX", 20)
    monkeypatch.setattr("minibroker.broker.storage.producers._PART_OFFSETS", 8)
    opened_log = manager.create_log("t", 0, TOPIC_ID, config(index_interval_bytes=1))
    for sequence in range(3):
        produce(opened_log, sequence + 100)
    for _ in range(60):
        append(opened_log, b"other")
    opened_log = restarted(manager, is_clean=True)
    for _ in range(2):
        with pytest.raises(KafkaError):
            produce(opened_log, 50)
    earlier = opened_log.producers.loaded().earlier
    assert earlier is not None
    assert earlier.room <= 0 < earlier.start


def test_a_bounded_append_waits_for_them_beside_the_loop(
    manager: LogManager, opened_log: PartitionLog
) -> None:
    for sequence in range(8):
        produce(opened_log, sequence)
    opened_log = restarted(manager, is_clean=True)
    produce(opened_log, 8)
    records = batch(b"x", producer_id=PRODUCER, producer_epoch=0, sequence=5)
    unchanged = bytes(records)
    with pytest.raises(ColdError) as caught:
        append_records(
            opened_log, records, 0, NOW_MS, is_bounded=True, header=read_header(records, 0)
        )
    assert bytes(records) == unchanged
    caught.value.load(lambda: None)
    info = append_records(
        opened_log, records, 0, NOW_MS, is_bounded=True, header=read_header(records, 0)
    )
    assert (info.duplicate, info.first_offset) == (True, 5)


def test_a_load_of_a_log_that_was_cut_meanwhile_is_dropped(
    manager: LogManager, opened_log: PartitionLog
) -> None:
    for sequence in range(8):
        produce(opened_log, sequence)
    opened_log = restarted(manager, is_clean=True)
    records = batch(b"x", producer_id=PRODUCER, producer_epoch=0, sequence=5)
    opened_log.producers.loaded()
    with pytest.raises(ColdError) as caught:
        opened_log.producers.require(read_header(records, 0))
    caught.value.task()
    opened_log.truncate_to(6)
    caught.value.task.apply()
    assert produce(opened_log, 5).duplicate
    assert produce(opened_log, 6).first_offset == 6


def test_a_disk_that_refuses_is_told_and_asked_again(
    manager: LogManager, opened_log: PartitionLog
) -> None:
    class Refusing(Files):
        is_refusing = False

        def list_files(self, path: str) -> list[str]:
            if self.is_refusing:
                raise OSError(5, "Input/output error")
            return super().list_files(path)

    for sequence in range(8):
        produce(opened_log, sequence)
    files = Refusing()
    opened_log = restarted(manager, is_clean=True, files=files)
    produce(opened_log, 8)
    files.is_refusing = True
    with pytest.raises(StorageError, match="Input/output error"):
        produce(opened_log, 5)
    files.is_refusing = False
    assert produce(opened_log, 5).duplicate
