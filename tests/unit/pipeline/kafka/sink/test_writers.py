"""Writers as Spark asks for them; what they write is in tests/pipeline/test_sink.py."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink import writers as sink
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options

OPTIONS = {"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"}
VALUE = StructType([StructField("value", BinaryType())])
POSITION = Position("prefix", "query", "run", batch=7, task=2, tasks=4)


def test_topics_are_not_overwritten() -> None:
    with pytest.raises(PipelineError, match="append"):
        sink.batch_writer(OPTIONS, VALUE, overwrite=True)
    with pytest.raises(PipelineError, match="append"):
        sink.stream_writer(OPTIONS, VALUE, overwrite=True)


def test_options_and_columns_are_checked_in_the_driver() -> None:
    with pytest.raises(PipelineError, match=r"kafka.bootstrap.servers"):
        sink.batch_writer({"topic": "orders"}, VALUE, overwrite=False)
    with pytest.raises(PipelineError, match="column 'value'"):
        sink.stream_writer(OPTIONS, StructType(), overwrite=False)


def test_two_jobs_have_two_names_and_every_task_of_one_has_the_same() -> None:
    writer, other = (sink.batch_writer(OPTIONS, VALUE, overwrite=False) for _ in range(2))
    copy = pickle.loads(pickle.dumps(writer))

    assert vars(copy) == vars(writer)
    assert vars(writer) != vars(other)


def test_rows_are_written_by_tasks() -> None:
    writer = sink.batch_writer(OPTIONS, VALUE, overwrite=False)

    with pytest.raises(PipelineError, match="by Spark's tasks"):
        writer.write(iter(()))


def test_a_task_without_rows_asks_nobody() -> None:
    """No broker is there."""
    outcome = sink.write_rows(parse_options(OPTIONS), POSITION, iter(()))

    assert (outcome.rows, outcome.is_repeated, outcome.is_first) == (0, False, False)


def test_the_driver_asks_nobody_after_the_first_micro_batch_of_a_run() -> None:
    outcome = sink.WriteOutcome(POSITION, 5, "orders")

    sink.stream_writer(OPTIONS, VALUE, overwrite=False).commit([outcome, None], 8)
