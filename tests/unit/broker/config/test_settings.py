"""Settings of one listener stand over those of all listeners."""

from __future__ import annotations

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.settings import ConfigValues


def test_a_listener_sees_its_own_settings_over_the_plain_ones() -> None:
    settings = ConfigValues(
        {
            "ssl.client.auth": "none",
            "ssl.protocol": "TLSv1.2",
            "listener.name.internal.ssl.client.auth": "required",
            "listener.name.other.ssl.protocol": "TLSv1.3",
        }
    )
    internal = settings.of_listener("INTERNAL")
    assert internal.text("ssl.client.auth") == "required"
    assert internal.text("ssl.protocol") == "TLSv1.2"
    assert settings.text("ssl.client.auth") == "none"


def test_a_key_of_a_mechanism_loses_the_prefix_of_the_listener() -> None:
    settings = ConfigValues({"listener.name.x.plain.sasl.jaas.config": "a line"})
    assert settings.of_listener("X").get("plain.sasl.jaas.config") == "a line"
    assert settings.of_listener("Y").get("plain.sasl.jaas.config") is None


def test_a_key_that_nobody_sets_has_its_default_for_each_listener() -> None:
    listener = BrokerConfig().of_listener("PLAINTEXT")
    assert listener.words("ssl.enabled.protocols") == ["TLSv1.2", "TLSv1.3"]
    assert listener.integer("sasl.server.max.receive.size") == 524288
    assert not listener.boolean("ssl.allow.dn.changes")
