"""The work of a task: read ranges of offsets, each exactly to its end.

The end is the end of the partition, or its last stable offset, at the time of planning. There may
be no record just before it: compaction leaves gaps, a transaction ends with a marker, and a reader
of committed data skips aborted transactions. So a task is done when it has seen a record at or
behind the end, or when the broker reports that no more records precede it (`range_reader`).

    ranges ─► first_answers ─► read_span ──Arrow batches──► Spark
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.client.client import Client
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.kafka.pacing import paced
from minibroker.pipeline.kafka.source.first_answers import first_answers
from minibroker.pipeline.kafka.source.range_reader import read_span
from minibroker.pipeline.kafka.task_process import prepare_for_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange


def read_ranges(options: SourceOptions, ranges: Iterable[OffsetRange]) -> Iterator[pa.RecordBatch]:
    """Yield the records of the ranges of a task, one range after the other, each in order.

    Batches have some ten thousand rows or some MiB. With `maxBytesPerSecond` it is not faster than
    the share of one task.

    Raises:
        PipelineError: records of a range are gone and `failOnDataLoss` is on; the broker refused;
            nothing came for `kafkaConsumer.pollTimeoutMs`.
    """
    prepare_for_tasks()
    settings = connection_settings(options.settings)
    client = Client(settings)
    for span, answer in first_answers(options, settings, client, list(ranges)):
        batches = read_span(options, settings, client, span, answer)
        yield from paced(batches, options.task_bytes_per_second)


def read_range(options: SourceOptions, span: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Do `read_ranges` for one range."""
    return read_ranges(options, [span])
