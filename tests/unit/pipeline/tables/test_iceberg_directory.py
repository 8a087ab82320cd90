"""A catalogue in a directory: one writer makes a version; kills between its two files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import StaticTable

from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables.iceberg import SCHEMA
from minibroker.pipeline.tables.iceberg_directory import IDENTIFIER, DirectoryCatalog

if TYPE_CHECKING:
    from pathlib import Path


def made(directory: Path) -> DirectoryCatalog:
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
    catalog = made(tmp_path)
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
    catalog = made(tmp_path)
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
    first = made(tmp_path).load_table(IDENTIFIER)
    again = DirectoryCatalog(str(tmp_path), LocalFiles()).create_table(IDENTIFIER, SCHEMA)
    assert again.metadata.table_uuid == first.metadata.table_uuid
