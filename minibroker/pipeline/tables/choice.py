"""The choice of a table by the format of an archive; its library is imported only then."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.plan import absolute, is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.tables.table import Table
    from minibroker.pipeline.verbs.archive import ArchivePlan

_LIBRARIES: Final = {"iceberg": "pyiceberg", "delta": "deltalake"}


def check(file_format: str, directory: str) -> None:
    """Raise PipelineError if a table of this format cannot be in `directory`."""
    library = _LIBRARIES[file_format]
    if importlib.util.find_spec(library) is None:
        raise PipelineError(
            f"{library} is not installed, which writes {file_format} tables: "
            "pip install 'minibroker[tables]'"
        )
    if is_remote(directory):
        raise PipelineError(
            f"{file_format} tables cannot be at {directory}: give a path of a file system that "
            "all workers share, or take --format parquet"
        )


def listed(file_format: str, directory: str) -> list[str]:
    """Return the paths of the data files of the newest version of a table.

    Raises PipelineError if there is none whose catalogue is the directory.
    """
    return [file.path for file in open_archive(file_format, directory, {}, None).files()]


def open_table(plan: ArchivePlan) -> Table:
    """Return the table that an archive writes; it is made if there is none.

    Raises PipelineError.
    """
    return open_archive(plan.format, plan.to, plan.catalog, plan.table, plan.decoded_columns)


def open_archive(
    file_format: str,
    directory: str,
    catalog: Mapping[str, str],
    name: str | None,
    without: Sequence[str] = (),
) -> Table:
    """Return the table in `directory`; arguments as of `iceberg.open_table`."""
    check(file_format, directory)
    if file_format == "delta":
        from minibroker.pipeline.tables import delta as delta_table  # noqa: PLC0415  an extra

        return delta_table.open_table(absolute(directory), without)
    from minibroker.pipeline.tables import iceberg as iceberg_table  # noqa: PLC0415  an extra

    return iceberg_table.open_table(absolute(directory), catalog, name, without)
