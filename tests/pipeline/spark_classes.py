"""Spark's classes in a file that Java maps, so that each of its many starts in the tests is short.

    python -m tests.pipeline.spark_classes FILE

A start of Spark loads and checks some fifteen thousand classes. Java can write the loaded classes
to a file when it ends (class data sharing, JEP 350) and map it at later starts. The file belongs to
this Java and these jars; if either changes, Java ignores it. The tests also run without it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark import SparkContext

from minibroker.pipeline import archive, rollup
from minibroker.pipeline.spark.session import session
from minibroker.testing import Broker
from tests.pipeline import topics
from tests.support.build_files import BUILD
from tests.support.java import SPARK_OPTIONS, SPARK_OPTIONS_VARIABLE
from tests.support.peers import ONE_NODE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSES: Final = BUILD / "spark-classes.jsa"
END_SECONDS: Final = 300
INSTALLED: Final = str(Path(pyspark.__file__).resolve().parent)
"""SPARK_HOME of the tests: Java takes the file only for jars at the same paths."""

_SILENT: Final = "-Xlog:disable"
"""Keeps Java from reporting on stdout, among the jobs' own words, that the file does not fit."""


def spark_options() -> str:
    """Return Java's options for Spark: a quick start, and the file if there is one."""
    if not CLASSES.exists():
        return SPARK_OPTIONS
    return f"{SPARK_OPTIONS} {_SILENT} -XX:SharedArchiveFile={CLASSES}"


def write(path: Path) -> None:
    """Make Java write the classes that two small jobs need."""
    os.environ[SPARK_OPTIONS_VARIABLE] = (
        f"{SPARK_OPTIONS} {_SILENT} -XX:ArchiveClassesAtExit={path}"
    )
    os.environ["SPARK_HOME"] = INSTALLED
    with tempfile.TemporaryDirectory() as scratch, Broker(config=ONE_NODE) as broker:
        settings = {"spark.local.dir": scratch, "spark.sql.shuffle.partitions": "2"}
        spark = session(master="local[2]", app_name="classes", conf=settings)
        _work(spark, broker.bootstrap, Path(scratch))
        spark.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        # Java ends with its stdin, and writes the file then.
        gateway.proc.stdin.close()
        gateway.proc.wait(END_SECONDS)


def _work(spark: SparkSession, address: str, directory: Path) -> None:
    """Use Python's sources, streams, windows and files."""
    topics.create(address, "numbers")
    client = topics.producer(address)
    for number in range(10):
        client.produce("numbers", b'{"number": %d}' % number, partition=0)
    assert client.flush(topics.SECONDS) == 0
    common = {"bootstrap": address, "spark": spark}
    archive("numbers", to=directory / "archive", **common)
    rollup(
        "numbers",
        window="1m",
        agg="sum(number) AS total",
        schema="number BIGINT",
        to=directory / "windows",
        **common,
    )
    assert spark.read.parquet(str(directory / "archive")).count() == 10


if __name__ == "__main__":
    write(Path(sys.argv[1]).absolute())
