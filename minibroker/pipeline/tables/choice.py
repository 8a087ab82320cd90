"""The choice of a table by the format of an archive; its library is imported only then."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.files.object_stores import is_object_store
from minibroker.pipeline.files.paths import absolute, is_remote
from minibroker.pipeline.tables.table import TablePlace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.files.object_stores import ObjectStore
    from minibroker.pipeline.tables.table import Table

_LIBRARIES: Final = {"iceberg": "pyiceberg", "delta": "deltalake"}


def check(file_format: str, directory: str) -> None:
    """Raise PipelineError if a table of this format cannot be in `directory`."""
    _check_installed(_LIBRARIES[file_format], f"writes {file_format} tables")
    check_place(directory, f"{file_format} tables")


def check_place(directory: str, things: str) -> None:
    """Raise PipelineError if PyArrow cannot write into `directory`.

    Args:
        directory: path or URL.
        things: what is written there, for the message.
    """
    if is_object_store(directory):
        _check_installed("obstore", f"writes {things} into a store")
    elif is_remote(directory):
        raise PipelineError(
            f"{things} cannot be at {directory}: give a path of a file system that all workers "
            "share, or s3://BUCKET/DIR"
        )


def _check_installed(library: str, does: str) -> None:
    if importlib.util.find_spec(library) is None:
        raise PipelineError(
            f"{library} is not installed, which {does}: pip install 'minibroker[tables]'"
        )


def place_of(directory: str, store: ObjectStore | None) -> TablePlace:
    """Return the place of a table; `store` has the settings for a URL of a store."""
    if store is None:
        return TablePlace(absolute(directory), LocalFiles())
    from minibroker.pipeline.files.store_files import MixedFiles  # noqa: PLC0415  an extra

    return TablePlace(directory.rstrip("/"), MixedFiles(store), store)


def data_paths(file_format: str, directory: str, store: ObjectStore | None) -> list[str]:
    """Return the paths of the data files of the newest version of a table.

    Raises PipelineError if there is none whose catalogue is the directory.
    """
    place = place_of(directory, store)
    return [file.path for file in open_archive(file_format, place, {}, None).files()]


def open_archive(
    file_format: str,
    place: TablePlace,
    catalog: Mapping[str, str],
    name: str | None,
    without: Sequence[str] = (),
) -> Table:
    """Return the table at `place`; arguments as of `iceberg.open_table`."""
    check(file_format, place.directory)
    if file_format == "delta":
        from minibroker.pipeline.tables import delta as delta_table  # noqa: PLC0415  an extra

        return delta_table.open_table(place, without)
    from minibroker.pipeline.tables import iceberg as iceberg_table  # noqa: PLC0415  an extra

    return iceberg_table.open_table(place, catalog, name, without)
