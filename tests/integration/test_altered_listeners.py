"""Listeners altered while a broker runs: minibroker beside Apache Kafka 3.9.1.

Both go through the same alterations of a listener EXTRA, beside the one that the tests use. The
listener of docs/how-to/secured.md, with a certificate, is opened as the page says.
"""

from __future__ import annotations

import json
import shlex
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from minibroker.testing import Broker
from tests.support import java, readme
from tests.support.certificates import authority_pem, broker_certificate, pem_of
from tests.support.configured import alter
from tests.support.kafka_tools import run_commands
from tests.support.processes import free_port
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import KafkaPeer, ZooKeeper

pytestmark = pytest.mark.java

HOST = "127.0.0.1"
LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
MAP = "listener.security.protocol.map"
BOTH = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,SSL:SSL"
OWN_KEY = "listener.name.extra.ssl.client.auth"
INVALID_REQUEST = 42
SILENT_S = 20.0
"""Kafka ends the acceptor of a listener and its processors side by side: a connection that is
accepted meanwhile may reach a processor that has ended, and is neither answered nor closed.
"""
WRAPPED = (
    "Invalid value org.apache.kafka.common.config.ConfigException: ",
    " for configuration Invalid dynamic configuration",
)
"""Stands around the sentence of a listener that cannot change, in 3.9.1."""


class AlteredBroker:
    """One broker, its node in ZooKeeper, and the two ports of its listeners."""

    def __init__(self, zookeeper: ZooKeeper, root: str, port: int) -> None:
        self.port, self.extra, self.other = port, free_port(), free_port()
        self.static = f"PLAINTEXT://{HOST}:{port}"
        self.tree = KazooClient(f"{zookeeper.connect}/{root}")
        self.tree.start(60)

    def close(self) -> None:
        alter(self.port, dict.fromkeys((LISTENERS, ADVERTISED, MAP, OWN_KEY)))
        self.tree.stop()
        self.tree.close()

    def words(self, text: str) -> str:
        """Return a text with the broker's own addresses."""
        extra, other = f"{HOST}:{self.extra}", f"{HOST}:{self.other}"
        return text.format(own=self.static, extra=extra, other=other, port=self.port)

    def mask(self, value: Any) -> Any:
        text = json.dumps(value)
        names = {self.port: "own", self.extra: "extra", self.other: "other"}
        for port, name in names.items():
            text = text.replace(f":{port}", f":{name}")
        return json.loads(text)

    def answer_at(self, port: int) -> list[Any] | str:
        """Return the addresses that a client of a listener is told, or why there are none."""
        try:
            with WireClient(HOST, port, timeout_s=SILENT_S) as client:
                answer = client.call("metadata", 9, topics=[])
        except TimeoutError:
            return "silent"
        except ConnectionRefusedError:
            return "refused"
        except ConnectionError:  # it is being closed
            return "closed"
        return ["{host}:{port}".format(**broker) for broker in answer["brokers"]]

    def state(self) -> Any:
        """Return what clients see of the listeners."""
        node = json.loads(self.tree.get("/brokers/ids/0")[0])
        listeners = node["endpoints"], node["listener_security_protocol_map"]
        first = f"{node['host']}:{node['port']}"
        return self.mask(
            [first, *listeners, *map(self.answer_at, (self.port, self.extra, self.other))]
        )

    def alter(
        self, values: dict[str, str | None], broker: str = "0", *, validate_only: bool = False
    ) -> tuple[int, str]:
        words = {name: text and self.words(text) for name, text in values.items()}
        code, message = alter(self.port, words, broker, validate_only=validate_only)
        return code, (message or "").removeprefix(WRAPPED[0]).removesuffix(WRAPPED[1])


