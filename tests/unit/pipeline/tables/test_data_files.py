"""Rows into Parquet files by topic and date: sizes, names, order, what a file holds."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from minibroker.pipeline.tables import data_files
from minibroker.pipeline.tables.data_files import (
    RECORD,
    DataFile,
    Layout,
    batch_of,
    repeated_columns,
    stem_of,
)
from tests.support.data_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.schema(
    [("value", pa.binary()), ("topic", pa.string()), ("offset", pa.int64()), ("date", pa.date32())]
)
QUERY = "12345678-1234-1234-1234-123456789abc"


def rows(*triples: tuple[str, int, str], value: bytes = b"v") -> pa.RecordBatch:
    """Rows of topic, offset and date."""
    columns = [
        [value] * len(triples),
        [topic for topic, _, _ in triples],
        [offset for _, offset, _ in triples],
        [date.fromisoformat(day) for _, _, day in triples],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, ROWS, strict=True)],
        schema=ROWS,
    )


def layout(directory: Path, target_bytes: int = 1 << 20) -> Layout:
    schema = pa.schema([ROWS.field("offset"), ROWS.field("value")])
    return Layout(str(directory), "data/", schema, target_bytes, stem_of(QUERY, 7))


def offsets(directory: Path, file: DataFile) -> list[int]:
    offsets: list[int] = pq.ParquetFile(directory / file.path).read()["offset"].to_pylist()
    return offsets


def test_a_file_for_each_topic_and_date(tmp_path: Path) -> None:
    batches = [
        rows(("a", 0, "2026-11-24"), ("a", 1, "2026-11-24")),
        rows(("a", 2, "2026-11-25"), ("b", 0, "2026-11-24"), ("a", 3, "2026-11-24")),
        rows(),
    ]
    files = {(file.topic, file.date): file for file in write_files(layout(tmp_path), batches)}
    assert {key: offsets(tmp_path, file) for key, file in files.items()} == {
        ("a", "2026-11-24"): [0, 1, 3],
        ("a", "2026-11-25"): [2],
        ("b", "2026-11-24"): [0],
    }
    file = files["a", "2026-11-24"]
    assert file.path.startswith("data/topic=a/date=2026-11-24/")
    assert (file.rows, file.size) == (3, (tmp_path / file.path).stat().st_size)
    assert pq.read_schema(tmp_path / file.path).names == ["offset", "value"]
    assert batch_of(file.path) == (QUERY, 7)
    assert batch_of("data/topic=a/date=2026-11-24/part-0.parquet") is None


def test_every_column_has_a_dictionary_but_the_offset(tmp_path: Path) -> None:
    """PyArrow ignores a path that Parquet does not know: all are here, nested ones too."""
    nested = pa.field("many", pa.map_(pa.string(), pa.list_(pa.struct([("deep", pa.int64())]))))
    schema = pa.schema([*RECORD, nested])
    row = {"key": b"k", "value": b"v", "topic": "t", "partition": 1, "offset": 5}
    row |= {"timestampType": 0, "date": date(2026, 11, 24)}
    row |= {"timestamp": datetime(2026, 11, 24, tzinfo=UTC), "many": [("x", [{"deep": 1}])]}
    row |= {"headers": [{"key": "h", "value": b"w"}]}
    batch = pa.RecordBatch.from_pylist([row], schema)
    [file] = write_files(layout(tmp_path)._replace(schema=schema), [batch])
    group = pq.ParquetFile(tmp_path / file.path).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    plain = [column.path_in_schema for column in columns if not column.has_dictionary_page]
    assert plain == ["offset"]
    assert [column.path_in_schema for column in columns if column.path_in_schema != "offset"] == (
        repeated_columns(schema)
    )
    assert pq.ParquetFile(tmp_path / file.path).read().to_pylist() == batch.to_pylist()


def test_days_that_no_reader_knows_have_a_date_all_the_same(tmp_path: Path) -> None:
    days = pa.array([20_781, 3_000_000, 106_751_991, -800_000], pa.int32()).cast(pa.date32())
    batch = rows(*(("a", offset, "2026-11-24") for offset in range(4)))
    files = write_files(layout(tmp_path), [batch.set_column(3, "date", days)])
    assert sorted((file.date, *offsets(tmp_path, file)) for file in files) == [
        ("0001-01-01", 3),
        ("2026-11-24", 0),
        ("9999-12-31", 1),
        ("9999-12-31", 2),
    ]


def test_a_file_ends_when_it_is_large_enough(tmp_path: Path) -> None:
    batches = [rows(("a", number, "2026-11-24"), value=os.urandom(5_000)) for number in range(10)]
    files = write_files(layout(tmp_path, 10_000), batches)
    assert len(files) > 1
    assert sorted(offset for file in files for offset in offsets(tmp_path, file)) == [*range(10)]


def test_few_files_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "OPEN_FILES_MAX", 2)
    monkeypatch.setattr(data_files, "BUFFERED_BYTES_MAX", 1)
    batches = [rows((topic, number, "2026-11-24")) for number in range(2) for topic in "abc"]
    files = write_files(layout(tmp_path), batches)
    assert sorted((file.topic, *offsets(tmp_path, file)) for file in files) == [
        (topic, number) for topic in "abc" for number in range(2)
    ]


def test_a_task_that_fails_lists_nothing(tmp_path: Path) -> None:
    def batches() -> object:
        yield rows(("a", 0, "2026-11-24"))
        raise ValueError("the source ended")

    with pytest.raises(ValueError, match="the source ended"):
        write_files(layout(tmp_path), batches())  # type: ignore[arg-type]
