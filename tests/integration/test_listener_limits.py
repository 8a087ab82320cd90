"""The limits of one listener, beside the broker's: minibroker beside Apache Kafka 3.9.1 and 4.4.0.

Each has a listener EXTRA beside PLAINTEXT, which is the one between brokers: the protected one. All
limits are altered while the broker runs.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client.readiness import is_any_readable
from minibroker.testing import Broker
from tests.support.configured import alter, alter_by
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.java

HOST = "127.0.0.1"
COUNT, RATE = "max.connections", "max.connection.creation.rate"
EXTRA, OWN = "listener.name.extra.", "listener.name.plaintext."
FULL = 80
"""`max.connections` of a broker that is filled; those of other tests are among them."""
MAP = "EXTRA:PLAINTEXT,PLAINTEXT:PLAINTEXT"
ONE_THREAD = {f"{EXTRA}num.network.threads": "1"}
"""Kafka closes the least recently used connection of one thread."""
WRAPPED = "Invalid value org.apache.kafka.common.config.ConfigException: "
"""Stands before the sentence of a rule between values."""
ALTERED = (COUNT, RATE, EXTRA + COUNT, EXTRA + RATE, OWN + COUNT, OWN + RATE)
UNHEARD_S = 0.5
SLOW_S = 0.9
"""A connection over the rate is held for a second."""
REFUSED: list[tuple[dict[str, str | None], str]] = [
    ({EXTRA + COUNT: "0"}, "0"),
    ({EXTRA + COUNT: "-1"}, "0"),
    ({EXTRA + COUNT: "many"}, "0"),
    ({EXTRA + RATE: "0"}, "0"),
    ({EXTRA + RATE: "1.5"}, ""),
    ({COUNT: "0"}, ""),
    ({RATE: "0"}, "0"),
]
ACCEPTED: list[tuple[dict[str, str | None], str]] = [
    ({EXTRA + COUNT: "5", EXTRA + RATE: "5"}, ""),
    ({"listener.name.nobody.max.connections": "0"}, "0"),
]


class LimitedBroker:
    """One broker and the connections to it."""

    def __init__(self, stack: ExitStack, port: int, extra: int) -> None:
        self.port, self.extra = port, extra
        self._stack = stack
        self.tool = self.connect(port)
        """Connected before any limit is reached."""

    def connect(self, port: int) -> WireClient:
        return self._stack.enter_context(WireClient(HOST, port))

    def alter(self, values: Mapping[str, str | None]) -> None:
        """Alter settings of the broker; return when they are in force."""
        assert alter_by(self.tool, values) == (0, None)
        expected = {name: text for name, text in values.items() if text is not None}
        wait_until(lambda: self._in_force(values) == expected, f"in force: {values}")

    def _in_force(self, names: Mapping[str, str | None]) -> dict[str, str]:
        resource = {"resource_type": 4, "resource_name": "0", "configuration_keys": list(names)}
        (result,) = self.tool.call(
            "describe_configs",
            4,
            resources=[resource],
            include_synonyms=True,
            include_documentation=False,
        )["results"]
        return {e["name"]: e["value"] for e in result["configs"] if e["config_source"] == 2}

    def served(self, port: int) -> WireClient:
        """Return a connection that is served."""
        client = self.connect(port)
        client.call("api_versions", 0)
        return client

    def waiting(self, port: int) -> WireClient:
        """Return a connection that has asked and has no answer."""
        client = self.connect(port)
        client.send("api_versions", 0)
        assert not hears(client)
        return client

    def fill(self, port: int) -> tuple[list[WireClient], WireClient]:
        """Return connections that a listener has until it is full, and one that waits then."""
        inside: list[WireClient] = []
        while True:
            client = self.connect(port)
            client.send("api_versions", 0)
            if not hears(client, 2 * UNHEARD_S):
                return inside, client
            client.receive_frame()
            inside.append(client)
            assert len(inside) < FULL

    def is_quick(self, port: int) -> bool:
        """Return whether a connection is served before the time that a rate holds one."""
        begin_s = monotonic()
        with WireClient(HOST, port) as client:
            client.call("api_versions", 0)
        return monotonic() - begin_s < SLOW_S


def hears(client: WireClient, within_s: float = UNHEARD_S) -> bool:
    """Return whether something comes within a time: an answer, or the end."""
    return is_any_readable([client.socket], within_s)


def closed_of(clients: list[WireClient]) -> list[WireClient]:
    """Return those that the broker has closed; wait for the first."""
    assert is_any_readable([client.socket for client in clients], 60)
    return [client for client in clients if is_any_readable([client.socket])]


def is_answered(client: WireClient) -> bool:
    """Return whether the answer comes that a client waits for."""
    return hears(client, 60) and bool(client.receive_frame())


def check_counts(target: LimitedBroker) -> None:
    """A listener has a number of its own; a larger one acts at once."""
    target.alter({EXTRA + COUNT: "2"})
    first, second = target.served(target.extra), target.served(target.extra)
    third = target.waiting(target.extra)
    assert target.served(target.port)
    target.alter({EXTRA + COUNT: "3"})
    assert is_answered(third)
    fourth = target.waiting(target.extra)
    first.close()
    assert is_answered(fourth)
    for client in (second, third, fourth):
        client.close()
    target.alter({EXTRA + COUNT: None})


def check_rates(target: LimitedBroker) -> None:
    """A listener has a rate of its own. The protected one has the broker's for itself."""
    target.alter({EXTRA + RATE: "1"})
    # Ten in ten seconds, and those before count.
    wait_until(lambda: not target.is_quick(target.extra), "the rate is reached")
    wait_until(lambda: target.is_quick(target.port), "no rate holds it", SLOW_S * 3)
    target.alter({EXTRA + RATE: None})
    wait_until(lambda: target.is_quick(target.extra), "no rate holds it", SLOW_S * 3)
    target.alter({RATE: "1", OWN + RATE: "1000"})
    wait_until(lambda: not target.is_quick(target.extra), "the rate is reached")
    wait_until(lambda: target.is_quick(target.port), "no rate holds it", SLOW_S * 3)
    target.alter({OWN + RATE: None})
    wait_until(lambda: not target.is_quick(target.port), "the rate is reached")
    target.alter({RATE: None})


