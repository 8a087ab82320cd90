"""Tables in a store: batches once, whatever request fails, with their upkeep and their upserts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from minibroker.clock import SystemClock
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.tables.choice import open_archive, place_of
from minibroker.pipeline.tables.data_access import end_output, open_input, open_output
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.values.json_events import event_type
from minibroker.pipeline.verbs.archive.decoded_sink import layout_of, layout_options
from minibroker.pipeline.verbs.archive.mirror import MirrorTable
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.maintain import maintenance
from minibroker.pipeline.verbs.maintain.plan import MaintainPlan
from tests.support.data_files import write_files
from tests.support.object_store import BUCKET, LOST, REFUSED, Fault, s3_server
from tests.unit.pipeline.tables.archives import QUERY, rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from minibroker.pipeline.tables.data_files import DataFile
    from minibroker.pipeline.tables.table import Table, TablePlace
    from tests.support.object_store import S3Server

FORMATS = ("iceberg", "delta")
LOG = {"iceberg": ".metadata.json", "delta": "_delta_log/0"}
"""Part of the name of the object that is a commit."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put all records on one day."""
    monkeypatch.setattr("tests.unit.pipeline.tables.archives.DAYS", 0)


@pytest.fixture
def place(server: S3Server, request: pytest.FixtureRequest) -> TablePlace:
    server.fail(None)
    name = request.node.name.replace("[", "-").rstrip("]")
    return place_of(f"s3://{BUCKET}/{name}", server.store)


def written(table: Table, number: int) -> list[DataFile]:
    """Files of a batch, by the layout as it comes to a task."""
    layout = table.layout(BatchId(QUERY, number), 1 << 20)
    layout_told = layout_of(layout_options(layout))
    assert layout_told == layout
    return write_files(layout_told, [rows(number * 10, 2)])


def offsets_in(file_format: str, place: TablePlace) -> list[int]:
    """The offsets for a reader that knows nothing of ours."""
    return sorted(read(file_format, place)["offset"].to_pylist())


def read(file_format: str, place: TablePlace) -> pa.Table:
    assert place.store is not None
    if file_format == "iceberg":
        table = StaticTable.from_metadata(place.directory, place.store.for_iceberg())
        return table.scan().to_arrow()
    options = place.store.for_delta()
    return DeltaTable(place.directory, storage_options=options).to_pyarrow_table()


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_batch_is_there_once(file_format: str, place: TablePlace) -> None:
    table = open_archive(file_format, place, {}, None)
    files = written(table, 0)
    assert table.commit(BatchId(QUERY, 0), files)
    again = open_archive(file_format, place, {}, None)
    assert again.has(BatchId(QUERY, 0))
    assert not again.commit(BatchId(QUERY, 0), written(again, 0))
    assert again.commit(BatchId(QUERY, 1), written(again, 1))
    assert offsets_in(file_format, place) == [0, 1, 10, 11]


@pytest.mark.parametrize("fault", [LOST, REFUSED])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_commit_that_fails_half_way(
    file_format: str, fault: str, place: TablePlace, server: S3Server
) -> None:
    """The job ends, and its next run writes the batch again, unless it is there."""
    table = open_archive(file_format, place, {}, None)
    assert table.commit(BatchId(QUERY, 0), written(table, 0))
    files = written(table, 1)
    server.fail(Fault(["PUT"], LOG[file_format], fault))
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden|permission"):
        table.commit(BatchId(QUERY, 1), files)
    again = open_archive(file_format, place, {}, None)
    assert again.has(BatchId(QUERY, 1)) == (fault == LOST)
    again.commit(BatchId(QUERY, 1), written(again, 1))
    assert offsets_in(file_format, place) == [0, 1, 10, 11]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_data_file_that_the_store_refuses_is_in_no_table(
    file_format: str, place: TablePlace, server: S3Server
) -> None:
    table = open_archive(file_format, place, {}, None)
    server.fail(Fault(["PUT", "POST"], ".parquet", REFUSED, times=1_000))
    with pytest.raises((OSError, PipelineError)):
        written(table, 0)
    server.fail(None)
    assert table.commit(BatchId(QUERY, 0), written(table, 0))
    assert offsets_in(file_format, place) == [0, 1]


