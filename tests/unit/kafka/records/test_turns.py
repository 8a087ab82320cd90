"""Loops over records let other threads run, in the pure package and in the compiled one.

A compiled loop holds the interpreter until it calls an interpreted function: without these calls
the broker would stand still while a worker checks a large batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.records import contents, record
from minibroker.kafka.records.batch import RECORDS_AT, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.kafka.records.turns import TURN, in_turns

if TYPE_CHECKING:
    from types import ModuleType

COUNT = 5000
TIME_MS = 1_700_000_000_000
ALIKE = build_batch([Record(n, TIME_MS, None, b"v") for n in range(COUNT)])
UNLIKE = build_batch([Record(n, TIME_MS - n % 7, b"k" * (n % 5), b"v") for n in range(COUNT)])
HEADERS = build_batch([Record(0, TIME_MS, None, b"v", ((("h", b""),) * COUNT))])


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of the module of each turn."""
    names: list[str] = []

    def watch(module: ModuleType) -> None:
        monkeypatch.setattr(module, "let_others_run", lambda: names.append(module.__name__))

    watch(contents)
    watch(record)
    return names


@pytest.mark.parametrize("content", [ALIKE, UNLIKE, HEADERS], ids=["alike", "unlike", "headers"])
def test_a_check_of_contents_gives_turns(content: bytearray, turns: list[str]) -> None:
    header = read_header(content)
    contents.read_contents(bytes(content), RECORDS_AT, len(content), header, True, COUNT)
    assert len(turns) >= COUNT // 600


def test_a_careful_check_gives_turns(turns: list[str]) -> None:
    header = read_header(UNLIKE)
    facts = contents.iterate_records(bytes(UNLIKE), RECORDS_AT, len(UNLIKE), header, is_framed=True)
    assert len(list(facts)) == COUNT
    assert len(turns) == COUNT // (TURN + 1)


@pytest.mark.parametrize("content", [ALIKE, UNLIKE, HEADERS], ids=["alike", "unlike", "headers"])
def test_records_are_read_in_turns(content: bytearray, turns: list[str]) -> None:
    record.decode_records(content)
    assert len(turns) == COUNT // (TURN + 1)


def test_records_are_counted_in_turns(turns: list[str]) -> None:
    for content in (ALIKE, UNLIKE):
        record.count_records(content, RECORDS_AT, len(content), COUNT)
        record.size_runs(bytes(content), RECORDS_AT, len(content), COUNT)
    assert len(turns) >= 3 * (COUNT // 1024)


def test_items_in_turns_are_the_items() -> None:
    assert list(in_turns([3, 1, 2])) == [3, 1, 2]
