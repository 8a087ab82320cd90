"""The five last batches of a producer are known after any start, though a snapshot has one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import producer_state
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.open_files import ColdError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.records.batch import read_header
from tests.support.logs import (
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

if TYPE_CHECKING:
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import AppendInfo, PartitionLog

PRODUCER = 7


def produce(
    log: PartitionLog, sequence: int, *, producer_id: int = PRODUCER, epoch: int = 0
) -> AppendInfo:
    """Append one record as an idempotent producer does, or repeat it."""
    sent = batch(
        b"%d/%d" % (producer_id, sequence),
        producer_id=producer_id,
        producer_epoch=epoch,
        sequence=sequence,
    )
    info = append_records(log, sent, 0, NOW_MS)
    log.write_staged()
    return info


def restarted(manager: LogManager, *, is_clean: bool, files: Files | None = None) -> PartitionLog:
    """Return the log after a stop, or a kill -9, and a start."""
    paths = [directory.path for directory in manager.directories]
    if is_clean:
        manager.close()
    else:
        abandon(manager)
    given = {} if files is None else {"files": files}
    (log,) = open_manager(*paths, **given).logs.values()  # type: ignore[arg-type]
    return log


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    return open_manager(str(tmp_path))


@pytest.fixture
def log(manager: LogManager) -> PartitionLog:
    return manager.create_log("t", 0, TOPIC_ID, config())


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("synced", [1, 3, 5, 9, 12])
def test_five_batches_whose_answers_were_lost_are_known_again(
    manager: LogManager, log: PartitionLog, synced: int, *, is_clean: bool
) -> None:
    for sequence in range(12):
        produce(log, sequence)
        produce(log, sequence, producer_id=8)
        if sequence + 1 == synced:
            sync(manager, log)
    log = restarted(manager, is_clean=is_clean)
    before = values_of(log)
    for sequence in range(7, 12):
        info = produce(log, sequence)
        assert (info.duplicate, info.first_offset) == (True, 2 * sequence)
    assert values_of(log) == before
    assert produce(log, 12).first_offset == 24


def test_a_sixth_batch_is_out_of_order_as_before_the_restart(
    manager: LogManager, log: PartitionLog
) -> None:
    for sequence in range(12):
        produce(log, sequence)
    log = restarted(manager, is_clean=True)
    for sequence in (6, 0):
        with pytest.raises(KafkaError) as caught:
            produce(log, sequence)
        assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batches_that_come_after_the_start_count_among_the_five(
    manager: LogManager, log: PartitionLog
) -> None:
    for sequence in range(10):
        produce(log, sequence)
    log = restarted(manager, is_clean=True)
    produce(log, 10)
    produce(log, 11)
    assert produce(log, 7).duplicate
    with pytest.raises(KafkaError):
        produce(log, 6)


def test_batches_of_an_earlier_epoch_do_not_count(manager: LogManager, log: PartitionLog) -> None:
    for sequence in range(4):
        produce(log, sequence)
    produce(log, 0, epoch=1)
    produce(log, 1, epoch=1)
    log = restarted(manager, is_clean=True)
    assert produce(log, 0, epoch=1).duplicate
    with pytest.raises(KafkaError):
        produce(log, 2 + (1 << 20), epoch=1)
    with pytest.raises(KafkaError) as caught:
        produce(log, 3)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_earlier_batches_are_read_from_closed_segments(manager: LogManager) -> None:
    log = manager.create_log("t", 0, TOPIC_ID, config(index_interval_bytes=1))
    for sequence in range(6):
        produce(log, sequence)
        for _ in range(20):
            append(log, b"other")
        log.roll()
    flush(log)
    log = restarted(manager, is_clean=True)
    for sequence in range(1, 6):
        assert produce(log, sequence).first_offset == 21 * sequence


def test_a_batch_that_retention_took_is_out_of_order(
    manager: LogManager, log: PartitionLog
) -> None:
    for sequence in range(6):
        produce(log, sequence)
        log.roll()
    log.advance_log_start(4)
    log.remove_segments(list(log.segments)[:4])
    log = restarted(manager, is_clean=True)
    assert produce(log, 4).duplicate
    with pytest.raises(KafkaError):
        produce(log, 3)


def test_a_start_reads_none_of_them(manager: LogManager, log: PartitionLog) -> None:
    """A producer that goes on where it was has no need of them."""
    for sequence in range(8):
        produce(log, sequence)
    log = restarted(manager, is_clean=True)
    produce(log, 8)
    earlier = log.producers.loaded().earlier
    assert earlier is not None
    assert (earlier.start, earlier.left) == (8, producer_state.BATCHES_MAX)


def test_one_walk_serves_all_producers(manager: LogManager, log: PartitionLog) -> None:
    for sequence in range(8):
        for producer_id in range(5):
            produce(log, sequence, producer_id=producer_id)
    log = restarted(manager, is_clean=True)
    assert produce(log, 3, producer_id=0).duplicate
    earlier = log.producers.loaded().earlier
    assert earlier is not None
    left = earlier.left
    for producer_id in range(5):
        for sequence in range(3, 8):
            assert produce(log, sequence, producer_id=producer_id).duplicate
    assert earlier.left == left


def test_the_walk_goes_on_where_the_last_one_ended(
    manager: LogManager, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producer 1 is further back than producer 0."""
    monkeypatch.setattr("minibroker.broker.storage.producers._PART_OFFSETS", 4)
    for producer_id in (1, 0):
        for sequence in range(9):
            produce(log, sequence, producer_id=producer_id)
            log.roll()
    log = restarted(manager, is_clean=True)
    assert produce(log, 4, producer_id=0).duplicate
    earlier = log.producers.loaded().earlier
    assert earlier is not None
    assert 9 <= earlier.start < 18
    assert produce(log, 4, producer_id=1).duplicate
    assert 0 < earlier.start < 9


