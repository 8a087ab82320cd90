"""The pytest plugin, found by its entry point: fixtures, a marker, options, reports.

    kafka           a broker for the whole run, as it was at the start in every test
    kafka_topic     the name of a new topic on `kafka`, one of its own for every test
    kafka_broker    a broker for this test alone
    kafka_cluster   three brokers for this test alone, which replicate
    kafka_module    a broker for the tests of one module; it keeps what they write
    kafka_session   a broker for the whole run; it keeps what the tests write

    @pytest.mark.kafka(topics=["orders:3"], config={"message.max.bytes": 2000}, security="SSL")
        topics for `kafka`, `kafka_broker` and `kafka_cluster`; settings, the security protocol,
        `users`, `acls` and `registry=True` for the latter two

    [pytest]
    minibroker_topics =            topics of every broker but `kafka_broker`, as on the command line
        orders:3
    minibroker_config =            settings of every broker of the run
        message.max.bytes=2000000
    minibroker_fixtures = prefixed only prefixed names: other plugins have the short ones

    @pytest.mark.kafka(version=["0.11", "2.8", "4.4"])
        each test of the marker runs once with each release that its brokers pass for

    pytest --kafka=HOST:PORT       a real Kafka in the place of `kafka`; see `real_kafka`
    pytest --kafka-versions=0.11,2.8   every test with each of these releases
    pytest --kafka-report DIR      a page of the brokers of each test that fails, in DIR

Each name has a prefixed twin: `minibroker`, `minibroker_topic`, `minibroker_broker`, …, the marker
`minibroker`, the option `--minibroker-kafka`. The short fixtures are in `short_names`. `--kafka` is
an alias, if no other plugin has an option of this name.

The broker runs in a thread of its own, so the fixtures serve sync and async tests alike; under
pytest-xdist every worker has its own. A fault that never met a request fails its test. A test that
fails shows the last requests of its broker. No module of minibroker is imported before a fixture is
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from minibroker.testing import short_names
from minibroker.testing.fixture_brokers import (
    FIXTURES_INI,
    MARKER,
    OPTION,
    REPORT_OPTION,
    TWINS,
    VERSION_FIXTURE,
    VERSIONS_OPTION,
    WISHES,
    brokers_of,
    has_short_names,
    lasting,
    new_topic,
    note,
    other_owners,
    real_kafka,
    serving,
    settings_of,
    skip_on_real_kafka,
    versions_of,
    wishes_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.testing.broker import Broker
    from minibroker.testing.cluster import Cluster

_OPTION_HELP: Final = (
    "run the tests that use `kafka` against this Kafka; tests that read minibroker's data, move its"
    " clock or add faults are skipped"
)
_SHORT_OPTIONS: Final = {
    "--kafka": (OPTION, "HOST:PORT"),
    "--kafka-versions": (VERSIONS_OPTION, "RELEASE,…"),
    "--kafka-report": (REPORT_OPTION, "DIR"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, but for `--kafka`."""
    parser.addini("minibroker_topics", "topics of the shared brokers", type="linelist")
    parser.addini("minibroker_config", "KEY=VALUE settings of the brokers", type="linelist")
    parser.addini(
        FIXTURES_INI,
        "short: fixtures `kafka`, … beside `minibroker`, …; prefixed: the latter only",
        default="short",
    )
    group = parser.getgroup("minibroker")
    group.addoption("--minibroker-kafka", dest=OPTION, metavar="HOST:PORT", help=_OPTION_HELP)
    group.addoption(
        "--minibroker-kafka-versions",
        dest=VERSIONS_OPTION,
        metavar="RELEASE,…",
        help="run each test once with each of these Kafka releases, which its brokers pass for",
    )
    group.addoption(
        "--minibroker-kafka-report",
        dest=REPORT_OPTION,
        metavar="DIR",
        help="write a page for each test that fails and used a broker: its requests, records,"
        " groups, faults",
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Iterator[None]:
    """Add `--kafka` once every plugin and conftest has added its own options, if it is free."""
    yield
    if not has_short_names(early_config):
        return
    for option, (name, value) in _SHORT_OPTIONS.items():
        if _is_free(parser, option):
            parser.getgroup("minibroker").addoption(
                option, dest=name, metavar=value, help=f"the same as --minibroker-{option[2:]}"
            )


def _is_free(parser: pytest.Parser, option: str) -> bool:
    """Return whether the parser does not know an option of this name."""
    argument = f"{option}=value"
    try:
        _, unknown = parser.parse_known_and_unknown_args([argument])
    except pytest.UsageError:  # an option of this name that takes no value
        return False
    return argument in unknown


def pytest_configure(config: pytest.Config) -> None:
    """Register marker and short names; keep pytest from rewriting the broker's modules.

    pytest parses and compiles every module of a distribution with a plugin, to rewrite its assert
    statements. The broker does not need that. It loads modules while it runs, in a thread of its
    own, and Python 3.11 cannot parse in two threads at once (gh-106905).
    """
    config.addinivalue_line("markers", f"minibroker{MARKER}")
    if has_short_names(config):
        config.addinivalue_line("markers", f"kafka{MARKER}")
        config.pluginmanager.register(short_names, "minibroker-short-names")
    directory = config.getoption(REPORT_OPTION)
    if directory is not None:
        _register_reports(config, directory)
    hook = config.pluginmanager.rewrite_hook
    marked = getattr(hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("minibroker")


def _register_reports(config: pytest.Config, directory: str) -> None:
    """Have pages of failed tests written to a directory. Raises UsageError."""
    try:
        from minibroker.testing.failure_reports import (  # noqa: PLC0415  only with the option
            FailureReports,
        )
    except ImportError as error:
        raise pytest.UsageError(
            f"--kafka-report needs {error.name}: pip install 'minibroker[testing]'"
        ) from error
    path = config.invocation_params.dir / directory
    config.pluginmanager.register(FailureReports(path, config), "minibroker-reports")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the fixtures that another plugin has too."""
    if not has_short_names(config):
        return []
    owners = other_owners(config.pluginmanager.get_plugins())
    return [
        f"minibroker: {plugin} has a fixture {short} too; with `{FIXTURES_INI} = prefixed` it is"
        f" that plugin's, and minibroker's is {TWINS[short]}"
        for short, plugin in sorted(owners.items())
    ]


# The brokers. Their names are private: a project may have a fixture `minibroker` of its own, and
# `kafka` is a broker all the same.


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once with each release that it asks for, if it uses a broker."""
    if VERSION_FIXTURE in metafunc.fixturenames:
        versions = versions_of(metafunc.definition)
        if versions:
            metafunc.parametrize(VERSION_FIXTURE, versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def _minibroker_version(request: pytest.FixtureRequest) -> str | None:
    version: str | None = getattr(request, "param", None)
    return version


@pytest.fixture(scope="session")
def _minibroker_of_the_run(
    request: pytest.FixtureRequest, _minibroker_version: str | None
) -> Iterator[Broker]:
    yield from serving(request, request.config.getini("minibroker_topics"))


@pytest.fixture
def _minibroker(
    request: pytest.FixtureRequest, _minibroker_version: str | None
) -> Iterator[Broker]:
    wishes = {} if "_minibroker_broker" in request.fixturenames else wishes_of(request.node)
    if wishes.keys() & WISHES and "_minibroker_module" not in request.fixturenames:
        name = "kafka" if has_short_names(request.config) else "minibroker"
        raise pytest.UsageError(
            f"@pytest.mark.{name}(config=…, security=…) is for {name}_broker: `{name}` serves the"
            " whole run; its settings are the ini option minibroker_config"
        )
    topics = wishes.get("topics", ())
    real = real_kafka(request.config)
    if real is not None:
        with real.with_topics((*request.config.getini("minibroker_topics"), *topics)):
            note(request, real)
            yield real
        return
    broker: Broker = request.getfixturevalue("_minibroker_of_the_run")
    broker.reset()
    for topic in topics:
        broker.add_topic(topic)
    note(request, broker)
    yield broker


@pytest.fixture
def _minibroker_broker(
    request: pytest.FixtureRequest, _minibroker_version: str | None
) -> Iterator[Broker]:
    skip_on_real_kafka(request)
    yield from serving(request, **wishes_of(request.node))


@pytest.fixture
def _minibroker_cluster(
    request: pytest.FixtureRequest, _minibroker_version: str | None
) -> Iterator[Cluster]:
    skip_on_real_kafka(request)
    from minibroker.testing.cluster import Cluster  # noqa: PLC0415  only who uses it pays

    wishes = wishes_of(request.node)
    wishes["config"] = {**settings_of(request.config), **(wishes.get("config") or {})}
    with Cluster(3, version=_minibroker_version, **wishes) as cluster:
        note(request, cluster)
        yield cluster


@pytest.fixture(scope="module")
def _minibroker_module(
    request: pytest.FixtureRequest, _minibroker_version: str | None
) -> Iterator[Broker]:
    wishes = wishes_of(request.node)
    yield from lasting(request, wishes.pop("topics", ()), **wishes)


@pytest.fixture(scope="session")
def _minibroker_session(
    request: pytest.FixtureRequest, _minibroker_version: str | None
) -> Iterator[Broker]:
    yield from lasting(request)


# The same under prefixed names.


@pytest.fixture
def minibroker(_minibroker: Broker) -> Broker:
    """Return the run's broker, without records, groups and settings of other tests."""
    return _minibroker


@pytest.fixture
def minibroker_topic(minibroker: Broker, request: pytest.FixtureRequest) -> str:
    """Make a topic with one partition on `minibroker`, named after the test; return its name."""
    return new_topic(minibroker, request)


@pytest.fixture
def minibroker_broker(_minibroker_broker: Broker) -> Broker:
    """Return a broker for this test alone."""
    return _minibroker_broker


@pytest.fixture
def minibroker_cluster(_minibroker_cluster: Cluster) -> Cluster:
    """Return three brokers for this test alone, which replicate."""
    return _minibroker_cluster


@pytest.fixture(scope="module")
def minibroker_module(_minibroker_module: Broker) -> Broker:
    """Return a broker for the tests of one module; it keeps what they write."""
    return _minibroker_module


@pytest.fixture(scope="session")
def minibroker_session(_minibroker_session: Broker) -> Broker:
    """Return a broker for the whole run; it keeps what the tests write."""
    return _minibroker_session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Fail a test that passed if one of its faults never met a request."""
    outcome = yield
    for broker in brokers_of(item):
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
        for broker in brokers_of(item):
            broker.faults.forget()
            report.sections.append(_section_of(broker))
    return report


def _section_of(broker: Broker | Cluster) -> tuple[str, str]:
    """Return title and text of a broker's report; the reason where there is none, as the test's own
    failure is what counts.
    """
    try:
        return f"minibroker at {broker.bootstrap}", broker.report()
    except Exception as error:  # the test stopped it, or it hangs
        return "minibroker", f"{type(error).__name__}: {error}"
