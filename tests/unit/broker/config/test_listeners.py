"""Listeners are parsed with their protocols; contradictions are refused with the way out."""

from __future__ import annotations

import pytest

from minibroker.broker.config.listeners import (
    Listener,
    SecurityProtocol,
    parse_listeners,
    parse_protocol_map,
)
from minibroker.kafka.errors import ConfigError

PROTOCOLS = {
    "PLAINTEXT": SecurityProtocol.PLAINTEXT,
    "HOST": SecurityProtocol.PLAINTEXT,
    "SECURE": SecurityProtocol.SSL,
}


def parse(
    text: str, *, distinct_ports: bool = True, controllers: set[str] | None = None
) -> tuple[Listener, ...]:
    return parse_listeners(
        "listeners",
        text,
        PROTOCOLS,
        controller_names=controllers or set(),
        distinct_ports=distinct_ports,
    )


def test_names_hosts_ports_and_protocols() -> None:
    assert parse("plaintext://:9092, HOST://[::1]:9093,SECURE://my-host.example:0") == (
        Listener("PLAINTEXT", "", 9092, SecurityProtocol.PLAINTEXT),
        Listener("HOST", "::1", 9093, SecurityProtocol.PLAINTEXT),
        Listener("SECURE", "my-host.example", 0, SecurityProtocol.SSL),
    )
    assert str(Listener("HOST", "::1", 9093, SecurityProtocol.PLAINTEXT)) == "HOST://[::1]:9093"


def test_listeners_of_a_controller_are_dropped() -> None:
    listeners = parse("PLAINTEXT://:9092,CONTROLLER://:9093", controllers={"CONTROLLER"})
    assert [listener.name for listener in listeners] == ["PLAINTEXT"]


@pytest.mark.parametrize(
    "text",
    [
        "9092",
        "PLAINTEXT:9092",
        "PLAINTEXT://host",
        "PLAINTEXT://host:port",
        "PLAINTEXT://h:70000",
        "://h:1",
        "PLAINTEXT://a b:1",
        "PLAINTEXT://h:-1",
    ],
)
def test_a_malformed_listener_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"PLAINTEXT://127.0.0.1:9092"):
        parse(text)


def test_a_name_without_protocol_names_the_key_to_set() -> None:
    with pytest.raises(
        ConfigError, match=r"add OTHER:PLAINTEXT to listener\.security\.protocol\.map"
    ):
        parse("OTHER://:1")


def test_names_and_ports_differ() -> None:
    with pytest.raises(ConfigError, match="different name"):
        parse("HOST://:1,HOST://:2")
    with pytest.raises(ConfigError, match="port 1 is used more than once"):
        parse("HOST://a:1,PLAINTEXT://b:1")
    assert len(parse("HOST://127.0.0.1:1,PLAINTEXT://[::1]:1")) == 2
    assert len(parse("HOST://a:0,PLAINTEXT://b:0")) == 2
    assert len(parse("HOST://a:1,PLAINTEXT://b:1", distinct_ports=False)) == 2


@pytest.mark.parametrize(
    ("protocol", "uses_tls", "uses_sasl"),
    [
        (SecurityProtocol.PLAINTEXT, False, False),
        (SecurityProtocol.SSL, True, False),
        (SecurityProtocol.SASL_PLAINTEXT, False, True),
        (SecurityProtocol.SASL_SSL, True, True),
    ],
)
def test_a_protocol_tells_its_layers(
    protocol: SecurityProtocol, uses_tls: bool, uses_sasl: bool
) -> None:
    assert (protocol.uses_tls, protocol.uses_sasl) == (uses_tls, uses_sasl)


def test_protocol_map() -> None:
    assert parse_protocol_map("a:plaintext, B:SASL_SSL,") == {"A": "PLAINTEXT", "B": "SASL_SSL"}
    for text in ("A", "A:TLS"):
        with pytest.raises(ConfigError, match="NAME:PROTOCOL"):
            parse_protocol_map(text)
