"""An archive on a default file system that is not this machine's, by workers of another Python.

python -m tests.pipeline.elsewhere BOOTSTRAP TOPIC DIRECTORY PYTHON

Prints as JSON: the numbers of records of two runs, and of those that topic and archive both have;
why /lake is not inspected, and the topic in DIRECTORY/logs. Hadoop's viewfs shows DIRECTORY as
/lake.
"""

from __future__ import annotations

import json
import sys

from minibroker.pipeline import PipelineError, archive, compare, inspect
from minibroker.pipeline.spark.session import session

MOUNT = "spark.hadoop.fs.viewfs.mounttable.mount.link./lake"


def main(bootstrap: str, topic: str, directory: str, python: str) -> None:
    """Archive the topic twice, and compare it with the archive."""
    conf = {
        "spark.hadoop.fs.defaultFS": "viewfs://mount/",
        MOUNT: f"file://{directory}",
        "spark.pyspark.python": python,
        "spark.sql.shuffle.partitions": "1",
    }
    spark = session(master="local[1]", conf=conf)
    runs = [
        archive(topic, to="/lake/archive", bootstrap=bootstrap, spark=spark).rows for _ in range(2)
    ]
    comparison = compare(topic, "/lake/archive", bootstrap=bootstrap, spark=spark)
    lines: list[int | str] = [*runs, comparison.total("equal")]
    try:
        inspect(log_dir="/lake", spark=spark)
    except PipelineError as error:
        lines.append(str(error))
    lines.append(inspect(log_dir=f"file://{directory}/logs", spark=spark).topics[0].topic)
    spark.stop()
    sys.stdout.write(json.dumps(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
