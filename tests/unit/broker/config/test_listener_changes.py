"""The listeners that stay keep their settings and their protocol."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.listener_changes import check_listener_changes
from minibroker.kafka.errors import ConfigError

MAP = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT"
STATIC = BrokerConfig(
    {
        "listeners": "PLAINTEXT://a:1,EXTRA://a:2",
        "listener.security.protocol.map": MAP,
        "listener.name.extra.ssl.client.auth": "required",
    }
)
MORE = {
    "listeners": "PLAINTEXT://a:1,EXTRA://a:2,MORE://a:3",
    "listener.security.protocol.map": f"{MAP},MORE:PLAINTEXT",
}


@pytest.mark.parametrize(
    "values",
    [
        {},
        MORE,
        {**MORE, "listener.name.more.ssl.client.auth": "required"},
        {**MORE, "listener.name.extra.ssl.keystore.type": "PEM"},
        {"listener.name.extra.ssl.client.auth": "none"},
        {"listener.name.extra.max.connections": "1", "max.connection.creation.rate": "1"},
        {"listener.name.gone.max.connections": "0"},
        {"listeners": "PLAINTEXT://a:1", "listener.name.extra.ssl.client.auth": "none"},
    ],
)
def test_taken(values: dict[str, str]) -> None:
    check_listener_changes(STATIC, STATIC, STATIC.with_overrides(values))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {**MORE, "listener.name.extra.ssl.client.auth": "none"},
            "Configs cannot be updated dynamically for existing listener ListenerName(EXTRA)",
        ),
        (
            {"max.connections": "5", "listener.name.plaintext.plain.sasl.jaas.config": "x"},
            "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT)",
        ),
        ({"max.connections": "0"}, "Invalid max.connections 0"),
        (
            {"listener.name.extra.max.connection.creation.rate": "0"},
            "Invalid max.connection.creation.rate 0",
        ),
        (
            {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:SSL"},
            "Security protocol cannot be updated for existing listener ListenerName(EXTRA)",
        ),
    ],
)
def test_refused(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_listener_changes(STATIC, STATIC, STATIC.with_overrides(values))
    assert sentence in str(caught.value)


def test_settings_that_were_altered_since_the_start_differ_from_it() -> None:
    present = STATIC.with_overrides({"listener.name.extra.ssl.client.auth": "none"})
    with pytest.raises(ConfigError):
        check_listener_changes(STATIC, present, present.with_overrides(MORE))
