"""Batches in Iceberg and Delta tables: each is committed once, whoever commits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import StaticTable

from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables import delta as delta_table
from minibroker.pipeline.tables import iceberg as iceberg_table
from minibroker.pipeline.tables.choice import place_of
from minibroker.pipeline.tables.iceberg import SCHEMA
from minibroker.pipeline.tables.iceberg_directory import IDENTIFIER, DirectoryCatalog
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.values.arrow_types import plain
from minibroker.pipeline.verbs.maintain import maintenance
from minibroker.pipeline.verbs.maintain.plan import MaintainPlan
from tests.pipeline.table_readers import TABLES
from tests.support.data_files import write_files
from tests.unit.pipeline.tables.archives import QUERY, TOPIC, offsets_in, open_table, rows, written

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.pipeline.tables.table import Table


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_a_batch_is_seen_whole_and_once(file_format: str, tmp_path: Path) -> None:
    table = open_table(file_format, tmp_path)
    batch = BatchId(QUERY, 0)
    assert not table.has(batch)
    files = written(table, batch)
    assert offsets_in(file_format, tmp_path) == []
    assert table.commit(batch, files)
    assert offsets_in(file_format, tmp_path) == [0, 1]
    assert table.has(batch)
    assert not table.commit(batch, written(table, batch))
    again = open_table(file_format, tmp_path)
    assert again.has(batch)
    assert not again.commit(batch, written(again, batch))
    assert again.commit(BatchId(QUERY, 1), written(again, BatchId(QUERY, 1)))
    assert offsets_in(file_format, tmp_path) == [0, 1, 10, 11]
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
    old, new = open_table(file_format, tmp_path), open_table(file_format, tmp_path)
    batch = BatchId(QUERY, 0)
    files = written(new, batch)
    commits = iter([False, True])
    really = new.has

    def has(identity: BatchId) -> bool:
        """The other one commits right behind the first question."""
        if not next(commits):
            assert old.commit(batch, written(old, batch))
            return False
        return really(identity)

    new.has = has  # type: ignore[method-assign]
    assert not new.commit(batch, files)
    assert offsets_in(file_format, tmp_path) == [0, 1]


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_a_batch_without_records_counts(file_format: str, tmp_path: Path) -> None:
    table = open_table(file_format, tmp_path)
    assert table.commit(BatchId(QUERY, 0), [])
    assert open_table(file_format, tmp_path).has(BatchId(QUERY, 0))
    assert not table.has(BatchId(QUERY, 1))


def test_readers_find_a_day_by_the_statistics(tmp_path: Path) -> None:
    """Delta's log has the smallest and the largest offset of each file."""
    table = delta_table.open_table(place_of(str(tmp_path), None))
    table.commit(BatchId(QUERY, 0), written(table, BatchId(QUERY, 0)))
    assert len(table.files()) == 2
    actions = pa.table(table._table.get_add_actions(flatten=True)).to_pylist()
    assert sorted((row["min.offset"], row["max.offset"]) for row in actions) == [(0, 0), (1, 1)]
    assert {row["num_records"] for row in actions} == {1}


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_columns_are_taken_in(file_format: str, tmp_path: Path) -> None:
    """A new table without the column; fields are added to it; an older reader is not needed."""
    opener = {
        "iceberg": lambda: iceberg_table.open_table(
            place_of(str(tmp_path), None), {}, None, ["value"]
        ),
        "delta": lambda: delta_table.open_table(place_of(str(tmp_path), None), ["value"]),
    }
    table: Table = opener[file_format]()
    assert "value" not in table.columns().names
    inner = pa.struct([("x", pa.int32())])
    table.take_in({"value": inner})
    wider = pa.struct([("x", pa.int32()), ("in", pa.list_(inner)), ("s", pa.string())])
    table.take_in({"value": wider, "valueBytes": pa.binary()})
    again: Table = opener[file_format]()
    assert plain(again.columns().field("value").type) == wider
    assert again.columns().names[-1] == "valueBytes"
    table.take_in({"value": wider, "valueBytes": pa.binary()})


def test_iceberg_widens_and_refuses(tmp_path: Path) -> None:
    table = iceberg_table.open_table(place_of(str(tmp_path), None), {}, None, ["value"])
    table.take_in({"value": pa.struct([("x", pa.int32()), ("y", pa.float32())])})
    wide = pa.struct([("x", pa.int64()), ("y", pa.float64())])
    table.take_in({"value": wide})
    assert plain(table.columns().field("value").type) == wide
    with pytest.raises(PipelineError, match="does not take the columns of the schemas"):
        table.take_in({"value": pa.struct([("x", pa.string())])})