TWO = "{own},EXTRA://{extra}"
STEPS: list[tuple[str, dict[str, str | None], Any]] = [
    # name, values, what is seen of EXTRA afterwards (`told` by its first port)
    ("no protocol", {LISTENERS: TWO}, "refused"),
    ("a protocol", {MAP: BOTH}, "refused"),
    ("one more", {LISTENERS: TWO}, ["127.0.0.1:extra"]),
    ("another protocol", {MAP: "PLAINTEXT:PLAINTEXT,EXTRA:SSL,SSL:SSL"}, ["127.0.0.1:extra"]),
    ("no protocol left", {MAP: None}, ["127.0.0.1:extra"]),
    ("settings of its own", {LISTENERS: "EXTRA://{extra},{own}", OWN_KEY: "none"}, None),
    ("those alone", {OWN_KEY: "none"}, ["127.0.0.1:extra"]),
    ("listeners after them", {LISTENERS: "EXTRA://{extra},{own}"}, None),
    ("a limit after them", {"max.connections": "12345"}, None),
    ("without them", {OWN_KEY: None}, ["127.0.0.1:extra"]),
    ("another address", {LISTENERS: "{own},EXTRA://{other}"}, ["127.0.0.1:other"]),
    ("its first address", {LISTENERS: TWO}, ["127.0.0.1:extra"]),
    ("not between brokers", {LISTENERS: "EXTRA://{extra}"}, None),
    ("not told between brokers", {ADVERTISED: "EXTRA://{extra}"}, None),
    ("told, not there", {ADVERTISED: "{own},SSL://{other}"}, None),
    ("one of two is told", {ADVERTISED: "{own}"}, []),
    ("told the other way round", {ADVERTISED: "EXTRA://{other},{own}"}, ["127.0.0.1:other"]),
    ("nobody reaches it", {ADVERTISED: "EXTRA://0.0.0.0:{port},{own}"}, None),
    ("the same port", {LISTENERS: "{own},EXTRA://127.0.0.1:{port}"}, None),
    ("no address", {LISTENERS: "{own},here"}, None),
    ("told, and gone", {LISTENERS: "{own}"}, None),
]


def walk(target: AlteredBroker) -> list[Any]:
    """Go through all steps; return what each answers and what is seen when it acts."""
    notes: list[Any] = []

    def note(name: str, answer: tuple[int, str], *, extra: Any = None) -> None:
        if extra is not None:
            is_told = isinstance(extra, list) and bool(extra)
            wait_until(
                lambda: (state := target.state())[4] == extra and ("EXTRA" in state[2]) == is_told,
                f"{name}: EXTRA is {extra}",
            )
        notes.append((name, answer[0], target.state()))
        sentence = answer[1] if "existing listener" in answer[1] else ""
        notes.append((name, sentence))

    assert target.alter({LISTENERS: "{own}"}, "")[0] == INVALID_REQUEST
    for name, values, extra in STEPS:
        note(name, target.alter(values), extra=extra)
    usual: dict[str, str | None] = {LISTENERS: "{own}", ADVERTISED: "{own}"}
    note("tried", target.alter(usual, validate_only=True))
    with socket.create_connection((HOST, target.extra)) as client:
        note("gone", target.alter(usual), extra="refused")
        client.settimeout(180)
        assert client.recv(1) == b""
    note("back", target.alter({LISTENERS: TWO, ADVERTISED: None}), extra=["127.0.0.1:extra"])
    note("as it was", target.alter(dict.fromkeys((LISTENERS, MAP))), extra="refused")
    return notes


def test_listeners_come_and_go_as_in_kafka(kafka_39: KafkaPeer, zookeeper: ZooKeeper) -> None:
    root, port = "altered-listeners", free_port()
    config = {LISTENERS: f"PLAINTEXT://{HOST}:{port}", "broker.id": "0"}
    with (
        Broker(config={"zookeeper.connect": f"{zookeeper.connect}/{root}", **config}),
        closing(AlteredBroker(zookeeper, root, port)) as ours,
    ):
        mine = walk(ours)
    with closing(AlteredBroker(zookeeper, "kafka39", kafka_39.port)) as kafkas:
        assert mine == walk(kafkas)


def test_a_listener_with_a_certificate_opens_as_the_page_says(tmp_path: Path) -> None:
    (settings,) = (block.text for block in readme.blocks() if "TLS://localhost:9093" in block.text)
    (command,) = (
        line for line in readme.commands(readme.blocks()) if "--add-config-file tls.pro" in line
    )
    port, tls_port = free_port(), free_port()
    files = {"/etc/minibroker/broker.pem": "broker.pem", "tls.properties": "tls.properties"}
    files = {place: str(tmp_path / name) for place, name in files.items()}
    (tmp_path / "broker.pem").write_text(pem_of(broker_certificate()))

    def with_own_places(text: str) -> str:
        for place, own in {":9092": f":{port}", ":9093": f":{tls_port}", **files}.items():
            text = text.replace(place, own)
        return text

    (tmp_path / "tls.properties").write_text(with_own_places(settings))
    with Broker(config={LISTENERS: f"PLAINTEXT://localhost:{port}"}, topics=["t"]):
        arguments = shlex.split(with_own_places(command))[1:]
        (outcome,) = run_commands(java.KAFKA_39, ("kafka.admin.ConfigCommand", *arguments))
        assert outcome.failure is None, outcome
        access = {"security.protocol": "SSL", "ssl.ca.pem": authority_pem()}
        client = AdminClient({"bootstrap.servers": f"localhost:{tls_port}", **access})
        metadata = client.list_topics(timeout=180)
        assert [str(broker) for broker in metadata.brokers.values()] == [f"localhost:{tls_port}/0"]
        assert "t" in metadata.topics
