"""A sync writes the producers beside the records, and a start begins there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import StorageError
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import TOPIC_ID, abandon, append, config, flush, open_manager, sync
from tests.support.watched_files import CountingFiles

if TYPE_CHECKING:
    from minibroker.broker.storage.partition_log import PartitionLog

PRODUCER = 4


def append_as_producer(log: PartitionLog, first: int, count: int) -> None:
    for number in range(first, first + count):
        append(log, b"x" * 1_000, producer_id=PRODUCER, producer_epoch=0, sequence=number)


def test_a_start_after_a_kill_reads_no_more_than_what_came_after_the_sync(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append_as_producer(log, 0, 500)
    sync(manager, log)
    append_as_producer(log, 500, 3)
    abandon(manager)
    files = CountingFiles()
    manager = open_manager(str(tmp_path), files=files)
    log = manager.logs[log.name]
    assert (log.log_end_offset, log.recovery_point) == (503, 500)
    assert log.producers.loaded().producers[PRODUCER].last_sequence == 502
    assert files.read_bytes < 60_000
    abandon(manager)


def test_the_snapshot_survives_a_power_cut(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path))
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append_as_producer(log, 0, 3)
    sync(manager, log)
    path = Path(log.directory, f"{3:020d}.snapshot")
    content = path.read_bytes()
    files.sync_directory(log.directory)  # its name is durable sooner or later
    abandon(manager)
    files.power_cut()
    assert path.read_bytes() == content
    files.forget_pins()


def test_a_snapshot_that_cannot_be_written_is_an_error_of_its_directory(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path))
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append_as_producer(log, 0, 1)
    flush(log)
    task = log.durability.sync_task()
    assert task is not None
    files.fail_at = files.call_count + 1
    with pytest.raises(StorageError, match="cannot write the producers of t-0") as raised:
        task()
    assert raised.value.log_directory == str(tmp_path)
    task()
    task.apply()
    assert Path(log.directory, f"{1:020d}.snapshot").exists()
    abandon(manager)
    files.forget_pins()
