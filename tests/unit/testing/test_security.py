"""Certificates for tests: one CA for the broker and its clients, kept with its directory."""

from __future__ import annotations

import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.listener_tls import ListenerTls
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.jaas import parse_line
from minibroker.kafka.java_formats.properties import parse_properties
from minibroker.testing import Broker
from minibroker.testing.client_settings import CLIENTS, ClientAccess, ClientLogin
from minibroker.testing.security import Security
from minibroker.testing.values import to_bytes, to_headers, to_timestamp
from tests.support.certificates import SSL_LISTENER, shake_hands


def principal(security: Security, client: ssl.SSLContext) -> str:
    listener = ListenerTls(SSL_LISTENER, ConfigValues(security.broker_settings()))
    return listener.principal_of(shake_hands(listener.context, client))


def test_a_client_trusts_the_broker_and_its_certificate_names_the_user(tmp_path: Path) -> None:
    security = Security("SSL", tmp_path)
    for user, expected in ((None, "User:ANONYMOUS"), ("alice", "User:alice")):
        settings = security.client_settings("aiokafka", "localhost:1", user=user)
        assert principal(security, settings["ssl_context"]) == expected


def test_a_directory_keeps_its_authority(tmp_path: Path) -> None:
    settings = Security("SSL", tmp_path / "tls").client_settings("aiokafka", "localhost:1")
    again = Security("SSL", tmp_path / "tls")
    assert principal(again, settings["ssl_context"]) == "User:ANONYMOUS"
    assert (tmp_path / "tls" / "ca-key.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("user", ["ca-key", "ca", "../ca-key", "..", "a/b"])
def test_the_name_of_a_user_is_not_the_name_of_another_file(tmp_path: Path, user: str) -> None:
    directory = tmp_path / "tls"
    security = Security("SSL", directory)
    first_files = {path.name: path.read_bytes() for path in directory.iterdir()}
    settings = security.client_settings("aiokafka", "localhost:1", user=user)
    assert principal(security, settings["ssl_context"]) == f"User:{user}"
    own_settings = security.client_settings("java", "localhost:1", user=user)
    own = Path(own_settings["ssl.keystore.location"])
    assert own.parent == directory / "users"
    assert own.read_bytes() not in first_files.values()
    assert {path.name for path in directory.iterdir()} == {*first_files, "users"}


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="security=TLS: expected one of PLAINTEXT, SSL, SASL_PLAINTEXT"
    ):
        Security("TLS", tmp_path)
    with pytest.raises(ValueError, match="client 'kcat': expected one of confluent-kafka"):
        Security("PLAINTEXT", tmp_path).client_settings("kcat", "localhost:1")


def test_a_missing_package_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(ConfigError, match=r"trustme: pip install 'minibroker\[security\]'"):
        Security("SSL", tmp_path)


def test_the_certificates_go_with_the_broker() -> None:
    with Broker(security="SSL") as broker:
        assert broker._security is not None
        directory = broker._security.directory
        assert directory.exists()
    assert not directory.exists()


def test_a_user_needs_a_secured_broker() -> None:
    with Broker() as broker:
        assert broker.client_config("java") == {"bootstrap.servers": broker.bootstrap}
        with pytest.raises(ValueError, match="needs a broker with security="):
            broker.client_config("java", user="alice")


def test_users_log_in_with_the_password_that_the_broker_knows(tmp_path: Path) -> None:
    security = Security("sasl_plaintext", tmp_path, {"alice": "secret", "bob": 'a"b'})
    text = security.broker_settings()["minibroker.users"]
    assert text == '"alice"="secret" "bob"="a\\"b"'
    settings = security.client_settings("aiokafka", "localhost:1")
    assert (settings["sasl_plain_username"], settings["sasl_mechanism"]) == (
        "alice",
        "SCRAM-SHA-256",
    )
    line = security.client_settings("java", "h:1", user="bob", mechanism="PLAIN")[
        "sasl.jaas.config"
    ]
    assert line.endswith('PlainLoginModule required username="bob" password="a\\"b";')
    for wrong in ({"user": "carol"}, {"mechanism": "GSSAPI"}):
        with pytest.raises(ValueError, match="expected one of"):
            security.client_settings("java", "h:1", **wrong)


