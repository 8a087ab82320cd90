"""Passwords that are altered at run time: minibroker and Apache Kafka read what the other wrote.

Both run one after the other as broker 0 on the same ZooKeeper. Their server.properties has no
password of the key store and no JAAS line: these are in ZooKeeper only, encoded.
"""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient

from minibroker.broker.security.password_encoder import PasswordEncoder, pairs_of
from minibroker.kafka.errors import ConfigError
from minibroker.testing import Broker
from tests.support.certificates import STORES
from tests.support.configured import alter
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port
from tests.support.sasl_dialogues import Talk
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from minibroker.broker.config.settings import ConfigValues
    from tests.support.peers import ZooKeeper

pytestmark = pytest.mark.java

HOST = "127.0.0.1"
PLAINTEXT, TLS, SASL = "PLAINTEXT", "TLS", "SASL"
STORE_PASSWORD, KEY_PASSWORD = "store-secret", "key-secret"
STORE_KEY = "listener.name.tls.ssl.keystore.password"
KEY_KEY = "listener.name.tls.ssl.key.password"
JAAS_KEY = "listener.name.sasl.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
FIRST, SECOND = "the first secret, with ä", "the second"
SECRET, OLD_SECRET = "password.encoder.secret", "password.encoder.old.secret"
GCM = {"password.encoder.cipher.algorithm": "AES/GCM/NoPadding"}
INVALID_CONFIG, INVALID_REQUEST = 40, 42


def settings(ports: Mapping[str, int], encoder: Mapping[str, str]) -> dict[str, str]:
    protocols = {PLAINTEXT: PLAINTEXT, TLS: "SSL", SASL: "SASL_PLAINTEXT"}
    return {
        "broker.id": "0",
        "listeners": ",".join(f"{name}://{HOST}:{ports[name]}" for name in protocols),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        "sasl.enabled.mechanisms": "PLAIN",
        "connection.failed.authentication.delay.ms": "1",
        "listener.name.tls.ssl.keystore.type": "JKS",
        "listener.name.tls.ssl.keystore.location": str(STORES / "keys.jks"),
        **encoder,
    }


def described(port: int) -> dict[str, Any]:
    """Return name → entry of what was altered."""
    resource = {"resource_type": 4, "resource_name": "0", "configuration_keys": None}
    with WireClient(HOST, port) as client:
        answer = client.call(
            "describe_configs",
            4,
            resources=[resource],
            include_synonyms=True,
            include_documentation=False,
        )
    assert FIRST not in f"{answer}"
    assert KEY_PASSWORD not in f"{answer}"
    entries = answer["results"][0]["configs"]
    return {entry["name"]: entry for entry in entries if entry["config_source"] == 2}


def may_log_in(port: int, user: str) -> bool:
    """Return whether a user logs in by PLAIN with the password `sécret`."""
    talk = Talk(HOST, port)
    with closing(talk):
        talk.handshake()
        answer = talk.quietly("sasl_authenticate", 1, auth_bytes=f"\0{user}\0sécret".encode())
        return answer.get("error_code") == 0


