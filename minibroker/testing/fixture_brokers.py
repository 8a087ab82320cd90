"""The brokers behind the pytest fixtures: their settings, their life, and which test uses which.

`plugin` has the fixtures under prefixed names, `short_names` under short ones, and `kafka_fixture`
makes more of them. No module of minibroker is imported before a fixture is used.
"""

from __future__ import annotations

import itertools
import re
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from minibroker.testing.acls import AclRule
    from minibroker.testing.broker import Broker
    from minibroker.testing.cluster import Cluster
    from minibroker.testing.proxy import Proxy

    Scope = Literal["session", "package", "module", "class", "function"]

MARKER: Final = (
    "(topics=[…], config={…}, security=…, users={…}, acls=[…], registry=…, version=[…]): topics of"
    " the fixtures `kafka` and `kafka_broker`; settings, security protocol, users, ACLs and schema"
    " registry of `kafka_broker`; on a module also those of `kafka_module`; the Kafka releases that"
    " each fixture passes for, one after the other"
)
WISHES: Final = frozenset({"config", "security", "users", "acls", "registry"})
"""Arguments of `Broker` that a Kafka of `--kafka` cannot have."""
OPTION: Final = "minibroker_kafka"
"""The name under which pytest keeps the value of `--minibroker-kafka` and of `--kafka`."""
VERSIONS_OPTION: Final = "minibroker_kafka_versions"
"""Likewise of `--minibroker-kafka-versions` and `--kafka-versions`."""
REPORT_OPTION: Final = "minibroker_kafka_report"
"""Likewise of `--minibroker-kafka-report` and `--kafka-report`."""
VERSION_FIXTURE: Final = "_minibroker_version"
"""The release of the test in hand, which every broker's fixture uses; None: the newest."""
FIXTURES_INI: Final = "minibroker_fixtures"
TWINS: Final = {
    "kafka": "minibroker",
    "kafka_topic": "minibroker_topic",
    "kafka_broker": "minibroker_broker",
    "kafka_cluster": "minibroker_cluster",
    "kafka_module": "minibroker_module",
    "kafka_session": "minibroker_session",
}
"""Short name of a fixture → its prefixed twin."""
_TOPIC_NAME_MAX: Final = 200
_numbers = itertools.count(1)
_proxy: Final[pytest.StashKey[Proxy]] = pytest.StashKey()
"""The proxy before the Kafka of `--kafka`, for the whole run."""
_brokers: Final = pytest.StashKey[dict[str, "Broker | Cluster"]]()
"""Fixture → its broker or cluster, on the node with the same lifetime."""


def kafka_fixture(
    scope: Scope = "function",
    *,
    topics: Iterable[str] = (),
    config: Mapping[str, str | int | bool] | None = None,
    security: str | None = None,
    users: Mapping[str, str] | None = None,
    acls: Iterable[AclRule] | None = None,
    registry: bool | None = None,
) -> Any:
    """Return a fixture with a broker of its own, which keeps what tests write within `scope`.

        payments_kafka = kafka_fixture(scope="module", config={"message.max.bytes": 2000})

    The arguments are those of `minibroker.testing.Broker`. The ini options `minibroker_topics` and
    `minibroker_config` hold too. With `--kafka` a fixture that asks for topics only is the Kafka of
    that option; tests that use another one are skipped.
    """
    arguments = {
        "config": config,
        "security": security,
        "users": users,
        "acls": acls,
        "registry": registry,
    }
    wishes = {name: value for name, value in arguments.items() if value is not None}
    own_topics = tuple(topics)

    @pytest.fixture(scope=scope)
    def broker(request: pytest.FixtureRequest, _minibroker_version: str | None) -> Iterator[Broker]:
        yield from lasting(request, own_topics, **wishes)

    return broker


def has_short_names(config: pytest.Config) -> bool:
    """Return whether `kafka`, `--kafka` and their like are names of minibroker in this run.

    Raises UsageError for a wrong value of `minibroker_fixtures`.
    """
    value = config.getini(FIXTURES_INI)
    if value not in ("short", "prefixed"):
        raise pytest.UsageError(
            f"{FIXTURES_INI} = {value}: expected `short` (kafka, kafka_topic, … beside minibroker,"
            " minibroker_topic, …) or `prefixed` (the latter only)"
        )
    return bool(value == "short")


