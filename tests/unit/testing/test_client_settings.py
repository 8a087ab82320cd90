"""Each client library has the settings that it takes, with TLS and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.kafka.java_formats.jaas import parse_line
from minibroker.kafka.java_formats.properties import parse_properties
from minibroker.testing.client_settings import CLIENTS, ClientAccess, ClientLogin

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
    read = parse_properties("\n".join(lines))
    assert read == CLIENTS["java"](access)
    options = parse_line(read["sasl.jaas.config"]).options
    assert options == {"username": "al ice\\", "password": password}
