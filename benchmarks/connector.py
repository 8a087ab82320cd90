"""Spark's own Kafka connector, the peer of the pipeline's source.

Its frames have the columns of the pipeline's records, in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.pipeline.kafka import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession


def read_topics(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the records between two bounds of topics, as a frame that ends."""
    return _in_order(spark.read.format("kafka").options(**options).load(), options)


def stream_topics(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the records in topics, present and future, as a stream."""
    return _in_order(spark.readStream.format("kafka").options(**options).load(), options)


def _in_order(frame: DataFrame, options: Mapping[str, str]) -> DataFrame:
    has_headers = options.get("includeHeaders") == "true"
    return frame.select(*schemas.record_schema(include_headers=has_headers).names)
