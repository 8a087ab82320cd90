"""Uses the client of the pipeline with the settings of a secured broker, given as in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minibroker.kafka.java_formats.properties import escape
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.options import parse
from minibroker.pipeline.kafka.reader_lag import LagReader
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.writers import write_rows
from minibroker.pipeline.kafka.source.batch import plan as ranges_of
from minibroker.pipeline.kafka.source.reader import read_range

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from minibroker.pipeline.kafka.cluster import Kafka


def write_properties(file: Path, settings: Mapping[str, Any]) -> Path:
    """Write the settings as a properties file, as Kafka's tools take it."""
    lines = (f"{name}={escape(str(value))}\n" for name, value in settings.items())
    file.write_text("".join(lines), encoding="ascii")
    return file


def ask_read_and_write(kafka: Kafka, query: str) -> None:
    """Ask, read 20 records, and write a transaction. `query`: a name that no other call has."""
    assert preflight.ask(kafka).partitions["orders"] == 2
    LagReader(kafka, topics=["orders"]).read()
    options = parse({**kafka.options(), "subscribe": "orders"}, streaming=False)
    spans = ranges_of(options)
    assert sum(batch.num_rows for span in spans for batch in read_range(options, span)) == 20
    sink = parse_options({**kafka.writer_options(), "topic": "totals"})
    for again in (False, True):
        position = Position("secured", query, "run", 0, 0, 0)
        outcome = write_rows(sink, position, iter([pa.record_batch({"value": pa.array([b"x"])})]))
        assert outcome.is_repeated is again
