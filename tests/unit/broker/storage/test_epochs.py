"""Leader epochs: the history, its file, and epochs that are read from the batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs, LogEpochs, with_earlier_epochs
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.record_checks import AppendRules
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition
from tests.support.logs import NewLog, append, config, epochs_of

if TYPE_CHECKING:
    from minibroker.broker.storage.partition_log import PartitionLog


def test_epochs_are_assigned_once() -> None:
    epochs = LeaderEpochs()
    assert epochs.latest_epoch == -1
    assert epochs.assign(0, 0)
    assert not epochs.assign(0, 5)
    assert epochs.assign(3, 10)
    assert epochs.latest_epoch == 3
    assert epochs.entries == [(0, 0), (3, 10)]


@pytest.mark.parametrize(
    ("entry", "remaining"),
    [
        ((3, 4), [(0, 0), (3, 4)]),
        ((2, 10), [(0, 0), (2, 10)]),
        ((4, 10), [(0, 0), (4, 10)]),
        ((4, 7), [(0, 0), (4, 7)]),
        ((1, 0), [(1, 0)]),
        ((0, 3), [(0, 3)]),
    ],
)
def test_entries_that_contradict_a_new_one_go(
    entry: tuple[int, int], remaining: list[tuple[int, int]]
) -> None:
    epochs = epochs_of((0, 0), (3, 10))
    assert epochs.assign(*entry)
    assert epochs.entries == remaining


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_numbers_are_no_entry(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        LeaderEpochs().assign(*entry)


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 5)),
        (2, (2, 5)),
        (3, (3, 10)),
        (4, (3, 10)),
        (5, (5, 30)),
        (6, (-1, -1)),
    ],
)
def test_end_offsets(epoch: int, answer: tuple[int, int]) -> None:
    """Between epochs the one before answers, and the next one's start is the end; before the first
    known epoch the log's start is."""
    assert epochs_of((3, 5), (5, 10)).end_offset_for(epoch, 30) == answer


def test_end_offset_without_any_epoch() -> None:
    assert LeaderEpochs().end_offset_for(0, 30) == (-1, -1)


@pytest.mark.parametrize(
    ("end", "remaining"),
    [
        (-1, [(0, 0), (3, 10), (4, 20)]),
        (21, [(0, 0), (3, 10), (4, 20)]),
        (20, [(0, 0), (3, 10)]),
        (11, [(0, 0), (3, 10)]),
        (10, [(0, 0)]),
        (0, []),
    ],
)
def test_truncation_of_the_end(end: int, remaining: list[tuple[int, int]]) -> None:
    epochs = epochs_of((0, 0), (3, 10), (4, 20))
    assert epochs.truncate_from_end(end) == (len(remaining) < 3)
    assert epochs.entries == remaining
    assert epochs.latest_epoch == (remaining[-1][0] if remaining else -1)


@pytest.mark.parametrize(
    ("start", "remaining", "is_changed"),
    [
        (-1, [(0, 0), (3, 10), (4, 20)], False),
        (0, [(0, 0), (3, 10), (4, 20)], False),
        (5, [(0, 5), (3, 10), (4, 20)], True),
        (10, [(3, 10), (4, 20)], True),
        (15, [(3, 15), (4, 20)], True),
        (40, [(4, 40)], True),
    ],
)
def test_truncation_of_the_start(
    start: int, remaining: list[tuple[int, int]], is_changed: bool
) -> None:
    epochs = epochs_of((0, 0), (3, 10), (4, 20))
    assert epochs.truncate_from_start(start) == is_changed
    assert epochs.entries == remaining
    assert epochs.latest_epoch == 4


@pytest.mark.parametrize(
    ("epoch", "offset", "remaining"),
    [
        (3, 15, None),
        (4, 20, None),
        (0, 9, None),
        (3, 20, [(0, 0), (3, 10)]),
        (3, 19, None),
        (0, 10, [(0, 0), (4, 20)]),
        (0, 25, [(0, 0)]),
        (1, 12, [(0, 0), (1, 12), (4, 20)]),
        (2, 30, [(0, 0), (2, 30)]),
    ],
)
def test_a_batch_is_right_where_the_history_is_not(
    epoch: int, offset: int, remaining: list[tuple[int, int]] | None
) -> None:
    epochs = epochs_of((0, 0), (3, 10), (4, 20))
    assert epochs.correct(epoch, offset) == (remaining is not None)
    assert epochs.entries == (remaining or [(0, 0), (3, 10), (4, 20)])
    assert epochs.latest_epoch == epochs.entries[-1][0]


def test_clear() -> None:
    epochs = epochs_of((0, 0))
    assert epochs.clear()
    assert epochs.entries == []
    assert epochs.latest_epoch == -1
    assert not epochs.clear()
    assert not epochs.truncate_from_start(5)


def test_the_checkpoint_text() -> None:
    assert epochs_of((0, 0), (7, 123)).to_text() == "0\n2\n0 0\n7 123\n"
    assert LeaderEpochs().to_text() == "0\n0\n"
    assert LeaderEpochs.from_text("0\n2\n0 0\n7 123\n").entries == [(0, 0), (7, 123)]
    assert LeaderEpochs.from_text("0\n1\n 2  3 \n").entries == [(2, 3)]
    assert LeaderEpochs.from_text("0\n0\n").entries == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("1\n0\n", "version '1', expected 0"),
        ("x\n0\n", "version 'x'"),
        ("0", "ends before"),
        ("0\n", "ends before"),
        ("0\n1\n", "announces '1' entries and holds 0"),
        ("0\nx\n0 0\n", "announces 'x'"),
        ("0\n1\n0 0\n1 1\n", "announces '1' entries and holds 2"),
        ("0\n1\n0\n", "line '0', expected"),
        ("0\n1\n0 0 0\n", "line '0 0 0'"),
        ("0\n1\n0 -5\n", "line '0 -5'"),
        ("0\n1\n0 1_0\n", "line '0 1_0'"),
        ("0\n1\n0 ٣\n", "line '0 ٣'"),
        ("0\n2\n0 0\n\n", "line ''"),
    ],
)
def test_broken_checkpoints(text: str, message: str) -> None:
    with pytest.raises(CorruptionError, match=message):
        LeaderEpochs.from_text(text)


