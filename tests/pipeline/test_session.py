"""The Spark session of every job: it starts, it is quiet, its time zone is UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


def test_time_is_utc_whatever_the_machine_says(spark: SparkSession) -> None:
    row = spark.sql("select cast(timestamp_millis(0) as string) as text").collect()[0]

    assert row.text == "1970-01-01 00:00:00"
