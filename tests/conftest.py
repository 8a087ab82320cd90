"""Fixtures shared by all tests: Java's absence, Apache Kafka, ZooKeeper, minibroker.

| fixture       | scope    | what                                                            |
|---------------|----------|-----------------------------------------------------------------|
| `zookeeper`   | session  | ZooKeeper 3.8, empty; use a chroot of your own                  |
| `kafka_39`    | session  | Apache Kafka 3.9.1 on a ZooKeeper of its own                    |
| `kafka_44`    | session  | Apache Kafka 4.4.0, KRaft                                       |
| `minibroker`  | session  | one minibroker, embedded metadata; only for tests that share it |
| `new_broker`  | function | makes brokers of the test's own; all are gone when it ends      |
| `new_kafka`   | function | makes Apache Kafka 3.9.1 on a chroot and a directory            |
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.support.broker import Minibroker
from tests.support.java import missing_java
from tests.support.peers import ONE_NODE, KafkaPeer, ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


# The same examples in every run, and no failure because the machine is busy.
hypothesis.settings.register_profile("minibroker", deadline=None, derandomize=True)
# `make fuzz`: new examples in every run, from the seed that it prints.
hypothesis.settings.register_profile(
    "explore", deadline=None, derandomize=False, database=None, print_blob=True
)
hypothesis.settings.load_profile("minibroker")


def pytest_configure() -> None:
    """A stop from outside ends the run as Ctrl-C does: what the fixtures started is stopped too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without Java the tests that need it fail at once, each with the sentence that helps."""
    sentence = missing_java()
    if sentence is None:
        return
    for item in items:
        if item.get_closest_marker("java") is not None:
            _fail_instead(item, sentence)


def _fail_instead(item: pytest.Item, sentence: str) -> None:
    def fail() -> None:
        pytest.fail(sentence, pytrace=False)

    item.fixturenames = []  # type: ignore[attr-defined]  # its own: the list is shared
    item.runtest = fail  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """ZooKeeper for everybody; a test takes a chroot of its own."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kafka_39(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    """Apache Kafka 3.9.1 in ZooKeeper mode."""
    peer = KafkaPeer(
        "3.9.1", tmp_path_factory.mktemp("kafka-3.9.1"), zookeeper=f"{zookeeper.connect}/kafka39"
    )
    peer.start()
    yield peer
    peer.kill()


@pytest.fixture(scope="session")
def kafka_44(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    """Apache Kafka 4.4.0, one KRaft node."""
    peer = KafkaPeer("4.4.0", tmp_path_factory.mktemp("kafka-4.4.0"))
    peer.start()
    yield peer
    peer.kill()


@pytest.fixture(scope="session")
def minibroker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minibroker]:
    """One minibroker for the tests that only use topics of their own."""
    directory = tmp_path_factory.mktemp("minibroker")
    broker = Minibroker(directory / "data", directory / "broker.log", settings=ONE_NODE)
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[Callable[..., Minibroker]]:
    """Makes (and starts) minibrokers below the test's own directory."""
    made: list[Minibroker] = []

    def make(name: str = "data", *, start: bool = True, **options: object) -> Minibroker:
        broker = Minibroker(tmp_path / name, tmp_path / f"{name}.log", **options)  # type: ignore[arg-type]
        made.append(broker)
        return broker.start() if start else broker

    yield make
    for broker in made:
        broker.kill()


@pytest.fixture
def kafka_settings() -> dict[str, str]:
    """Of the Kafka that `new_kafka` starts; a module overrides it."""
    return {}


@pytest.fixture
def new_kafka(
    zookeeper: ZooKeeper, tmp_path: Path, kafka_settings: dict[str, str]
) -> Iterator[Callable[[str, Path], KafkaPeer]]:
    """Makes (and starts) Apache Kafka 3.9.1 on a chroot and a log directory."""
    made: list[KafkaPeer] = []

    def make(chroot: str, log_dir: Path) -> KafkaPeer:
        peer = KafkaPeer(
            "3.9.1",
            tmp_path / f"kafka-{len(made)}",
            zookeeper=f"{zookeeper.connect}/{chroot}",
            log_dir=log_dir,
            settings=kafka_settings,
        )
        made.append(peer)
        peer.start()
        return peer

    yield make
    for peer in made:
        peer.kill()
