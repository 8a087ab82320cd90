"""The pytest plugin, found by its entry point: fixtures, a marker, options, reports.

    kafka           a broker for the whole run, as it was at the start in every test
    kafka_topic     the name of a new topic on `kafka`, one of its own for every test
    kafka_broker    a broker for this test alone
    kafka_cluster   three brokers for this test alone, which replicate
    kafka_module    a broker for the tests of one module; it keeps what they write
    kafka_session   a broker for the whole run; it keeps what the tests write

    @pytest.mark.kafka(topics=["orders:3"], config={"message.max.bytes": 2000}, security="SSL")
        topics for `kafka`, `kafka_broker` and `kafka_cluster`; settings, the security protocol,
        `users` and `acls` for the latter two

    [pytest]
    minibroker_topics =            topics of every broker but `kafka_broker`, as on the command line
        orders:3
    minibroker_config =            settings of every broker of the run
        message.max.bytes=2000000

    pytest --kafka=HOST:PORT       a real Kafka in the place of `kafka`; see `real_kafka`

The broker runs in a thread of its own, so the fixtures serve sync and async tests alike; under
pytest-xdist every worker has its own. A fault that never met a request fails its test. A test that
fails shows the last requests of its broker. No module of minibroker is imported before a fixture is
used.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.testing.broker import Broker
    from minibroker.testing.cluster import Cluster

MARKER: Final = (
    "kafka(topics=[…], config={…}, security=…, users={…}, acls=[…]): topics of the fixtures `kafka`"
    " and `kafka_broker`; settings, security protocol, users and ACLs of `kafka_broker`; on a"
    " module also those of `kafka_module`"
)
_TOPIC_NAME_MAX: Final = 200
_numbers = itertools.count(1)
_brokers: Final = pytest.StashKey[dict[str, "Broker | Cluster"]]()
"""Fixture → its broker or cluster, on the node with the same lifetime."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addini("minibroker_topics", "topics of the shared brokers", type="linelist")
    parser.addini("minibroker_config", "KEY=VALUE settings of the brokers", type="linelist")
    parser.getgroup("minibroker").addoption(
        "--kafka",
        metavar="HOST:PORT",
        help="run the tests that use `kafka` against this Kafka; tests that read minibroker's data,"
        " move its clock or add faults are skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and keep pytest from rewriting the broker's modules.

    pytest parses and compiles every module of a distribution with a plugin, to rewrite its assert
    statements. The broker does not need that. It loads modules while it runs, in a thread of its
    own, and Python 3.11 cannot parse in two threads at once (gh-106905).
    """
    config.addinivalue_line("markers", MARKER)
    hook = config.pluginmanager.rewrite_hook
    marked = getattr(hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("minibroker")


def _settings(config: pytest.Config) -> dict[str, str]:
    settings = {}
    for line in config.getini("minibroker_config"):
        key, separator, value = line.partition("=")
        if not separator:
            raise pytest.UsageError(
                f"minibroker_config: {line!r}, expected KEY=VALUE (one on each line)"
            )
        settings[key.strip()] = value.strip()
    return settings


def _wishes(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """Return what the marker says: arguments of `Broker`. Raises UsageError."""
    marker = node.get_closest_marker("kafka")
    wishes: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    unknown = sorted(set(wishes) - {"topics", "config", "security", "users", "acls"})
    if unknown or (marker is not None and marker.args):
        raise pytest.UsageError(
            f"@pytest.mark.kafka takes topics, config, security, users and acls, not {unknown}"
        )
    return wishes


def _serving(
    request: pytest.FixtureRequest,
    topics: Sequence[str] = (),
    config: dict[str, Any] | None = None,
    **secured: Any,
) -> Iterator[Broker]:
    """Run a broker as long as the fixture lives. `secured`: `security`, `users`, `acls`."""
    from minibroker.testing.broker import Broker  # noqa: PLC0415  only who uses it pays

    settings = {**_settings(request.config), **(config or {})}
    with Broker(topics=topics, config=settings, **secured) as broker:
        _note(request, broker)
        yield broker


def _real_kafka(config: pytest.Config) -> Any:
    """Return the Kafka that `--kafka` names, None without the option."""
    address = config.getoption("kafka")
    if address is None:
        return None
    from minibroker.testing.real_kafka import RealKafka  # noqa: PLC0415  as above

    return RealKafka(address)


@pytest.fixture(scope="session")
def _kafka_of_the_run(request: pytest.FixtureRequest) -> Iterator[Broker]:
    yield from _serving(request, request.config.getini("minibroker_topics"))


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Yield the run's broker, without records, groups and settings of other tests."""
    wishes = {} if "kafka_broker" in request.fixturenames else _wishes(request.node)
    if (
        wishes.keys() & {"config", "security", "users", "acls"}
        and "kafka_module" not in request.fixturenames
    ):
        raise pytest.UsageError(
            "@pytest.mark.kafka(config=…, security=…) is for kafka_broker: `kafka` serves the whole"
            " run; its settings are the ini option minibroker_config"
        )
    topics = wishes.get("topics", ())
    real = _real_kafka(request.config)
    if real is not None:
        with real.with_topics((*request.config.getini("minibroker_topics"), *topics)):
            yield real
        return
    broker: Broker = request.getfixturevalue("_kafka_of_the_run")
    broker.reset()
    for topic in topics:
        broker.add_topic(topic)
    _note(request, broker)
    yield broker


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Yield a broker for this test alone."""
    if request.config.getoption("kafka") is not None:
        pytest.skip("kafka_broker is a minibroker of the test's own; this run has --kafka")
    wishes = _wishes(request.node)
    yield from _serving(request, **wishes)


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Yield three brokers for this test alone, which replicate."""
    if request.config.getoption("kafka") is not None:
        pytest.skip("kafka_cluster is a cluster of the test's own; this run has --kafka")
    from minibroker.testing.cluster import Cluster  # noqa: PLC0415  only who uses it pays

    wishes = _wishes(request.node)
    wishes["config"] = {**_settings(request.config), **(wishes.get("config") or {})}
    with Cluster(3, **wishes) as cluster:
        _note(request, cluster)
        yield cluster


@pytest.fixture(scope="module")
def kafka_module(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Yield a broker for the tests of one module; it keeps what they write."""
    wishes = _wishes(request.node)
    topics = (*request.config.getini("minibroker_topics"), *wishes.pop("topics", ()))
    yield from _lasting(request, topics, **wishes)


@pytest.fixture(scope="session")
def kafka_session(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Yield a broker for the whole run; it keeps what the tests write."""
    yield from _lasting(request, request.config.getini("minibroker_topics"))


def _lasting(
    request: pytest.FixtureRequest, topics: Sequence[str], **wishes: Any
) -> Iterator[Broker]:
    real = _real_kafka(request.config)
    if real is None:
        yield from _serving(request, topics, **wishes)
        return
    if wishes:
        pytest.skip("@pytest.mark.kafka(config=…) needs a minibroker; this run has --kafka")
    with real.with_topics(topics):
        yield real


@pytest.fixture
def kafka_topic(kafka: Broker, request: pytest.FixtureRequest) -> str:
    """Make a topic with one partition, named after the test, and return its name."""
    plain = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)[:_TOPIC_NAME_MAX]
    name = f"{plain}-{next(_numbers)}"
    kafka.create_topic(name)
    return name


def _note(request: pytest.FixtureRequest, broker: Broker | Cluster) -> None:
    assert request.fixturename is not None
    request.node.stash.setdefault(_brokers, {})[request.fixturename] = broker


def _brokers_of(item: pytest.Item) -> list[Broker | Cluster]:
    """Return the brokers and clusters of the fixtures that a test uses."""
    names = getattr(item, "fixturenames", ())
    return [
        broker
        for node in item.listchain()
        for name, broker in node.stash.get(_brokers, {}).items()
        if name in names
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Fail a test that passed if one of its faults never met a request."""
    outcome = yield
    for broker in _brokers_of(item):
        missed = broker.faults.missed
        broker.faults.forget()
        if missed:
            pytest.fail(
                f"{', '.join(map(repr, missed))}: never met a request"
                " (add(…, may_miss=True) where this is no mistake)",
                pytrace=False,
            )
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Add the brokers' reports to the report of a test that failed."""
    report = yield
    if report.when == "call" and report.failed:
        for broker in _brokers_of(item):
            broker.faults.forget()
            title = f"minibroker at {broker.bootstrap}"
            report.sections.append((title, broker.report()))
    return report