@pytest.mark.parametrize("file_format", FORMATS)
def test_its_upkeep(
    file_format: str, place: TablePlace, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Young files stay: another upkeep may be about to list them."""
    job = f'{{"job": "archive", "format": "{file_format}"}}'
    place.files.write(f"{place.directory}/_minibroker/job.json", job)
    place.files.write(f"{place.directory}/_minibroker/query", QUERY)
    table = open_archive(file_format, place, {}, None)
    for number in range(3):
        table.commit(BatchId(QUERY, number), written(table, number))
    plan = MaintainPlan(place.directory, keep_ms=0, storage=server.store.for_iceberg())
    done = maintenance.run(plan)
    assert (done.merged_files, done.into_files, done.removed_files) == (3, 1, 0)
    assert offsets_in(file_format, place) == [0, 1, 10, 11, 20, 21]
    later_ms = SystemClock().now_ms() + 2 * maintenance.LEFT_FOR_MS
    monkeypatch.setattr(
        maintenance, "SystemClock", lambda: SimpleNamespace(now_ms=lambda: later_ms)
    )
    done = maintenance.run(plan)
    assert (done.merged_files, done.removed_files) == (0, 3)
    assert offsets_in(file_format, place) == [0, 1, 10, 11, 20, 21]


LABEL = "label `x`"
"""The name of a column, with characters that an expression quotes."""


@pytest.mark.parametrize("file_format", FORMATS)
def test_upserts(file_format: str, place: TablePlace) -> None:
    row = pa.struct([("id", pa.int64()), (LABEL, pa.string())])
    plan = ArchivePlan(Kafka(), place.directory, ["a"], format=file_format, upsert_by=["id"])
    archive = FileArchive(place.files, place.directory)
    staged = ParquetDirectory(
        archive, place.files, place.directory, ["value"], compression="zstd", store=place.store
    )
    table = MirrorTable(plan, place, staged)
    table.take_in({"value": event_type(row)})

    def write(number: int, values: list[dict[str, Any]]) -> bool:
        value = pa.array(values, event_type(row))
        records = rows(number * 10, len(values)).set_column(1, "value", value)
        files = write_files(table.layout(BatchId(QUERY, number), 1 << 20), [records])
        return table.commit(BatchId(QUERY, number), files)

    creations = [{"op": "c", "before": None, "after": {"id": n, LABEL: "a"}} for n in (1, 2)]
    assert write(0, creations)
    deletion = {"op": "d", "before": {"id": 1, LABEL: "a"}, "after": None}
    changed = {"op": "u", "before": None, "after": {"id": 2, LABEL: "b"}}
    assert write(1, [deletion, changed])
    assert not write(1, [deletion, changed])
    assert read(file_format, place).to_pylist() == [{"id": 2, LABEL: "b"}]


def test_parquet_files_of_decoded_columns(place: TablePlace) -> None:
    archive = FileArchive(place.files, place.directory)
    directory = ParquetDirectory(
        archive, place.files, place.directory, [], compression="zstd", store=place.store
    )
    batch = BatchId(QUERY, 0)
    files = write_files(directory.layout(batch, 1 << 20), [rows(0, 2)])
    assert directory.commit(batch, files)
    [name] = archive.names()
    parquet_file = pa.parquet.ParquetFile(
        open_input(f"{place.directory}/{name}", place.store)
    ).read()
    assert parquet_file["offset"].to_pylist() == [0, 1]
    assert archive.stages() == []


def test_a_file_on_this_machine(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "file")
    file = open_output(path, None)
    file.write(b"abc")
    assert end_output(file) == 3
    assert open_input(path, None) == path