def wishes_of(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """Return what the marker says: arguments of `Broker`. Raises UsageError."""
    names = ("minibroker", "kafka") if has_short_names(node.config) else ("minibroker",)
    marker = next((mark for mark in node.iter_markers() if mark.name in names), None)
    if marker is None:
        return {}
    wishes: dict[str, Any] = dict(marker.kwargs)
    unknown = sorted(set(wishes) - {*WISHES, "topics", "version"})
    if unknown or marker.args:
        raise pytest.UsageError(
            f"@pytest.mark.{marker.name} takes topics, config, security, users, acls, registry and"
            f" version, not {unknown}"
        )
    wishes.pop("version", None)  # `versions_of`
    return wishes


def versions_of(item: pytest.Item | pytest.Collector) -> list[str]:
    """Return the Kafka releases that a test runs with: those of its marker, else of
    `--kafka-versions`; none: the newest, or the run has `--kafka`. Raises UsageError.
    """
    if item.config.getoption(OPTION) is not None:
        return []
    names = ("minibroker", "kafka") if has_short_names(item.config) else ("minibroker",)
    marks = [mark for mark in item.iter_markers() if mark.name in names]
    names_in_marker = next(
        (mark.kwargs["version"] for mark in marks if "version" in mark.kwargs), None
    )
    if names_in_marker is None:
        names_in_marker = (item.config.getoption(VERSIONS_OPTION) or "").split(",")
    texts = [names_in_marker] if isinstance(names_in_marker, str) else list(names_in_marker)
    versions = [text.strip() for text in texts if text.strip()]
    if versions:
        from minibroker.broker.config.release_defaults import (  # noqa: PLC0415  only who asks pays
            release_named,
        )
        from minibroker.kafka.errors import ConfigError  # noqa: PLC0415  as above

        for version in versions:
            try:
                release_named(version)
            except ConfigError as error:
                raise pytest.UsageError(str(error)) from None
    return versions


def settings_of(config: pytest.Config) -> dict[str, str]:
    """Return the settings of the ini option `minibroker_config`. Raises UsageError."""
    settings = {}
    for line in config.getini("minibroker_config"):
        key, separator, value = line.partition("=")
        if not separator:
            raise pytest.UsageError(
                f"minibroker_config: {line!r}, expected KEY=VALUE (one on each line)"
            )
        settings[key.strip()] = value.strip()
    return settings


def serving(
    request: pytest.FixtureRequest,
    topics: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    **secured: Any,
) -> Iterator[Broker]:
    """Run a broker as long as the fixture lives. `secured`: `security`, `users`, `acls`."""
    from minibroker.testing.broker import Broker  # noqa: PLC0415  only who uses it pays

    settings = {**settings_of(request.config), **(config or {})}
    version = request.getfixturevalue(VERSION_FIXTURE)
    with Broker(topics=topics, config=settings, version=version, **secured) as broker:
        note(request, broker)
        yield broker


def lasting(
    request: pytest.FixtureRequest, topics: Sequence[str] = (), **wishes: Any
) -> Iterator[Broker]:
    """Run a broker, or use the one of `--kafka`, with `topics` and those of `minibroker_topics`."""
    every_topic = (*request.config.getini("minibroker_topics"), *topics)
    real = real_kafka(request.config)
    if real is None:
        yield from serving(request, every_topic, **wishes)
        return
    if wishes:
        pytest.skip(
            f"{request.fixturename} has {', '.join(wishes)}, which need a minibroker; this run has"
            " --kafka"
        )
    with real.with_topics(every_topic):
        note(request, real)
        yield real


def real_kafka(config: pytest.Config) -> Any:
    """Return the Kafka that `--kafka` names, behind a proxy; None without the option.

    Raises UsageError.
    """
    address = config.getoption(OPTION)
    if address is None:
        return None
    from minibroker.testing.real_kafka import RealKafka, proxy_before  # noqa: PLC0415  as above

    if _proxy not in config.stash:
        config.stash[_proxy] = proxy = proxy_before(address)
        proxy.is_of_fixture = True
        proxy.start()
        config.add_cleanup(proxy.stop)
    return RealKafka(address, config.stash[_proxy])


def skip_on_real_kafka(request: pytest.FixtureRequest) -> None:
    """Skip the test if the run has `--kafka`: this fixture is a minibroker in any case."""
    if request.config.getoption(OPTION) is not None:
        prefixed = str(request.fixturename).removeprefix("_")
        names = {TWINS[short]: short for short in TWINS if short in request.fixturenames}
        name = names.get(prefixed, prefixed)
        pytest.skip(f"{name} is a minibroker of the test's own; this run has --kafka")


def new_topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """Make a topic with one partition, named after the test, and return its name.

    On a real Kafka the name also has a random part: other processes make topics there, and one
    that was killed has left some behind.
    """
    plain = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)[:_TOPIC_NAME_MAX]
    is_real = request.config.getoption(OPTION) is not None
    name = f"{plain}-{f'{token_hex(4)}-' if is_real else ''}{next(_numbers)}"
    broker.create_topic(name)
    return name


def note(request: pytest.FixtureRequest, broker: Broker | Cluster) -> None:
    """Keep the broker of a fixture for `brokers_of`, as long as the fixture lives."""
    assert request.fixturename is not None
    broker.is_of_fixture = True
    request.node.stash.setdefault(_brokers, {})[request.fixturename] = broker


def brokers_of(item: pytest.Item) -> list[Broker | Cluster]:
    """Return the brokers and clusters of the fixtures that a test uses."""
    names = getattr(item, "fixturenames", ())
    return [
        broker
        for node in item.listchain()
        for name, broker in node.stash.get(_brokers, {}).items()
        if name in names
    ]


def other_owners(plugins: Iterable[object]) -> dict[str, str]:
    """Return short name → the plugin that has a fixture of this name too.

    minibroker's own modules are left out, and every `conftest.py`: it overrides on purpose.
    """
    owners = {}
    for plugin in plugins:
        module = getattr(plugin, "__name__", type(plugin).__name__)
        if module.startswith("minibroker.") or module.rpartition(".")[2] == "conftest":
            continue
        attributes = getattr(plugin, "__dict__", {})
        owners.update({name: module for name in TWINS if callable(attributes.get(name))})
    return owners
