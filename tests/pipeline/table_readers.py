"""Readers of archives that are not ours: DuckDB, PyIceberg, deltalake, pyarrow.

Each returns (topic, partition, offset, value) of every record that it sees, sorted. pyarrow knows
no tables: it reads the files that PyIceberg or deltalake names. The extensions of DuckDB come as
wheels (`duckdb-ext-…`): nothing is fetched.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import duckdb_ext
import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import dataset, parquet
from pyiceberg.table import StaticTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.support.object_store import S3Server

Record = tuple[str, int, int, bytes | None]
COLUMNS: Final = ("topic", "partition", "offset", "value")
_ROWS: Final = 'SELECT topic, partition, "offset", value FROM'


def duckdb_iceberg(directory: Path) -> list[Record]:
    return _duckdb(f"{_ROWS} iceberg_scan('{directory}')", "avro", "iceberg")


def duckdb_delta(directory: Path) -> list[Record]:
    return _duckdb(f"{_ROWS} delta_scan('{directory}')", "delta")


def duckdb_parquet(directory: Path) -> list[Record]:
    files = f"'{directory}/topic=*/date=*/*.parquet'"
    return _duckdb(f"{_ROWS} read_parquet({files}, hive_partitioning = true)")


def pyiceberg(directory: Path) -> list[Record]:
    return _of_arrow(StaticTable.from_metadata(str(directory)).scan().to_arrow())


def deltalake(directory: Path) -> list[Record]:
    return _of_arrow(DeltaTable(str(directory)).to_pyarrow_table())


def pyarrow_iceberg(directory: Path) -> list[Record]:
    scans = StaticTable.from_metadata(str(directory)).scan().plan_files()
    return _of_files([scanned.file.file_path.removeprefix("file://") for scanned in scans])


def pyarrow_delta(directory: Path) -> list[Record]:
    return _of_files(
        [uri.removeprefix("file://") for uri in DeltaTable(str(directory)).file_uris()]
    )


def pyarrow(directory: Path) -> list[Record]:
    return _of_arrow(dataset.dataset(directory, format="parquet", partitioning="hive").to_table())


READERS: Final[Mapping[str, tuple[Callable[[Path], list[Record]], ...]]] = {
    "iceberg": (duckdb_iceberg, pyiceberg, pyarrow_iceberg),
    "delta": (duckdb_delta, deltalake, pyarrow_delta),
    "parquet": (duckdb_parquet, pyarrow),
}
"""Format of an archive → its readers."""


def _table_duckdb_iceberg(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    return _duckdb(_select(columns, f"iceberg_scan('{directory}')"), "avro", "iceberg")


def _table_duckdb_delta(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    return _duckdb(_select(columns, f"delta_scan('{directory}')"), "delta")


def _table_duckdb_parquet(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    files = f"'{directory}/topic=*/date=*/*.parquet', union_by_name = true"
    return _duckdb(_select(columns, f"read_parquet({files}, hive_partitioning = true)"))


def _table_pyiceberg(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    return _rows(StaticTable.from_metadata(str(directory)).scan().to_arrow(), columns)


def _table_deltalake(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    return _rows(DeltaTable(str(directory)).to_pyarrow_table(), columns)


def _table_pyarrow(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    files = sorted(directory.glob("topic=*/date=*/*.parquet"))
    tables = [parquet.read_table(file, partitioning=None) for file in files]
    return _rows(pa.concat_tables(tables, promote_options="permissive"), columns)


TABLES: Final[Mapping[str, tuple[Callable[..., list[tuple[Any, ...]]], ...]]] = {
    "iceberg": (_table_duckdb_iceberg, _table_pyiceberg),
    "delta": (_table_duckdb_delta, _table_deltalake),
    "parquet": (_table_duckdb_parquet, _table_pyarrow),
}
"""Format → readers of any columns of a table, each row as a tuple, sorted by the first column."""


def table_in_store(server: S3Server, file_format: str, directory: str) -> pa.Table:
    """Return the rows of an archive in a store: a table, or Parquet with columns."""
    if file_format == "iceberg":
        return StaticTable.from_metadata(directory, server.store.for_iceberg()).scan().to_arrow()
    if file_format == "delta":
        options = server.store.for_delta()
        return DeltaTable(directory, storage_options=options).to_pyarrow_table()
    paths = [path for path in server.paths(directory) if path.endswith(".parquet")]
    return dataset.dataset(paths, filesystem=server.files, format="parquet").to_table()


def _select(columns: tuple[str, ...], source: str) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f"SELECT {names} FROM {source}"


def _rows(table: pa.Table, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    lists = (table[name].to_pylist() for name in columns)
    return sorted(zip(*lists, strict=True), key=_order)


def _duckdb(query: str, *extensions: str) -> list[Any]:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for name in extensions:
            connection.execute(f"LOAD '{_extension(name)}'")
        return sorted(connection.execute(query).fetchall(), key=_order)


def _extension(name: str) -> Path:
    (root,) = duckdb_ext.__path__
    (extension,) = Path(root, "extensions", f"v{duckdb.__version__}").glob(f"*/{name}.*_extension")
    return extension


def _of_files(paths: Sequence[str]) -> list[Record]:
    """Read files whose topic may be in their path only; a column of the file comes first."""
    if not paths:
        return []
    names = dataset.dataset(paths, format="parquet").schema.names
    partitioning = None if "topic" in names else "hive"
    return _of_arrow(dataset.dataset(paths, format="parquet", partitioning=partitioning).to_table())


def _of_arrow(table: pa.Table) -> list[Record]:
    columns = (table[name].to_pylist() for name in COLUMNS)
    return sorted(zip(*columns, strict=True), key=_order)


def _order(record: tuple[Any, ...]) -> tuple[Any, ...]:
    return record[:3]
