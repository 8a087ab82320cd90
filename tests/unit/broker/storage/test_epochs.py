"""The history of leader epochs: assignment, end offsets, truncation, the checkpoint text."""

from __future__ import annotations

import pytest

from minibroker.broker.storage.epochs import LeaderEpochs
from minibroker.kafka.errors import CorruptionError


def history(*entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs()
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


def test_epochs_are_assigned_once() -> None:
    epochs = LeaderEpochs()
    assert epochs.latest_epoch == -1
    assert epochs.assign(0, 0)
    assert not epochs.assign(0, 5)
    assert epochs.assign(3, 10)
    assert epochs.latest_epoch == 3
    assert epochs.entries == [(0, 0), (3, 10)]


@pytest.mark.parametrize(
    ("entry", "left"),
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
    entry: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    epochs = history((0, 0), (3, 10))
    assert epochs.assign(*entry)
    assert epochs.entries == left


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_numbers_are_no_entry(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        LeaderEpochs().assign(*entry)


@pytest.mark.parametrize(
    ("asked", "answer"),
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
def test_end_offsets(asked: int, answer: tuple[int, int]) -> None:
    """Between epochs the one before answers, and the next one's start is the end; before the first
    known epoch the log's start is."""
    assert history((3, 5), (5, 10)).end_offset_for(asked, 30) == answer


def test_end_offset_without_any_epoch() -> None:
    assert LeaderEpochs().end_offset_for(0, 30) == (-1, -1)


@pytest.mark.parametrize(("offset", "epoch"), [(4, -1), (5, 3), (9, 3), (10, 5), (99, 5)])
def test_the_epoch_that_wrote_an_offset(offset: int, epoch: int) -> None:
    assert history((3, 5), (5, 10)).epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (-1, [(0, 0), (3, 10), (4, 20)]),
        (21, [(0, 0), (3, 10), (4, 20)]),
        (20, [(0, 0), (3, 10)]),
        (11, [(0, 0), (3, 10)]),
        (10, [(0, 0)]),
        (0, []),
    ],
)
def test_truncation_of_the_end(end: int, left: list[tuple[int, int]]) -> None:
    epochs = history((0, 0), (3, 10), (4, 20))
    assert epochs.truncate_from_end(end) == (len(left) < 3)
    assert epochs.entries == left
    assert epochs.latest_epoch == (left[-1][0] if left else -1)


@pytest.mark.parametrize(
    ("start", "left", "is_changed"),
    [
        (-1, [(0, 0), (3, 10), (4, 20)], False),
        (0, [(0, 0), (3, 10), (4, 20)], False),
        (5, [(0, 5), (3, 10), (4, 20)], True),
        (10, [(3, 10), (4, 20)], True),
        (15, [(3, 15), (4, 20)], True),
        (40, [(4, 40)], True),
    ],
)
def test_truncation_of_the_start(start: int, left: list[tuple[int, int]], is_changed: bool) -> None:
    epochs = history((0, 0), (3, 10), (4, 20))
    assert epochs.truncate_from_start(start) == is_changed
    assert epochs.entries == left
    assert epochs.latest_epoch == 4


@pytest.mark.parametrize(
    ("epoch", "offset", "left"),
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
    epoch: int, offset: int, left: list[tuple[int, int]] | None
) -> None:
    epochs = history((0, 0), (3, 10), (4, 20))
    assert epochs.correct(epoch, offset) == (left is not None)
    assert epochs.entries == (left or [(0, 0), (3, 10), (4, 20)])
    assert epochs.latest_epoch == epochs.entries[-1][0]


def test_clear() -> None:
    epochs = history((0, 0))
    assert epochs.clear()
    assert epochs.entries == []
    assert epochs.latest_epoch == -1
    assert not epochs.clear()
    assert not epochs.truncate_from_start(5)


def test_the_checkpoint_text() -> None:
    assert history((0, 0), (7, 123)).to_text() == "0\n2\n0 0\n7 123\n"
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
