"""The `server.properties` with which Kafka goes on; no Kafka starts here."""

from __future__ import annotations

import socket

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.properties import parse_properties
from minibroker.tools.kraft.server_properties import (
    NodePorts,
    choose_ports,
    properties_text,
    server_properties,
)

PORTS = NodePorts(19093, 19094)
VOTERS = {0: 19093}


def properties_of(**settings: str) -> dict[str, str]:
    originals = {key.replace("_", "."): text for key, text in settings.items()}
    return server_properties(BrokerConfig(originals), PORTS, VOTERS, "pass word")


def test_an_open_broker_becomes_an_open_node() -> None:
    properties = properties_of(
        log_dirs="/a,/b",
        num_partitions="3",
        zookeeper_session_timeout_ms="6000",
        minibroker_log_sync_interval_ms="0",
        process_roles="broker",
    )
    assert properties["process.roles"] == "broker,controller"
    assert (properties["node.id"], properties["log.dirs"]) == ("0", "/a,/b")
    assert properties["controller.quorum.voters"] == "0@127.0.0.1:19093"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:19093"
    assert properties["num.partitions"] == "3"
    assert properties["offsets.topic.replication.factor"] == "1"
    assert properties["group.initial.rebalance.delay.ms"] == "0"
    assert not [key for key in properties if key.startswith(("zookeeper.", "minibroker."))]
    assert not [key for key in properties if "jaas" in key]


def test_a_secured_broker_becomes_a_secured_node() -> None:
    properties = properties_of(
        listeners="SASL_SSL://127.0.0.1:9092",
        security_inter_broker_protocol="SASL_SSL",
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256",
        sasl_mechanism_inter_broker_protocol="PLAIN",
        minibroker_users='admin="s\\"ecret" bob="b"',
        authorizer_class_name="kafka.security.authorizer.AclAuthorizer",
        super_users="User:admin",
        ssl_keystore_type="PEM",
        ssl_keystore_location="/k.pem",
    )
    assert properties["authorizer.class.name"].endswith(".StandardAuthorizer")
    assert properties["super.users"] == "User:admin;User:minibroker-node"
    assert properties["inter.broker.listener.name"] == "NODES"
    assert "security.inter.broker.protocol" not in properties
    assert properties["listener.security.protocol.map"] == (
        "SASL_SSL:SASL_SSL,CONTROLLER:SASL_PLAINTEXT,NODES:SASL_PLAINTEXT"
    )
    users = properties["listener.name.sasl_ssl.plain.sasl.jaas.config"]
    assert users.endswith('required "user_admin"="s\\"ecret" "user_bob"="b";')
    for name in ("controller", "nodes"):
        login = properties[f"listener.name.{name}.plain.sasl.jaas.config"]
        assert login.endswith(
            'required username="minibroker-node" password="pass word" '
            '"user_minibroker-node"="pass word";'
        )
    assert properties["ssl.keystore.location"] == "/k.pem"


def test_a_listener_may_not_have_the_name_of_one_of_the_nodes() -> None:
    with pytest.raises(ConfigError, match="listener CONTROLLER: the nodes of Kafka need this name"):
        properties_of(
            listeners="CONTROLLER://127.0.0.1:9092",
            listener_security_protocol_map="CONTROLLER:PLAINTEXT",
            inter_broker_listener_name="CONTROLLER",
        )


def test_ports_are_free_and_no_listener_s() -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:9093"})
    with socket.create_server(("127.0.0.1", 0)) as server:
        (ports,) = choose_ports([config])
        chosen = {ports.controller, ports.between_nodes}
        assert len(chosen) == 2
        assert not chosen & {9093, server.getsockname()[1]}
        assert choose_ports([config, config])[1] != ports


def test_the_file_is_read_as_it_was_meant() -> None:
    properties = {"a": " b\\c=é\n", "log.dirs": "/x"}
    assert parse_properties(properties_text(properties, ["A comment."])) == properties