def test_certificates_of_clients_count_only_where_nobody_logs_in(tmp_path: Path) -> None:
    assert Security("SSL", tmp_path).broker_settings()["ssl.client.auth"] == "requested"
    settings = Security("SASL_SSL", tmp_path, {"alice": "secret"}).broker_settings()
    assert "ssl.client.auth" not in settings


def test_users_and_the_protocol_have_to_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give the users"):
        Security("SASL_PLAINTEXT", tmp_path)
    with pytest.raises(ConfigError, match="leave out the users"):
        Security("PLAINTEXT", tmp_path, {"alice": "secret"})


# Each client library has the settings that it takes, with TLS and without.


PLAIN = ClientAccess("h:1", SecurityProtocol.PLAINTEXT, Path("ca.pem"), None)
ALICE = ClientAccess("h:1", SecurityProtocol.SSL, Path("ca.pem"), Path("alice.pem"))


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("confluent-kafka", {"bootstrap.servers": "h:1"}),
        ("aiokafka", {"bootstrap_servers": "h:1"}),
        ("kafka-python", {"bootstrap_servers": "h:1"}),
        ("java", {"bootstrap.servers": "h:1"}),
        ("spark", {"kafka.bootstrap.servers": "h:1"}),
    ],
)
def test_without_tls_the_address_is_enough(client: str, expected: dict[str, Any]) -> None:
    assert CLIENTS[client](PLAIN) == expected


def test_librdkafka_takes_files() -> None:
    assert CLIENTS["confluent-kafka"](ALICE) == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SSL",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "alice.pem",
        "ssl.key.location": "alice.pem",
    }


def test_java_takes_pem_stores_and_spark_a_prefix() -> None:
    java = CLIENTS["java"](ALICE)
    assert java == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "alice.pem",
    }
    assert CLIENTS["spark"](ALICE) == {f"kafka.{key}": value for key, value in java.items()}


@pytest.mark.parametrize(
    "password", ["a\\b\"c'd", " = : # ! ", "é \N{GRINNING FACE}", "a\tb\nc\rd\f"]
)
def test_a_password_with_any_letters_comes_through_a_file(password: str) -> None:
    login = ClientLogin("PLAIN", "al ice\\", password)
    access = PLAIN._replace(protocol=SecurityProtocol.SASL_PLAINTEXT, login=login)
    lines = [f"{key}={value}" for key, value in CLIENTS["java-properties"](access).items()]
    assert all(line.isascii() for line in lines)
    properties = parse_properties("\n".join(lines))
    assert properties == CLIENTS["java"](access)
    options = parse_line(properties["sasl.jaas.config"]).options
    assert options == {"username": "al ice\\", "password": password}


# Keys, values and headers as a test writes them.


def test_values() -> None:
    assert [to_bytes(value) for value in ("ö", b"b", bytearray(b"c"), None, {"a": [1]})] == [
        b"\xc3\xb6",
        b"b",
        b"c",
        None,
        b'{"a": [1]}',
    ]
    with pytest.raises(TypeError, match=r"\[1\] is no key or value"):
        to_bytes([1])  # type: ignore[arg-type]


def test_headers_keep_their_order_and_may_repeat() -> None:
    assert to_headers({"a": "1", "b": None}) == (("a", b"1"), ("b", None))
    assert to_headers([("a", b"1"), ("a", "2")]) == (("a", b"1"), ("a", b"2"))
    assert to_headers(()) == ()


def test_timestamps() -> None:
    assert to_timestamp(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)) == 1500
    assert (to_timestamp(7), to_timestamp(None)) == (7, None)
    for wrong in ("now", True, 1.5):
        with pytest.raises(TypeError, match="expected milliseconds"):
            to_timestamp(wrong)  # type: ignore[arg-type]