def shakes_hands(port: int) -> bool:
    """Return whether the TLS listener shows a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((HOST, port), timeout=180) as raw,
        context.wrap_socket(raw) as wrapped,
    ):
        return wrapped.getpeercert(binary_form=True) is not None


class Tree:
    """A chroot of the ZooKeeper, and the node of broker 0."""

    def __init__(self, zookeeper: ZooKeeper, name: str) -> None:
        self.connect = f"{zookeeper.connect}/{name}"
        self._root = f"/{name}"
        self.client = KazooClient(zookeeper.connect)
        self.client.start(60)
        self.client.ensure_path(self._root)

    @property
    def path(self) -> str:
        return f"{self._root}/config/brokers/0"

    def stored(self) -> dict[str, str]:
        data, _ = self.client.get(self.path)
        return dict(json.loads(data)["config"])

    def write(self, config: Mapping[str, str]) -> None:
        """Write the node and announce it, as a tool without a broker does."""
        self.client.ensure_path(self.path)
        self.client.set(self.path, json.dumps({"version": 1, "config": config}).encode())
        change = json.dumps({"version": 2, "entity_path": "brokers/0"}).encode()
        self.client.create(f"{self._root}/config/changes/config_change_", change, sequence=True)

    def close(self) -> None:
        self.client.stop()
        self.client.close()


@pytest.fixture
def tree(zookeeper: ZooKeeper, request: pytest.FixtureRequest) -> Iterator[Tree]:
    new_tree = Tree(zookeeper, request.node.name)
    yield new_tree
    new_tree.close()


@contextmanager
def kafka(directory: Path, tree: Tree, encoder: Mapping[str, str]) -> Iterator[dict[str, int]]:
    """Run Apache Kafka 3.9.1 as broker 0; yield its ports."""
    ports = {name: free_port() for name in (PLAINTEXT, TLS, SASL)}
    peer = KafkaPeer(
        "3.9.1",
        directory,
        zookeeper=tree.connect,
        settings={
            # A file of properties has no other letters for Java.
            name: text.encode("ascii", "backslashreplace").decode().replace("\\xe4", "\\u00e4")
            for name, text in settings(ports, encoder).items()
        },
        port=ports[PLAINTEXT],
    )
    peer.start()
    try:
        yield ports
    finally:
        peer.stop()


@contextmanager
def ours(tree: Tree, encoder: Mapping[str, str], **more: str) -> Iterator[dict[str, int]]:
    """Run minibroker as broker 0; yield its ports."""
    config = settings({PLAINTEXT: 0, TLS: 0, SASL: 0}, encoder) | more
    with Broker(config={"zookeeper.connect": tree.connect, **config}) as broker:
        yield broker._node.app.ports


def line(user: str) -> str:
    return f'{MODULE} user_{user}="sécret";'


def test_each_reads_what_the_other_wrote(tmp_path: Path, tree: Tree) -> None:
    complete = {STORE_KEY: STORE_PASSWORD, KEY_KEY: KEY_PASSWORD, JAAS_KEY: line("static")}
    with ours(tree, {SECRET: FIRST}, **complete) as ports:
        assert alter(ports[PLAINTEXT], {STORE_KEY: "wrong"})[0] == INVALID_REQUEST
        assert alter(
            ports[PLAINTEXT],
            {STORE_KEY: STORE_PASSWORD, KEY_KEY: KEY_PASSWORD, JAAS_KEY: line("alice")},
        ) == (0, None)
        shown_here = described(ports[PLAINTEXT])
        assert may_log_in(ports[SASL], "static")  # an altered line acts with the next start
        assert not may_log_in(ports[SASL], "alice")
        first = tree.stored()
        assert alter(ports[PLAINTEXT], {"background.threads": "9"}) == (0, None)
        assert tree.stored() == {**first, "background.threads": "9"}
    assert first.keys() == {STORE_KEY, KEY_KEY, JAAS_KEY}
    assert all("encryptedPassword" in pairs_of(text) for text in first.values())
    with kafka(tmp_path / "first", tree, {SECRET: FIRST}) as ports:
        assert may_log_in(ports[SASL], "alice")
        assert shakes_hands(ports[TLS])
        shown_there = described(ports[PLAINTEXT])
        del shown_there["background.threads"]
        for entry in shown_here.values():  # its server.properties had these values, too
            entry["synonyms"] = [layer for layer in entry["synonyms"] if layer["source"] == 2]
        assert shown_here == shown_there
        assert alter(ports[PLAINTEXT], {JAAS_KEY: line("bob"), KEY_KEY: KEY_PASSWORD}) == (0, None)
        assert may_log_in(ports[SASL], "alice")  # here, too
        assert not may_log_in(ports[SASL], "bob")
    by_kafka = tree.stored()
    assert pairs_of(by_kafka[JAAS_KEY]).keys() == pairs_of(first[JAAS_KEY]).keys()
    with ours(tree, {SECRET: SECOND, OLD_SECRET: FIRST, **GCM}) as ports:
        assert may_log_in(ports[SASL], "bob")
        assert shakes_hands(ports[TLS])
        assert tree.stored() != by_kafka
    with ours(tree, {SECRET: SECOND, OLD_SECRET: FIRST, **GCM}) as ports:
        assert may_log_in(ports[SASL], "bob")  # the old secret may stay
    with kafka(tmp_path / "second", tree, {SECRET: SECOND, **GCM}) as ports:
        assert may_log_in(ports[SASL], "bob")
        assert shakes_hands(ports[TLS])


WITHOUT_SECRET = [
    ({"listener.name.other.ssl.keystore.password": "x"}, "0"),
    ({"listener.name.other.ssl.keystore.password": "x"}, ""),
    ({"listener.name.other.plain.sasl.jaas.config": line("a")}, "0"),
    ({"listener.name.other.plain.sasl.jaas.config": line("a")}, ""),
    ({"some.plugin.ssl.key.password": "x"}, "0"),
    ({"some.plugin.ssl.key.password": "x"}, ""),
    ({"ssl.key.password": "x"}, "0"),
    ({"listener.name.other.sasl.enabled.mechanisms": "PLAIN"}, "0"),
]
"""Alterations that need a secret with ZooKeeper, and such that do not."""


def plain_words(answer: tuple[int, str | None]) -> tuple[int, str]:
    """Return an answer with lists as 4.4 writes them."""
    text = (answer[1] or "").replace("HashSet(", "[").replace("Set(", "[")
    return answer[0], text.removesuffix(")").removesuffix("]")


def answers_of(port: int) -> list[Any]:
    """Return the answers to all of them, validated only and done; nothing is left behind."""
    answers = []
    for values, broker in WITHOUT_SECRET:
        for validate_only in (True, False):
            answer = alter(port, values, broker, validate_only=validate_only)
            answers.append((values, broker, validate_only, plain_words(answer)))
        alter(port, dict.fromkeys(values), broker)
    return answers


def test_without_a_secret_zookeeper_gets_no_password(kafka_39: KafkaPeer, tree: Tree) -> None:
    complete = {STORE_KEY: STORE_PASSWORD, KEY_KEY: KEY_PASSWORD, JAAS_KEY: line("static")}
    with ours(tree, {}, **complete) as ports:
        answers = answers_of(ports[PLAINTEXT])
        assert tree.stored() == {}
    assert answers == answers_of(kafka_39.port)
    assert INVALID_CONFIG in {code for *_, (code, _) in answers}


def test_a_lost_secret_is_an_error_in_the_log_and_the_others_count(
    tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    complete = {STORE_KEY: STORE_PASSWORD, KEY_KEY: KEY_PASSWORD, JAAS_KEY: line("static")}
    with ours(tree, {SECRET: FIRST}, **complete) as ports:
        values = {JAAS_KEY: line("alice"), "background.threads": "9"}
        assert alter(ports[PLAINTEXT], values) == (0, None)
    with ours(tree, {SECRET: SECOND}, **complete) as ports:
        assert may_log_in(ports[SASL], "static")
        assert described(ports[PLAINTEXT])["background.threads"]["value"] == "9"
    assert f"{JAAS_KEY} stands in the tree and is ignored" in caplog.text
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):  # noqa: SIM117
        with ours(tree, {OLD_SECRET: FIRST}, **complete):
            pass


class Strongest:
    """Settings of `password.encoder.…`."""

    def text(self, name: str) -> str | None:
        return "PBKDF2WithHmacSHA256" if "keyfactory" in name else "AES/CBC/PKCS5Padding"

    def integer(self, name: str) -> int:
        return 256 if name.endswith("length") else 5000


def test_another_process_writes_the_node(tree: Tree) -> None:
    """`kafka-configs --zookeeper` does; the broker follows it, with the parameters of the text."""
    values: ConfigValues = Strongest()  # type: ignore[assignment]
    encoder = PasswordEncoder(FIRST, values)
    complete = {STORE_KEY: STORE_PASSWORD, KEY_KEY: KEY_PASSWORD, JAAS_KEY: line("static")}
    with ours(tree, {SECRET: FIRST}, **complete) as ports:
        config = {KEY_KEY: encoder.encode(KEY_PASSWORD), "background.threads": "9"}
        tree.write(config)
        while "background.threads" not in described(ports[PLAINTEXT]):
            pass
        assert KEY_KEY in described(ports[PLAINTEXT])
        assert alter(ports[PLAINTEXT], {"background.threads": None}) == (0, None)
        assert tree.stored() == {KEY_KEY: config[KEY_KEY]}
