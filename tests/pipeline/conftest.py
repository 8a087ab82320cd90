"""One Spark, and brokers to read from and to write to, shared by all tests of the pipeline.

| fixture             | scope    | what                                                          |
|---------------------|----------|---------------------------------------------------------------|
| `quick_java`        | session  | Spark's Java has one compiler, in other processes too         |
| `spark`             | session  | `local[2]`, our data sources registered, the connector's jars |
| `in_process`        | session  | `minibroker.testing.Broker`, in the memory of this process    |
| `minibroker_address`| session  | its HOST:PORT                                                 |
| `s3`                | session  | an object store (moto)                                        |
| `process_address`   | session  | of minibroker in a process of its own                         |
| `kafka_address`     | session  | of Apache Kafka 3.9.1                                         |
| `address`           | function | each of the three in turn; with Spark the first and the last  |
| `stored`            | function | arguments of an archive in `s3`                               |
| `topic`             | function | a name that no other test has                                 |
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline.spark.session import session
from minibroker.testing import Broker
from tests.pipeline.spark_classes import INSTALLED, spark_options
from tests.support.build_files import required
from tests.support.java import SPARK_CONNECTOR, SPARK_OPTIONS_VARIABLE
from tests.support.memory import directory_in_memory
from tests.support.object_store import s3_server
from tests.support.peers import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.broker import Minibroker
    from tests.support.object_store import S3Server
    from tests.support.peers import KafkaPeer

collect_ignore = [] if os.environ.get("MINIBROKER_STANDALONE") == "1" else ["test_standalone.py"]
"""`make standalone` runs it."""

_numbers = itertools.count()

SPARK_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.pollingDelay": "10ms",
    # For a few rows, making and compiling code takes longer than doing without. Jobs in processes
    # of their own (commands, kills, clusters) compile as a user's.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """Set these options for every later start of Spark, in this process and below it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SPARK_OPTIONS_VARIABLE, spark_options())
        patch.setenv("SPARK_HOME", INSTALLED)  # the file of classes belongs to these paths
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Yield an empty directory in memory: a job is judged by its rows, not by the disk."""
    with directory_in_memory(request) as directory:
        yield directory


@pytest.fixture(scope="session")
def spark(peers_directory: Path) -> Iterator[SparkSession]:
    """Yield the session of all tests; a test that sets `spark.conf` must unset it."""
    required(SPARK_CONNECTOR / ".done")
    scratch = peers_directory / "spark"
    new_session = session(
        master="local[2]",
        app_name="minibroker tests",
        jars=sorted(str(jar) for jar in SPARK_CONNECTOR.glob("*.jar")),
        conf={
            **SPARK_SETTINGS,
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        },
    )
    yield new_session
    new_session.stop()


@pytest.fixture(scope="session")
def in_process() -> Iterator[Broker]:
    """Yield a minibroker in this process: tests can read its records and add faults."""
    with Broker(config=ONE_NODE) as broker:
        yield broker


@pytest.fixture(scope="session")
def minibroker_address(in_process: Broker) -> str:
    """Return HOST:PORT of the minibroker in this process."""
    return in_process.bootstrap


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """Yield an object store on this machine."""
    with s3_server() as server:
        yield server


@pytest.fixture
def stored(spark: SparkSession, minibroker_address: str, s3: S3Server) -> dict[str, Any]:
    """Return the arguments of every archive in the object store."""
    return {"bootstrap": minibroker_address, "storage": s3.store.for_delta(), "spark": spark}


@pytest.fixture(scope="session")
def process_address(minibroker: Minibroker) -> str:
    """Return HOST:PORT of a minibroker in a process of its own."""
    return minibroker.address


@pytest.fixture(scope="session")
def kafka_address(kafka_39: KafkaPeer) -> str:
    """Return HOST:PORT of Apache Kafka 3.9.1."""
    return kafka_39.address


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `address` each kind of broker in turn.

    Spark is slow, and reads and writes by the same clients, which the other tests try with all
    three: its tests leave out the process. The tests of the sink and of the kills have one.
    """
    if "address" in metafunc.fixturenames:
        kinds = ["minibroker_address", "kafka_address"]
        if "spark" not in metafunc.fixturenames:
            kinds.insert(1, "process_address")
        metafunc.parametrize("address", kinds, indirect=True)


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """Return the address of one kind of broker: the same test, the same rows."""
    broker_address = request.getfixturevalue(request.param)
    assert isinstance(broker_address, str)
    return broker_address


@pytest.fixture
def topic() -> str:
    """Return a name that no other test has."""
    return f"pipeline-{next(_numbers)}"
