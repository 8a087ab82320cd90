"""The same code and the same result on a cluster: a master and two workers, each with executors.

They run in processes of their own, since a JVM has one SparkContext. The workers get the package as
a file: they import the driver's package, whether or not it is installed there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.pipeline import topics
from tests.pipeline.committed import records

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 850.0
PARTITIONS = 3
RECORDS = 600
NOON_MS = 1_795_262_400_000


@pytest.mark.timeout(900)
def test_every_job_does_the_same_on_two_workers(
    process_address: str, topic: str, tmp_path: Path
) -> None:
    """The same results as in the other tests: all records, in their partitions, and each window
    once.
    """
    fill(process_address, topic)
    found = run("local-cluster[2,1,512]", process_address, topic, tmp_path)
    # Such a cluster leaves its executors' directories beside Spark itself.
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / found.pop("application"))
    positions = [[part, at] for part in range(PARTITIONS) for at in range(RECORDS // PARTITIONS)]
    assert found == {
        "executors": 2,
        "packages": ["minibroker.zip"],
        "read": positions,
        "archived": RECORDS,
        "batches": 3,
        "files": positions,
        "replayed": RECORDS,
        "rolled": RECORDS,
        "looked": RECORDS,
        "windows": [  # the last one is provisional
            [f"2026-11-21 12:00:{ten}0", sum(range(ten * 100, ten * 100 + 100))] for ten in range(6)
        ],
    }
    assert records(process_address, f"{topic}-copy") == records(process_address, topic)


def fill(address: str, topic: str) -> None:
    """Fill the topic that the jobs read, and make the topic that they write."""
    for made in (topic, f"{topic}-copy"):
        topics.create(address, made, PARTITIONS, {"retention.ms": "-1"})
    client = topics.producer(address)
    for number in range(RECORDS):
        client.produce(
            topic,
            json.dumps({"number": number}).encode(),
            f"{number % 11}".encode(),
            partition=number % PARTITIONS,
            timestamp=NOON_MS + number * 100,
        )
    assert client.flush(topics.SECONDS) == 0


def run(master: str, bootstrap: str, topic: str, directory: Path) -> dict[str, Any]:
    """Return the results of `on_a_cluster`."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.pipeline.on_a_cluster"),
            *(master, bootstrap, topic, str(directory)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=SECONDS,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
