"""Both sources and every job on one session, with the results as JSON, for `test_cluster`.

python -m tests.pipeline.on_a_cluster MASTER BOOTSTRAP TOPIC DIRECTORY SETTINGS

SETTINGS are Spark's, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import minibroker
from minibroker.pipeline import archive, inspect, replay, rollup
from minibroker.pipeline.kafka.source.frames import read_topics
from minibroker.pipeline.spark.session import session
from tests.pipeline.spark_classes import spark_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTINGS = {
    "spark.executor.extraJavaOptions": spark_options(),
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "512m",
}
BATCH_ROWS = 250


def main(master: str, bootstrap: str, topic: str, directory: str, settings: str) -> None:
    """Read `topic`, archive it, replay it into `<topic>-copy`, roll it up, inspect it."""
    here = Path(directory)
    conf = {**SETTINGS, **json.loads(settings)}
    spark = session(master=master, app_name="on a cluster", conf=conf)
    try:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "minPartitions": "8"}
        read = positions(read_topics(spark, given))
        engine: dict[str, Any] = {"bootstrap": bootstrap, "spark": spark}
        archived = archive(topic, to=here / "archive", batch_rows=BATCH_ROWS, **engine)
        files = spark.read.parquet(str(here / "archive"))
        replayed = replay(
            here / "archive",
            to_topic=f"{topic}-copy",
            keep_timestamps=True,
            keep_partitions=True,
            **engine,
        )
        rolled = rollup(
            topic,
            window="10s",
            agg="sum(number) AS total",
            watermark="1s",
            schema="number BIGINT",
            to=here / "windows",
            **engine,
        )
        windows = spark.read.parquet(str(here / "windows")).orderBy("window_start")
        windows = windows.selectExpr("string(window_start) AS start", "total").collect()
        looked = inspect(topic, **engine)
        found = {
            "read": read,
            "archived": archived.rows,
            "batches": archived.batches,
            "files": positions(files),
            "replayed": replayed.rows,
            "rolled": rolled.rows,
            "windows": [[row.start, row.total] for row in windows],
            "looked": sum(partition.records for partition in looked.topics[0].partitions),
        }
        seen = set(spark.sparkContext.parallelize(range(64), 16).map(where).collect())
        found["executors"] = len({directory for directory, _, _ in seen})
        found["packages"] = sorted({package for _, package, _ in seen})
        found["pythons"] = sorted({python for _, _, python in seen})
        found["application"] = spark.sparkContext.applicationId
    finally:
        spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


def positions(rows: DataFrame) -> list[tuple[int, int]]:
    """Return partition and offset of each row, sorted."""
    return sorted(
        (row.partition, row.offset) for row in rows.select("partition", "offset").collect()
    )


def where(_: int) -> tuple[str, str, str]:
    """Return the directory of the executor, the file that its package is in, and the directory of
    its Python.
    """
    return Path.cwd().name, Path(minibroker.__file__).parents[1].name, sys.prefix


if __name__ == "__main__":
    main(*sys.argv[1:])