def test_the_headers_that_are_read_are_bounded(
    manager: LogManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer that claims what nobody sent costs one walk, and no second one."""
    monkeypatch.setattr(producer_state, "BATCHES_MAX", 20)
    monkeypatch.setattr("minibroker.broker.storage.producers._PART_OFFSETS", 8)
    log = manager.create_log("t", 0, TOPIC_ID, config(index_interval_bytes=1))
    for sequence in range(3):
        produce(log, sequence + 100)
    for _ in range(60):
        append(log, b"other")
    log = restarted(manager, is_clean=True)
    for _ in range(2):
        with pytest.raises(KafkaError):
            produce(log, 50)
    earlier = log.producers.loaded().earlier
    assert earlier is not None
    assert earlier.left <= 0 < earlier.start


def test_a_bounded_append_waits_for_them_beside_the_loop(
    manager: LogManager, log: PartitionLog
) -> None:
    for sequence in range(8):
        produce(log, sequence)
    log = restarted(manager, is_clean=True)
    produce(log, 8)
    sent = batch(b"x", producer_id=PRODUCER, producer_epoch=0, sequence=5)
    unchanged = bytes(sent)
    with pytest.raises(ColdError) as caught:
        append_records(log, sent, 0, NOW_MS, is_bounded=True, header=read_header(sent, 0))
    assert bytes(sent) == unchanged
    caught.value.load(lambda: None)
    info = append_records(log, sent, 0, NOW_MS, is_bounded=True, header=read_header(sent, 0))
    assert (info.duplicate, info.first_offset) == (True, 5)


def test_a_load_of_a_log_that_was_cut_meanwhile_is_dropped(
    manager: LogManager, log: PartitionLog
) -> None:
    for sequence in range(8):
        produce(log, sequence)
    log = restarted(manager, is_clean=True)
    sent = batch(b"x", producer_id=PRODUCER, producer_epoch=0, sequence=5)
    log.producers.loaded()
    with pytest.raises(ColdError) as caught:
        log.producers.require(read_header(sent, 0))
    caught.value.task()
    log.truncate_to(6)
    caught.value.task.apply()
    assert produce(log, 5).duplicate
    assert produce(log, 6).first_offset == 6


def test_a_disk_that_refuses_is_told_and_asked_again(
    manager: LogManager, log: PartitionLog
) -> None:
    class Refusing(Files):
        is_refusing = False

        def list_files(self, path: str) -> list[str]:
            if self.is_refusing:
                raise OSError(5, "Input/output error")
            return super().list_files(path)

    for sequence in range(8):
        produce(log, sequence)
    files = Refusing()
    log = restarted(manager, is_clean=True, files=files)
    produce(log, 8)
    files.is_refusing = True
    with pytest.raises(StorageError, match="Input/output error"):
        produce(log, 5)
    files.is_refusing = False
    assert produce(log, 5).duplicate
