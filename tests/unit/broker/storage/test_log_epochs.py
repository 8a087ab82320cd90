"""The epochs of a log: every change of them reaches the file, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs, LogEpochs
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.kafka.ids import TopicPartition


@pytest.fixture
def epochs(tmp_path: Path) -> LogEpochs:
    """Epoch 2 from offset 0 on and 4 from 10 on, which are not stored."""
    known = LeaderEpochs()
    known.assign(2, 0)
    known.assign(4, 10)
    disk = Disk()
    place = PartitionDirectory(
        disk, TopicPartition("t", 0), str(tmp_path), None, has_new_names=False
    )
    return LogEpochs(disk, place, known)


def stored(directory: Path) -> list[tuple[int, int]] | None:
    path = directory / "leader-epoch-checkpoint"
    return LeaderEpochs.from_text(path.read_text()).entries if path.exists() else None


STORED: list[tuple[str, tuple[int, ...], list[tuple[int, int]]]] = [
    ("assign", (5, 20), [(2, 0), (4, 10), (5, 20)]),
    ("truncate_from_end", (10,), [(2, 0)]),
    ("truncate_from_start", (11,), [(4, 11)]),
    ("clear", (), []),
    ("store", (), [(2, 0), (4, 10)]),
]


@pytest.mark.parametrize(("method", "arguments", "left"), STORED)
def test_a_change_is_stored(
    epochs: LogEpochs,
    tmp_path: Path,
    method: str,
    arguments: tuple[int, ...],
    left: list[tuple[int, int]],
) -> None:
    getattr(epochs, method)(*arguments)
    assert epochs.history.entries == left
    assert stored(tmp_path) == left


def test_nothing_is_written_where_nothing_changes(epochs: LogEpochs, tmp_path: Path) -> None:
    assert not epochs.assign(4, 12)
    assert not epochs.truncate_from_end(11)
    assert not epochs.truncate_from_start(0)
    assert stored(tmp_path) is None


def test_an_epoch_that_begins_waits_for_the_next_store(epochs: LogEpochs, tmp_path: Path) -> None:
    assert epochs.begin(6, 30)
    assert epochs.history.latest_epoch == 6
    assert stored(tmp_path) is None


def test_there_is_no_change_that_is_not_stored() -> None:
    """A method that the history gets some day is none of the log's until it is stored, too."""
    methods = {name for name in dir(LogEpochs) if callable(getattr(LogEpochs, name))}
    changes = {name for name in methods if not name.startswith("_")}
    assert changes == {"begin", *(method for method, _, _ in STORED)}
