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
    root = Path(directory)
    conf = {**SETTINGS, **json.loads(settings)}
    spark = session(master=master, app_name="on a cluster", conf=conf)
    try:
        source_options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "minPartitions": "8",
        }
        ranges = positions(read_topics(spark, source_options))
        engine: dict[str, Any] = {"bootstrap": bootstrap, "spark": spark}
        archived = archive(topic, to=root / "archive", batch_rows=BATCH_ROWS, **engine)
        files = spark.read.parquet(str(root / "archive"))
        replayed = replay(
            root / "archive",
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
            to=root / "windows",
            **engine,
        )
        windows = spark.read.parquet(str(root / "windows")).orderBy("window_start")
        windows = windows.selectExpr("string(window_start) AS start", "total").collect()
        looked = inspect(topic, **engine)
        results = {
            "read": ranges,
            "archived": archived.rows,
            "batches": archived.batches,
            "files": positions(files),
            "replayed": replayed.rows,
            "rolled": rolled.rows,
            "windows": [[row.start, row.total] for row in windows],
            "looked": sum(partition.records for partition in looked.topics[0].partitions),
        }
        places = set(spark.sparkContext.parallelize(range(64), 16).map(place_of_worker).collect())
        results["executors"] = len({directory for directory, _, _ in places})
        results["packages"] = sorted({package for _, package, _ in places})
        results["pythons"] = sorted({python for _, _, python in places})
        results["application"] = spark.sparkContext.applicationId
    finally:
        spark.stop()
    sys.stdout.write(json.dumps(results) + "\n")


def positions(rows: DataFrame) -> list[tuple[int, int]]:
    """Return partition and offset of each row, sorted."""
    return sorted(
        (row.partition, row.offset) for row in rows.select("partition", "offset").collect()
    )


def place_of_worker(_: int) -> tuple[str, str, str]:
    """Return the directory of the executor, the file that its package is in, and the directory of
    its Python.
    """
    return Path.cwd().name, Path(minibroker.__file__).parents[1].name, sys.prefix


if __name__ == "__main__":
    main(*sys.argv[1:])
