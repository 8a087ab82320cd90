"""The pytest plugin, found by its entry point: fixtures, a marker, ini options, reports.

    kafka          a broker for the whole run, as it was at the start in every test
    kafka_broker   a broker for this test alone, with what `@pytest.mark.kafka(…)` says
    kafka_topic    the name of a new topic on `kafka`, one of its own for every test

    [pytest]
    minibroker_topics =            topics of `kafka`, as on the command line
        orders:3
    minibroker_config =            settings of every broker of the run
        message.max.bytes=2000000

The broker runs in a thread of its own, so the fixtures serve sync and async tests alike; under
pytest-xdist every worker has its own. A test that fails shows what its broker saw last. Nothing of
minibroker is imported before a fixture is used.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.testing.broker import Broker

MARKER: Final = (
    "kafka(topics=[…], config={…}): what the broker of the fixture `kafka_broker` begins with"
)
_TOPIC_NAME_MAX: Final = 200
_numbers = itertools.count(1)
_brokers: Final = pytest.StashKey[list["Broker"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ini options."""
    parser.addini("minibroker_topics", "topics of the fixture `kafka`", type="linelist")
    parser.addini("minibroker_config", "KEY=VALUE settings of the brokers", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """The marker; and the broker's modules are left as they are.

    pytest parses and compiles anew every module of a distribution that brings a plugin, for the
    sake of its assert statements. The broker has none for tests to see, it loads modules while it
    runs, in a thread of its own, and Python 3.11 cannot parse in two threads at once (gh-106905).
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


@pytest.fixture(scope="session")
def _kafka_of_the_run(pytestconfig: pytest.Config) -> Iterator[Broker]:
    from minibroker.testing.broker import Broker  # noqa: PLC0415  only who uses it pays

    topics = pytestconfig.getini("minibroker_topics")
    with Broker(topics=topics, config=_settings(pytestconfig)) as broker:
        yield broker


@pytest.fixture
def kafka(_kafka_of_the_run: Broker, request: pytest.FixtureRequest) -> Broker:
    """The run's broker, without anything that other tests left."""
    broker = _kafka_of_the_run
    broker.reset()
    _note(request, broker)
    return broker


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker of this test's own."""
    from minibroker.testing.broker import Broker  # noqa: PLC0415  as above

    marker = request.node.get_closest_marker("kafka")
    wishes: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    unknown = sorted(set(wishes) - {"topics", "config"})
    if unknown or (marker is not None and marker.args):
        raise pytest.UsageError(f"@pytest.mark.kafka takes topics=… and config=…, not {unknown}")
    config = {**_settings(request.config), **wishes.get("config", {})}
    with Broker(topics=wishes.get("topics", ()), config=config) as broker:
        _note(request, broker)
        yield broker


@pytest.fixture
def kafka_topic(kafka: Broker, request: pytest.FixtureRequest) -> str:
    """A new topic with one partition, named after the test."""
    plain = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)[:_TOPIC_NAME_MAX]
    name = f"{plain}-{next(_numbers)}"
    kafka.create_topic(name)
    return name


def _note(request: pytest.FixtureRequest, broker: Broker) -> None:
    request.node.stash.setdefault(_brokers, []).append(broker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """A test that failed shows what its brokers saw."""
    report = yield
    if report.when == "call" and report.failed:
        for broker in item.stash.get(_brokers, ()):
            lines = broker.last_events(broker.topics)
            title = f"minibroker at {broker.bootstrap}"
            report.sections.append((title, "\n".join(lines) or "no client sent anything"))
    return report
