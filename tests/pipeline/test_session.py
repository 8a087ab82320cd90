"""The Spark session of every job: it starts, it is quiet, its time zone is UTC."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


def test_time_is_utc_whatever_the_machine_says(spark: SparkSession) -> None:
    row = spark.sql("select cast(timestamp_millis(0) as string) as text").collect()[0]

    assert row.text == "1970-01-01 00:00:00"


def test_spark_on_this_machine_imports_pyspark_as_it_is_installed(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    script = (
        "import os, pyspark\n"
        "def told(_):\n"
        "    import os, pyspark\n"
        "    return pyspark.__file__, os.environ['SPARK_HOME']\n"
        "from minibroker.pipeline.spark.session import session\n"
        "context = session(master='local[1]').sparkContext\n"
        "[(file, home)] = context.parallelize([0], 1).map(told).collect()\n"
        "print(file == pyspark.__file__, 'SPARK_HOME' in os.environ)\n"
        "print(home)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    same, home = output.splitlines()
    assert same == "True False"
    assert Path(home).parent == tmp_path
    assert not Path(home).exists(), "the links are removed at the end"
