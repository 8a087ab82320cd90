"""Every job on a standalone cluster of Spark, whose workers have Pythons and directories of their
own, and with a Python that Spark brings there (`make standalone`).

Kafka 3.9.1, Kafka 4.4.0 and minibroker are to give the same results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipeline.cluster_jobs import fill, results, run
from tests.pipeline.committed import records
from tests.pipeline.standalone import WORKERS, StandaloneCluster, packed_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Yield a master and two workers."""
    spark_cluster = StandaloneCluster(tmp_path_factory.mktemp("standalone"))
    try:
        spark_cluster.start()
        yield spark_cluster
    finally:
        spark_cluster.stop()


@pytest.mark.parametrize("broker", ["minibroker", "kafka_39", "kafka_44"])
def test_every_job_with_the_python_of_each_worker(
    cluster: StandaloneCluster,
    broker: str,
    topic: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Each worker runs its own Python, and gets the package as a file."""
    address = request.getfixturevalue(broker).address
    fill(address, topic)
    outcome = run(cluster.master, address, topic, tmp_path)
    del outcome["application"]
    pythons = [str(cluster.home(worker) / "python") for worker in range(WORKERS)]
    assert outcome == results(pythons)
    assert records(address, f"{topic}-copy") == records(address, topic)


def test_every_job_with_a_python_that_spark_brings(
    cluster: StandaloneCluster,
    process_address: str,
    topic: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Each executor runs the Python of `spark.archives`, unpacked in its own directory; Spark plans
    with the one at the same path here.
    """
    fill(process_address, topic)
    packed = packed_python(tmp_path_factory.mktemp("packed"))
    settings = {
        "spark.archives": f"{packed}#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }
    outcome = run(
        cluster.master, process_address, topic, tmp_path, settings=settings, runs_in=packed.parent
    )
    application = outcome.pop("application")
    unpacked = [
        str(directory)
        for worker in range(WORKERS)
        for directory in cluster.home(worker).glob(f"work/{application}/*/environment")
    ]
    assert outcome == results(unpacked)
    assert records(process_address, f"{topic}-copy") == records(process_address, topic)
