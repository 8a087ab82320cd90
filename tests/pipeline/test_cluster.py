"""The same code and the same result on a cluster: a master and two workers, each with executors.

They run in processes of their own, since a JVM has one SparkContext. The workers get the package as
a file: they import the driver's package, whether or not it is installed there.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyspark
import pytest

from tests.pipeline.cluster_jobs import fill, results, run
from tests.pipeline.committed import records

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.mark.timeout(900)
def test_every_job_does_the_same_on_two_workers(
    process_address: str, topic: str, tmp_path: Path
) -> None:
    """The same results as in the other tests: all records, in their partitions, and each window
    once.
    """
    fill(process_address, topic)
    outcome = run("local-cluster[2,1,512]", process_address, topic, tmp_path)
    # Such a cluster leaves its executors' directories beside Spark itself.
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / outcome.pop("application"))
    assert outcome == results([sys.prefix])
    assert records(process_address, f"{topic}-copy") == records(process_address, topic)
