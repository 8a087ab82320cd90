"""Runs every job on a cluster, and says what it finds, for `test_cluster` and `test_standalone`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.pipeline import topics

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 850.0
PARTITIONS = 3
RECORDS = 600
NOON_MS = 1_795_262_400_000


def results(pythons: list[str]) -> dict[str, Any]:
    """Return what `on_a_cluster` finds, with workers that run Python from these directories."""
    positions = [[part, at] for part in range(PARTITIONS) for at in range(RECORDS // PARTITIONS)]
    return {
        "executors": 2,
        "pythons": sorted(pythons),
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


def fill(address: str, topic: str) -> None:
    """Fill the topic that the jobs read, and make the topic that they write."""
    for name in (topic, f"{topic}-copy"):
        topics.create(address, name, PARTITIONS, topics.FOR_EVER)
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


def run(
    master: str,
    bootstrap: str,
    topic: str,
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    runs_in: Path = ROOT,
) -> dict[str, Any]:
    """Return the results of `on_a_cluster`, which runs with these settings of Spark's in a
    directory.
    """
    # Another session of this process may have set the first for itself.
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    # Spark plans reads here, with the `python3` that it starts there too: as in an active venv.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.pipeline.on_a_cluster"),
            *(master, bootstrap, topic, str(directory), json.dumps(settings or {})),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=runs_in,
        timeout=SECONDS,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome
