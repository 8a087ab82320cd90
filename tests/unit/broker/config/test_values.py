"""`BrokerValues`: typed attributes, fall-backs between units, keys that belong together."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.broker.config.listeners import Listener, SecurityProtocol
from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.config.values import BrokerValues
from minibroker.kafka.errors import ConfigError


def test_without_settings_it_is_one_development_node() -> None:
    config = BrokerValues()
    assert config.broker_id == 0
    assert config.listeners == (
        Listener("PLAINTEXT", "127.0.0.1", 9092, SecurityProtocol.PLAINTEXT),
    )
    assert config.advertised_listeners == config.listeners
    assert config.log_dirs == ("minibroker-data",)
    assert config.zookeeper_connect is None
    assert config.originals == {}
    assert config.unknown_keys == ()


def test_node_id_and_broker_id_are_one() -> None:
    assert BrokerValues({"node.id": "7"}).broker_id == 7
    assert BrokerValues({"broker.id": "7"}).get("node.id") == 7


def test_the_smallest_unit_given_wins() -> None:
    hours = {"log.retention.hours": "2"}
    assert BrokerValues(hours).log_retention_ms == 7_200_000
    assert BrokerValues({**hours, "log.retention.minutes": "3"}).log_retention_ms == 180_000
    both = {**hours, "log.retention.minutes": "3", "log.retention.ms": "-5"}
    assert BrokerValues(both).log_retention_ms == -1
    assert BrokerValues({"log.roll.hours": "1"}).log_roll_ms == 3_600_000


def test_the_connection_timeout_of_zookeeper_falls_back_to_its_session_timeout() -> None:
    config = BrokerValues({"zookeeper.session.timeout.ms": "6000"})
    assert config.zookeeper_connection_timeout_ms == 6000


def test_log_dirs_are_stronger_than_log_dir() -> None:
    assert BrokerValues({"log.dir": "/a"}).log_dirs == ("/a",)
    assert BrokerValues({"log.dir": "/a", "log.dirs": "/b, /c"}).log_dirs == ("/b", "/c")


def test_get_answers_every_key() -> None:
    config = BrokerValues({"my.plugin": " x ", "num.partitions": " 4 "})
    assert config.get("num.partitions") == 4
    assert config.get("ssl.enabled.protocols") == ["TLSv1.2", "TLSv1.3"]
    assert config.get("broker.rack") is None
    assert config.get("my.plugin") == " x "
    assert config.get("nobody.knows") is None
    for name in BROKER_KEYS:
        config.get(name)


def test_unknown_keys_are_named_and_plugins_keys_are_not_unknown() -> None:
    config = BrokerValues(
        {
            "num.partitons": "3",
            "a.typo": "",
            "super.users": "",
            "listener.name.internal.num.network.threads": "2",
        }
    )
    assert config.unknown_keys == ("a.typo", "num.partitons")


@pytest.mark.parametrize(
    ("name", "text"),
    [("num.partitions", "0"), ("auto.create.topics.enable", "maybe"), ("log.cleanup.policy", "x")],
)
def test_a_wrong_value_is_refused_with_key_and_value(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {text} for configuration {name}: "):
        BrokerValues({name: text})


def test_a_kraft_configuration_starts_a_broker() -> None:
    """The apache/kafka image's environment: the controller's listener is dropped."""
    config = BrokerValues(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092",
        }
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert config.unknown_keys == ()


def test_an_advertised_address_without_host_is_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "my-machine")
    config = BrokerValues({"listeners": "PLAINTEXT://:9092"})
    assert config.listeners[0].host == ""
    assert config.advertised_listeners[0].host == "my-machine"


def test_connection_overrides_are_counts_per_host() -> None:
    config = BrokerValues({"max.connections.per.ip.overrides": "127.0.0.1:5, my-host:0,::1:7"})
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 5, "my-host": 0, "::1": 7}


def test_the_controller_comes_by_the_listener_between_brokers_unless_it_has_its_own() -> None:
    assert BrokerValues().controller_listener_name == "PLAINTEXT"
    config = BrokerValues(
        {
            "listeners": "PLAINTEXT://a:1,CONTROL://a:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
            "control.plane.listener.name": "control",
        }
    )
    assert config.control_plane_listener_name == "CONTROL"
    assert config.controller_listener_name == "CONTROL"
    assert config.inter_broker_listener_name == "PLAINTEXT"


TYPES = {"boolean": "bool", "string": "str | None"}
"""Type of a key → type of the attribute with its value; the others are numbers."""


def test_attributes_have_the_types_of_their_keys() -> None:
    for attribute, annotation in BrokerValues.__annotations__.items():
        key = BROKER_KEYS[attribute.replace("_", ".")]
        assert annotation == TYPES.get(key.type, "int"), attribute
        assert annotation != "int" or key.default is not None, attribute


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