@pytest.fixture
def epochs(tmp_path: Path) -> LogEpochs:
    """Epoch 2 from offset 0 on and 4 from 10 on, which are not stored."""
    two_epochs = LeaderEpochs()
    two_epochs.assign(2, 0)
    two_epochs.assign(4, 10)
    disk = Disk()
    place = PartitionDirectory(
        disk, TopicPartition("t", 0), str(tmp_path), None, has_new_names=False
    )
    return LogEpochs(disk, place, two_epochs)


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


@pytest.mark.parametrize(("method", "arguments", "remaining"), STORED)
def test_a_change_is_stored(
    epochs: LogEpochs,
    tmp_path: Path,
    method: str,
    arguments: tuple[int, ...],
    remaining: list[tuple[int, int]],
) -> None:
    getattr(epochs, method)(*arguments)
    assert epochs.history.entries == remaining
    assert stored(tmp_path) == remaining


def test_nothing_is_written_where_nothing_changes(epochs: LogEpochs, tmp_path: Path) -> None:
    epochs.assign(4, 12)
    epochs.truncate_from_end(11)
    epochs.truncate_from_start(0)
    assert stored(tmp_path) is None


def test_an_epoch_that_begins_waits_for_the_next_store(epochs: LogEpochs, tmp_path: Path) -> None:
    epochs.begin(6, 30)
    assert epochs.history.latest_epoch == 6
    assert stored(tmp_path) is None


def test_there_is_no_change_that_is_not_stored() -> None:
    """A method that the history gets some day is none of the log's until it is stored, too."""
    methods = {name for name in dir(LogEpochs) if callable(getattr(LogEpochs, name))}
    changes = {name for name in methods if not name.startswith("_")}
    assert changes == {"begin", *(method for method, _, _ in STORED)}


EPOCHS = [2, 2, 4, 4, 4, 7]
"""Leader epochs of six batches with one record each."""


def log_of(new_log: NewLog) -> PartitionLog:
    """Return a log of `EPOCHS` with two batches in each segment."""
    log = new_log()
    for number, epoch in enumerate(EPOCHS):
        if number in (2, 4):
            log.roll()
        append(log, b"x", leader_epoch=epoch)
    return log


def rebuilt(log: PartitionLog, leader_epochs: LeaderEpochs, start_offset: int = 0) -> LeaderEpochs:
    return with_earlier_epochs(
        Disk(),
        log.segments,
        leader_epochs,
        start_offset=start_offset,
        end_offset=log.log_end_offset,
    )


@pytest.mark.parametrize(
    ("entries", "start_offset", "expected"),
    [
        ([(7, 5)], 0, [(2, 0), (4, 2), (7, 5)]),
        ([(4, 4), (7, 5)], 0, [(2, 0), (4, 2), (7, 5)]),
        ([(4, 4), (7, 5)], 1, [(2, 1), (4, 2), (7, 5)]),
        ([(7, 5)], 3, [(4, 3), (7, 5)]),
        ([], 0, [(2, 0), (4, 2), (7, 5)]),
        ([(9, 6)], 0, [(2, 0), (4, 2), (7, 5), (9, 6)]),
    ],
)
def test_epochs_reach_back_to_the_start_of_the_log(
    new_log: NewLog,
    entries: list[tuple[int, int]],
    start_offset: int,
    expected: list[tuple[int, int]],
) -> None:
    log = log_of(new_log)
    assert rebuilt(log, epochs_of(*entries), start_offset).entries == expected


def test_a_history_from_the_start_on_stays_as_it_is(new_log: NewLog) -> None:
    log = log_of(new_log)
    whole_history = epochs_of((2, 0), (7, 5))
    assert rebuilt(log, whole_history) is whole_history


def test_a_later_epoch_than_the_first_known_one_is_not_believed(new_log: NewLog) -> None:
    log = log_of(new_log)
    assert rebuilt(log, epochs_of((3, 4), (7, 5))).entries == [(2, 0), (3, 4), (7, 5)]


def test_messages_of_old_formats_end_the_history(new_log: NewLog) -> None:
    """Epochs before these messages are not read: the append of the messages forgot them."""
    log = new_log()
    append(log, b"new", leader_epoch=2)
    log.roll()
    old = config(message_format_version="0.10.2")
    log.update_config(old, AppendRules(old))
    append(log, b"old", leader_epoch=3)
    log.update_config(config(), AppendRules(config()))
    append(log, b"new", leader_epoch=4)
    append(log, b"new", leader_epoch=5)
    assert log.epochs.history.entries == [(4, 2), (5, 3)]
    newer_history = epochs_of((5, 3))
    assert rebuilt(log, newer_history).entries == [(4, 2), (5, 3)]


def test_a_log_of_old_formats_has_no_epochs(new_log: NewLog) -> None:
    log = new_log(message_format_version="0.10.2")
    append(log, b"old", leader_epoch=3)
    empty_history = LeaderEpochs()
    assert rebuilt(log, empty_history) is empty_history
