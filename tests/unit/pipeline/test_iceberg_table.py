"""Batches in Iceberg and Delta tables: each is committed once, whoever commits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from minibroker.pipeline import delta_table
from minibroker.pipeline.table import BatchId
from tests.unit.pipeline.archives import QUERY, TOPIC, opened, seen, written

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_a_batch_is_seen_whole_and_once(file_format: str, tmp_path: Path) -> None:
    table = opened(file_format, tmp_path)
    batch = BatchId(QUERY, 0)
    assert not table.has(batch)
    files = written(table, batch)
    assert seen(file_format, tmp_path) == []
    assert table.commit(batch, files)
    assert seen(file_format, tmp_path) == [0, 1]
    assert table.has(batch)
    assert not table.commit(batch, written(table, batch))
    again = opened(file_format, tmp_path)
    assert again.has(batch)
    assert not again.commit(batch, written(again, batch))
    assert again.commit(BatchId(QUERY, 1), written(again, BatchId(QUERY, 1)))
    assert seen(file_format, tmp_path) == [0, 1, 10, 11]
    assert {(file.topic, file.rows) for file in again.files()} == {(TOPIC, 1)}
    assert sorted(file.date for file in again.files()) == [
        "2026-11-24",
        "2026-11-25",
        "2026-12-04",
        "2026-12-05",
    ]


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_two_writers_of_one_batch(file_format: str, tmp_path: Path) -> None:
    """A driver that was believed dead commits while the next one is about to."""
    old, new = opened(file_format, tmp_path), opened(file_format, tmp_path)
    batch = BatchId(QUERY, 0)
    files = written(new, batch)
    commits = iter([False, True])
    really = new.has

    def has(asked: BatchId) -> bool:
        """The other one commits right behind the first question."""
        if not next(commits):
            assert old.commit(batch, written(old, batch))
            return False
        return really(asked)

    new.has = has  # type: ignore[method-assign]
    assert not new.commit(batch, files)
    assert seen(file_format, tmp_path) == [0, 1]


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_a_batch_without_records_counts(file_format: str, tmp_path: Path) -> None:
    table = opened(file_format, tmp_path)
    assert table.commit(BatchId(QUERY, 0), [])
    assert opened(file_format, tmp_path).has(BatchId(QUERY, 0))
    assert not table.has(BatchId(QUERY, 1))


def test_readers_find_a_day_by_the_statistics(tmp_path: Path) -> None:
    """Delta's log has the smallest and the largest offset of each file."""
    table = delta_table.open_table(str(tmp_path))
    table.commit(BatchId(QUERY, 0), written(table, BatchId(QUERY, 0)))
    assert len(table.files()) == 2
    actions = pa.table(table._table.get_add_actions(flatten=True)).to_pylist()
    assert sorted((row["min.offset"], row["max.offset"]) for row in actions) == [(0, 0), (1, 1)]
    assert {row["num_records"] for row in actions} == {1}