@pytest.mark.parametrize("file_format", ["iceberg", "delta"])
def test_upkeep_merges_files_of_other_columns(file_format: str, tmp_path: Path) -> None:
    job_directory.write_job(LocalFiles(), str(tmp_path), {"job": "archive", "format": file_format})
    table: Table = (
        iceberg_table.open_table(place_of(str(tmp_path), None), {}, None, ["value"])
        if file_format == "iceberg"
        else delta_table.open_table(place_of(str(tmp_path), None), ["value"])
    )
    types = [pa.struct([("x", pa.int64())]), pa.struct([("x", pa.int64()), ("s", pa.string())])]
    for number, type_name in enumerate(types):
        table.take_in({"value": type_name})
        batch = rows(number, 1)
        value = pa.array([{"x": number, "s": "new"}], type_name)
        batch = batch.set_column(1, "value", value).set_column(8, "date", rows(0, 1)["date"])
        batch = batch.set_column(5, "timestamp", rows(0, 1)["timestamp"])
        identity = BatchId(QUERY, number)
        table.commit(identity, write_files(table.layout(identity, 1 << 20), [batch]))
    done = maintenance.run(MaintainPlan(str(tmp_path)))
    assert (done.merged_files, done.into_files) == (2, 1)
    for reader in TABLES[file_format]:
        assert reader(tmp_path, "offset", "value") == [
            (0, {"x": 0, "s": None}),
            (1, {"x": 1, "s": "new"}),
        ], reader


# A catalogue in a directory: one writer makes a version; kills between its two files.


def new_catalog(directory: Path) -> DirectoryCatalog:
    """A catalogue with an empty table."""
    catalog = DirectoryCatalog(str(directory), LocalFiles())
    catalog.create_table(IDENTIFIER, SCHEMA)
    return catalog


def version(directory: Path) -> str:
    return (directory / "metadata" / "version-hint.text").read_text()


def test_each_commit_is_a_version(tmp_path: Path) -> None:
    catalog = DirectoryCatalog(str(tmp_path), LocalFiles())
    with pytest.raises(NoSuchTableError, match="there is no Iceberg table in"):
        catalog.load_table(IDENTIFIER)
    table = catalog.create_table(IDENTIFIER, SCHEMA)
    table.transaction().set_properties({"a": "1"}).commit_transaction()
    assert version(tmp_path) == "2"
    assert StaticTable.from_metadata(str(tmp_path)).properties == {"a": "1"}
    names = {path.name for path in (tmp_path / "metadata").iterdir()}
    assert names == {"v1.metadata.json", "v2.metadata.json", "version-hint.text"}


def test_the_slower_of_two_writers_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read version 1 when the other one makes version 2."""
    catalog = new_catalog(tmp_path)
    slow, quick = catalog.load_table(IDENTIFIER), catalog.load_table(IDENTIFIER)
    quick.transaction().set_properties({"a": "1"}).commit_transaction()
    stale = DirectoryCatalog(str(tmp_path), LocalFiles())
    monkeypatch.setattr(stale, "_newest", lambda: 1)
    monkeypatch.setattr(slow, "catalog", stale)
    change = slow.transaction().set_properties({"commit.retry.num-retries": "0"})
    with pytest.raises(CommitFailedException, match="another writer made version 2"):
        change.commit_transaction()
    assert catalog.load_table(IDENTIFIER).properties == {"a": "1"}


def test_a_writer_killed_before_its_hint(tmp_path: Path) -> None:
    """Readers see the version before; a writer sees the newest, and mends the hint."""
    catalog = new_catalog(tmp_path)
    table = catalog.load_table(IDENTIFIER)
    table.transaction().set_properties({"a": "1"}).commit_transaction()
    hint = tmp_path / "metadata" / "version-hint.text"
    hint.write_text("1")
    assert StaticTable.from_metadata(str(tmp_path)).properties == {}
    assert catalog.load_table(IDENTIFIER).properties == {"a": "1"}
    catalog.mend_hint()
    assert version(tmp_path) == "2"
    hint.unlink()
    assert catalog.load_table(IDENTIFIER).properties == {"a": "1"}


def test_a_second_creation_finds_the_first(tmp_path: Path) -> None:
    first = new_catalog(tmp_path).load_table(IDENTIFIER)
    again = DirectoryCatalog(str(tmp_path), LocalFiles()).create_table(IDENTIFIER, SCHEMA)
    assert again.metadata.table_uuid == first.metadata.table_uuid
