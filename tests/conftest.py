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

import gc
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

import minibroker as minibroker_package
from minibroker.compilation import package_kind
from tests.support import durations, pure_tests, schedule, skips
from tests.support.altered_settings import check_settings
from tests.support.broker import Minibroker
from tests.support.java import missing_java
from tests.support.memory import directory_in_memory
from tests.support.peers import ONE_NODE, KafkaPeer, ZooKeeper
from tests.support.taking_over import wait_until_tree_is_read

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from xdist.remote import Producer


# The same examples in every run, and no failure because the machine is busy.
hypothesis.settings.register_profile("minibroker", deadline=None, derandomize=True)
# `make fuzz`: new examples in every run, from the seed that it prints.
hypothesis.settings.register_profile(
    "explore", deadline=None, derandomize=False, database=None, print_blob=True
)
hypothesis.settings.load_profile("minibroker")


def pytest_configure(config: pytest.Config) -> None:
    """Make SIGTERM end the run like Ctrl-C, so that everything the fixtures started is stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if config.getoption("dist", "no") == "loadfile":  # the process that gives tests to workers
        config.pluginmanager.register(Durations())


def pytest_report_header() -> str:
    """Return the line that says which package is tested: `make compiled-test` has another one."""
    return f"minibroker: {package_kind()}, {Path(minibroker_package.__file__).parent}"


class Durations:
    """Prints at the end how the workers spent their time."""

    def __init__(self) -> None:
        self._started_s = time.time()
        self._steps: list[durations.Step] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep how long a step of a test took, and where."""
        worker = getattr(report, "worker_id", "main")
        self._steps.append(durations.Step(worker, report.nodeid, report.stop, report.duration))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        terminalreporter.section("time of workers, modules and tests")
        for line in durations.lines(self._steps, self._started_s):
            terminalreporter.line(line)


@pytest.hookimpl(trylast=True)  # what is deselected needs nothing
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long tests first, and skip those that need the pure package. Without Java, fail the
    tests that need it with a helpful sentence.

    Java is only asked for where a test needs it.
    """
    items.sort(key=lambda item: schedule.rank(item.nodeid))
    pure_tests.skip_pure(items)
    needing = [item for item in items if item.get_closest_marker("java") is not None]
    sentence = missing_java() if needing else None
    if sentence is not None:
        for item in needing:
            _fail_instead(item, sentence)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> schedule.LongestFirst | None:
    """Make the workers take `--dist loadfile` in our order."""
    return schedule.LongestFirst(config, log) if config.option.dist == "loadfile" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Collect what earlier tests left, before a test that reads the log: asyncio logs the error of
    a task that nobody awaited when the task is collected (aiokafka leaves such tasks when it is
    fenced), and that would be a line of the wrong test.
    """
    if "caplog" in getattr(item, "fixturenames", ()):
        gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip that CI must not have into a failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        fault = skips.fault_of(report.longrepr[2])
        if fault is not None:
            report.outcome, report.longrepr = "failed", fault
    return report


def _fail_instead(item: pytest.Item, sentence: str) -> None:
    def fail() -> None:
        pytest.fail(sentence, pytrace=False)

    item.fixturenames = []  # type: ignore[attr-defined]  # its own: the list is shared
    item.runtest = fail  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def shared_brokers() -> list[KafkaPeer | Minibroker]:
    """Return the brokers that tests share, as far as they run."""
    return []


@pytest.fixture(autouse=True, scope="module")
def usual_settings(shared_brokers: list[KafkaPeer | Minibroker]) -> Iterator[None]:
    """Check after each module that shared brokers have their usual settings."""
    yield
    for broker in shared_brokers:
        check_settings(broker)


@pytest.fixture(scope="session")
def peers_directory() -> Iterator[Path]:
    """Yield the directory of the servers that a run shares: in memory, nobody judges their disk."""
    with directory_in_memory() as directory:
        yield directory


@pytest.fixture(scope="session")
def zookeeper(peers_directory: Path) -> Iterator[ZooKeeper]:
    """Yield ZooKeeper for every test; a test uses a chroot of its own."""
    server = ZooKeeper(peers_directory / "zookeeper")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kafka_39(
    zookeeper: ZooKeeper, peers_directory: Path, shared_brokers: list[KafkaPeer | Minibroker]
) -> Iterator[KafkaPeer]:
    """Yield Apache Kafka 3.9.1 in ZooKeeper mode."""
    peer = KafkaPeer(
        "3.9.1", peers_directory / "kafka-3.9.1", zookeeper=f"{zookeeper.connect}/kafka39"
    )
    peer.start()
    shared_brokers.append(peer)
    yield peer
    shared_brokers.remove(peer)
    peer.kill()


@pytest.fixture(scope="session")
def kafka_44(
    peers_directory: Path, shared_brokers: list[KafkaPeer | Minibroker]
) -> Iterator[KafkaPeer]:
    """Yield Apache Kafka 4.4.0, one KRaft node."""
    peer = KafkaPeer("4.4.0", peers_directory / "kafka-4.4.0")
    peer.start()
    shared_brokers.append(peer)
    yield peer
    shared_brokers.remove(peer)
    peer.kill()


@pytest.fixture(scope="session")
def minibroker(
    peers_directory: Path, shared_brokers: list[KafkaPeer | Minibroker]
) -> Iterator[Minibroker]:
    """Yield one minibroker for the tests that only use topics of their own."""
    directory = peers_directory / "minibroker"
    directory.mkdir()
    broker = Minibroker(directory / "data", directory / "broker.log", settings=ONE_NODE)
    broker.start()
    shared_brokers.append(broker)
    yield broker
    shared_brokers.remove(broker)
    broker.stop()


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[Callable[..., Minibroker]]:
    """Yield a function that makes and starts minibrokers below the test's own directory."""
    brokers: list[Minibroker] = []

    def make(name: str = "data", *, start: bool = True, **options: object) -> Minibroker:
        broker = Minibroker(tmp_path / name, tmp_path / f"{name}.log", **options)  # type: ignore[arg-type]
        brokers.append(broker)
        return broker.start() if start else broker

    yield make
    for broker in brokers:
        broker.kill()


@pytest.fixture
def kafka_settings() -> dict[str, str]:
    """Return the settings of the Kafka that `new_kafka` starts; a module may override it."""
    return {}


@pytest.fixture
def new_kafka(
    zookeeper: ZooKeeper, tmp_path: Path, kafka_settings: dict[str, str]
) -> Iterator[Callable[[str, Path], KafkaPeer]]:
    """Yield a function that makes and starts Apache Kafka 3.9.1 on a chroot and a log directory."""
    peers: list[KafkaPeer] = []

    def make(chroot: str, log_dir: Path) -> KafkaPeer:
        peer = KafkaPeer(
            "3.9.1",
            tmp_path / f"kafka-{len(peers)}",
            zookeeper=f"{zookeeper.connect}/{chroot}",
            log_dir=log_dir,
            settings=kafka_settings,
        )
        peers.append(peer)
        peer.start()
        wait_until_tree_is_read(peer)
        return peer

    yield make
    for peer in peers:
        peer.kill()
