"""Digests of a task's rows: equal for equal rows, whatever the borders of the batches are."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline.kafka.sink.digest import ContentDigest, Contents

if TYPE_CHECKING:
    from collections.abc import Sequence

VALUES = [b"one", b"two", None, b"", b"five"]
KEYS = [b"a", None, b"c", b"d", b"e"]
PARTITIONS = [0, 1, 2, 0, 1]
TIMESTAMPS = [1_700_000_000_000, 0, 5, 6, 7]
HEADERS: list[Any] = [None, [("h", b"x")], None, [("h", None)], None]
COLUMNS = (VALUES, KEYS, PARTITIONS, TIMESTAMPS, HEADERS)


def contents(columns: Sequence[Sequence[Any]], *, size: int = 5) -> Contents:
    """Return the contents of rows that come in batches of `size`."""
    digest = ContentDigest()
    for start in range(0, len(columns[0]), size):
        batch = [list(values[start : start + size]) for values in columns]
        digest.add([repeat("orders", len(batch[0])), *batch])
    return digest.contents()


def with_rows(order: Sequence[int]) -> tuple[list[Any], ...]:
    return tuple([values[row] for row in order] for values in COLUMNS)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_borders_of_batches_do_not_count(size: int) -> None:
    assert contents(COLUMNS, size=size) == contents(COLUMNS)
    assert contents(COLUMNS).rows == 5


def test_the_order_of_rows_is_seen_and_allowed() -> None:
    first_contents, second_contents = contents(COLUMNS), contents(with_rows([4, 2, 0, 1, 3]))
    assert first_contents.ordered != second_contents.ordered
    assert first_contents.row_sum == second_contents.row_sum
    assert first_contents.is_like(second_contents)


@pytest.mark.parametrize("column", range(len(COLUMNS)))
def test_every_column_counts(column: int) -> None:
    """Two values of one column change places: the same values, and other rows."""
    changed = [list(values) for values in COLUMNS]
    changed[column][0], changed[column][1] = changed[column][1], changed[column][0]
    assert not contents(COLUMNS).is_like(contents(changed))


def test_null_is_not_empty_and_lengths_count() -> None:
    assert not contents([[None]]).is_like(contents([[b""]]))
    assert not contents([[b"ab", b"c"]]).is_like(contents([[b"a", b"bc"]]))
    assert not contents([[b"ab"], [b"c"]]).is_like(contents([[b"a"], [b"bc"]]))


def test_no_rows_have_contents_too() -> None:
    assert contents([[]]) == contents([[]])
    assert contents([[]]).rows == 0


def test_a_marker_of_an_older_version_is_compared_by_its_rows() -> None:
    assert Contents(5).is_like(contents(COLUMNS))
    assert not Contents(4).is_like(contents(COLUMNS))
