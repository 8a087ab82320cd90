"""Paths on another default file system, directories that workers do not see, foreign sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import names
from minibroker.pipeline import PipelineError, archive
from minibroker.pipeline.spark import places
from minibroker.pipeline.spark.session import beside
from tests.pipeline import topics
from tests.support.batches import batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600.0


def test_paths_are_on_the_default_file_system_and_workers_run_the_python_of_the_settings(
    minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 5)
    python, started = tmp_path / "python", tmp_path / "started"
    python.write_text(f'#!/bin/sh\necho "$@" >> {started}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    lake = tmp_path / "lake"
    segments = lake / "logs" / "kept-0"
    segments.mkdir(parents=True)
    (segments / names.segment_file(0, names.LOG)).write_bytes(batch(b"v"))
    words = ["tests.pipeline.elsewhere", minibroker_address, topic, str(lake), str(python)]
    environment = {name: os.environ[name] for name in os.environ if name != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=SECONDS,
        env=environment,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    *counts, refused, inspected = json.loads(done.stdout.splitlines()[-1])
    assert counts == [5, 0, 5]
    assert refused.startswith("viewfs://mount/lake is not a directory of this machine")
    assert inspected == "kept"
    assert (lake / "archive" / "_minibroker" / "job.json").is_file()
    assert list((lake / "archive").rglob("*.parquet"))
    assert "pyspark" in started.read_text()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_a_directory_that_workers_do_not_see_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A path through an open file of this process is another one, or none, in each worker."""
    places.check_shared(spark, [str(tmp_path / "shared"), "s3a://not/asked"])
    assert not list((tmp_path / "shared" / "_minibroker").iterdir())
    (tmp_path / "own").mkdir()
    handle = os.open(tmp_path / "own", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with pytest.raises(PipelineError, match=r"does not see: .* a URL such as hdfs"):
            places.check_shared(spark, [f"/proc/self/fd/{handle}"])
    finally:
        os.close(handle)


def test_a_session_of_the_caller_stays_as_it_is(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """It knows none of our sources, and is in another time zone; the archive is in UTC."""
    topics.create(minibroker_address, topic, 1, topics.FOR_EVER)
    client = topics.producer(minibroker_address)
    client.produce(topic, b"late", timestamp=1_795_219_200_000 - 1)  # 23:59:59.999 in UTC
    assert client.flush(topics.SECONDS) == 0
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")

    archive(topic, to=tmp_path / "archive", bootstrap=minibroker_address, spark=theirs)

    assert theirs.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    (date,) = (tmp_path / "archive" / f"topic={topic}").iterdir()
    assert date.name == "date=2026-11-20"
    with beside(theirs, {"spark.sql.shuffle.partitions": "3"}) as own:
        assert own.conf.get("spark.sql.session.timeZone") == "UTC"
        assert own.conf.get("spark.sql.shuffle.partitions") == "3"
        assert own.sparkContext is theirs.sparkContext
