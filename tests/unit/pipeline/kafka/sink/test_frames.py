"""Refusals of the sinks before Spark starts; tests/pipeline tests their output."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink import frames as sinks


class Frame:
    """The part of a DataFrame that is used."""

    columns = ("id",)
    schema = StructType([StructField("id", LongType())])


FRAME: Any = Frame()


def test_files_have_a_known_format() -> None:
    with pytest.raises(PipelineError, match="'orc' is no format of files here: choose parquet"):
        sinks.stream_to_files(FRAME, "files", checkpoint="progress", file_format="orc")


def test_columns_that_become_directories_are_there() -> None:
    with pytest.raises(PipelineError, match=r"partitioned by 'topic'.* it has id"):
        sinks.stream_to_files(FRAME, "files", checkpoint="progress")


def test_columns_are_checked_before_anything_starts() -> None:
    with pytest.raises(PipelineError, match="column 'value'"):
        sinks.write_topic(FRAME, {"topic": "orders"})
    with pytest.raises(PipelineError, match="column 'value'"):
        sinks.stream_to_topic(FRAME, {}, checkpoint="progress", topic="orders")
