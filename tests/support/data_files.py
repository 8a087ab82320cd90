"""Data files of an archive without Spark: the rows of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.pipeline.tables.data_files import FileWriter

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from minibroker.pipeline.tables.data_files import DataFile, Layout


def write_files(layout: Layout, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
    """Write the rows of one task, with the columns `topic` and `date` among them."""
    writer = FileWriter(layout)
    try:
        for batch in batches:
            writer.add(batch)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise
