"""The checker finds every kind of fault."""

from __future__ import annotations

import pytest

from tests.fire.history import History, Read, check_movers, check_writers

LINES = [
    "ready",
    "txn 1 0:1 1:2",
    "commit 1",
    "txn 2 0:3 0:4",
    "abort 2",
    "txn 3 0:5 1:6",
    "unknown 3",
    "txn 4 0:7",
]
GOOD: Read = [[(0, 1), (3, 5)], [(0, 2), (2, 6)]]


def history(*lines: str) -> History:
    new_history = History()
    for line in lines:
        new_history.add(line)
    return new_history


@pytest.mark.parametrize(
    "read",
    [GOOD, [[(0, 1)], [(0, 2)]], [[(0, 1), (3, 5), (4, 7)], [(0, 2), (2, 6)]]],
    ids=["unknown is there", "unknown is not there", "the last was not told"],
)
def test_possible_histories(read: Read) -> None:
    assert check_writers([history(*LINES)], read) == []


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        ([[(0, 1)], []], "lost"),
        ([[(0, 1), (1, 3)], [(0, 2)]], "aborted read"),
        ([[(0, 1), (3, 5)], [(0, 2)]], "torn"),
        ([[(0, 1), (1, 1)], [(0, 2)]], "duplicate"),
        ([[(0, 5), (1, 1)], [(0, 2), (2, 6)]], "reordered"),
        ([[(0, 1), (1, 2)], []], "misplaced"),
        ([[(0, 1), (9, 99)], [(0, 2)]], "aborted read"),
    ],
)
def test_impossible_inputs(read: Read, fault: str) -> None:
    wrong = check_writers([history(*LINES)], read)
    assert any(line.startswith(fault) for line in wrong), wrong


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ([[(0, 1), (1, 5)], [(0, 2)]], "not moved"),
        ([[(0, 1), (1, 5)], [(0, 2), (1, 2), (2, 6)]], "duplicate"),
        ([[(0, 5), (1, 1)], [(0, 2), (1, 6)]], "reordered"),
        ([[(0, 1), (1, 5), (2, 3)], [(0, 2), (1, 6)]], "aborted read"),
    ],
)
def test_impossible_outputs(target: Read, fault: str) -> None:
    wrong = check_movers([], GOOD, target)
    assert any(line.startswith(fault) for line in wrong), wrong


def test_records_seen_by_readers_must_exist() -> None:
    target: Read = [[(7, 1), (8, 5)], [(9, 2), (11, 6)]]
    assert check_movers([history("poll 0:0:1 1:2:6")], GOOD, target) == []
    wrong = check_movers([history("poll 0:1:3")], GOOD, target)
    assert [line.split(":")[0] for line in wrong] == ["inconsistent"]