def check_protection(target: LimitedBroker) -> None:
    """The protected listener takes a place of another one; the one that was silent longest goes."""
    target.alter({COUNT: f"{FULL}", OWN + COUNT: "1000"})
    others, client = target.fill(target.extra)
    others[0].call("api_versions", 0)
    more = target.served(target.port)
    assert closed_of(others) == [others.pop(1)]
    for open_client in others:
        open_client.call("api_versions", 0)
    assert not hears(client)
    more.close()
    assert is_answered(client)
    target.alter({COUNT: f"{FULL // 2}"})
    assert len(others) > FULL // 2
    wait_until(lambda: others[FULL // 4] in closed_of(others), "those beyond the number are closed")
    others[-1].call("api_versions", 0)
    late = target.waiting(target.extra)
    assert target.served(target.port)
    # Its own number is the broker's, where it has none.
    target.alter({OWN + COUNT: None})
    _, own = target.fill(target.port)
    target.alter({COUNT: None})
    assert is_answered(own)
    assert is_answered(late)


def walk(port: int, extra: int) -> list[tuple[int, str]]:
    """Check the limits of one broker; return what it answers to alterations."""
    with ExitStack() as stack:
        stack.callback(alter, port, dict.fromkeys(ALTERED))
        target = LimitedBroker(stack, port, extra)
        replies = [alter_by(target.tool, values, broker) for values, broker in REFUSED]
        for values, broker in ACCEPTED:
            replies.append(alter_by(target.tool, values, broker))
            replies.append(alter_by(target.tool, dict.fromkeys(values), broker))
        check_counts(target)
        check_rates(target)
        check_protection(target)
        return [
            (code, (text or "").removeprefix(WRAPPED).partition(" for ")[0])
            for code, text in replies
        ]


@contextmanager
def with_extra(peer: KafkaPeer) -> Iterator[int]:
    """Open the listener EXTRA of a broker that runs; yield its port."""
    extra = free_port()
    listeners = f"PLAINTEXT://{HOST}:{peer.port},EXTRA://{HOST}:{extra}"
    settings = {"listener.security.protocol.map": MAP, "listeners": listeners}
    assert alter(peer.port, settings) == (0, None)
    try:
        wait_until(lambda: is_open(extra), "EXTRA is open")
        assert alter(peer.port, ONE_THREAD) == (0, None)
        yield extra
    finally:
        alter(peer.port, dict.fromkeys(settings))
        wait_until(lambda: not is_open(extra), "EXTRA is closed")
        alter(peer.port, dict.fromkeys(ONE_THREAD))


def is_open(port: int) -> bool:
    try:
        with WireClient(HOST, port) as client:
            return bool(client.call("api_versions", 0))
    except OSError:
        return False


@pytest.fixture(scope="module")
def answers() -> list[tuple[int, str]]:
    """Return what minibroker answers; its limits are checked by then."""
    ports = free_port(), free_port()
    listeners = f"PLAINTEXT://{HOST}:{ports[0]},EXTRA://{HOST}:{ports[1]}"
    with Broker(config={"listeners": listeners, "listener.security.protocol.map": MAP}):
        return walk(*ports)


def test_as_in_kafka_39(answers: Any, kafka_39: KafkaPeer) -> None:
    with with_extra(kafka_39) as extra:
        assert walk(kafka_39.port, extra) == answers


def test_as_in_kafka_44(answers: Any, tmp_path: Path) -> None:
    extra = free_port()
    peer = KafkaPeer("4.4.0", tmp_path)
    listeners = f"PLAINTEXT://{peer.address},EXTRA://{HOST}:{extra}"
    controller = f"CONTROLLER://{HOST}:{peer.controller_port}"
    peer.settings |= {
        "listeners": f"{listeners},{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": f"{MAP},CONTROLLER:PLAINTEXT",
        **ONE_THREAD,
    }
    peer.start()
    try:
        assert walk(peer.port, extra) == answers
    finally:
        peer.kill()
