"""Bytes of data files: on this machine, or in an object store through PyArrow.

A file in a store is there once it is closed, and whole; what a killed task had written of it is
nowhere to be seen.
"""

from __future__ import annotations

import os
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import local
from minibroker.pipeline.files.object_stores import ObjectStore, bucket_and_key

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


@cache
def _system(store: ObjectStore) -> S3FileSystem:
    """Return the client of a store; one for each process, since it holds connections."""
    from pyarrow.fs import S3FileSystem  # noqa: PLC0415  loads Amazon's library

    return S3FileSystem(**store.for_arrow())


def open_output(path: str, store: ObjectStore | None) -> IO[bytes]:
    """Open a new file for writing; `store` is None for a path of this machine."""
    if store is None:
        target = local(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("wb")
    file: IO[bytes] = _system(store).open_output_stream("/".join(bucket_and_key(path)))
    return file


def end_output(file: IO[bytes]) -> int:
    """Close a file and return its bytes, which are durable then.

    Raises PipelineError if a store did not take them.
    """
    size = file.tell()
    if not isinstance(file, pa.NativeFile):
        file.flush()
        os.fsync(file.fileno())
    try:
        file.close()
    except OSError as error:
        raise PipelineError(f"a data file cannot be written: {error}") from error
    return size


def open_input(path: str, store: ObjectStore | None) -> Any:
    """Return a file for reading, as PyArrow takes it."""
    if store is None:
        return str(local(path))
    return _system(store).open_input_file("/".join(bucket_and_key(path)))
