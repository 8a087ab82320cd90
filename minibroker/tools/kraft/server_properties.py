"""The `server.properties` with which Apache Kafka goes on as `serve` had it.

A node is broker and controller in one process. Listeners, security and all settings of the user
stand as they were; what only minibroker or ZooKeeper reads is left out. Where minibroker's default
differs from Kafka's, minibroker's is written down.

The controller gets a listener of its own on 127.0.0.1. A cluster that lets only known clients in
gets a second one, between brokers: both ask for a password that is made here, so no client has the
rights of a node, and the user need not have named a login of brokers.

Source: Kafka KafkaConfig, KRaftConfigs, StandardAuthorizer, PlainLoginModule.
"""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.config.authorizers import STANDARD_AUTHORIZER, SUPER_USERS
from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.broker.config.secured import MECHANISMS, USERS
from minibroker.broker.security.sasl.users import users_of_config
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.properties import escape
from minibroker.kafka.java_strings import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from minibroker.broker.config.broker import BrokerConfig

HOST: Final = "127.0.0.1"
CONTROLLER: Final = "CONTROLLER"
BETWEEN_NODES: Final = "NODES"
NODE_USER: Final = "minibroker-node"
"""User by which nodes know each other."""
_FIRST_PORT: Final = 9093
_LAST_PORT: Final = 65535
_PLAIN_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"

_DEFAULTS_OF_OURS: Final = (
    "group.initial.rebalance.delay.ms",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "default.replication.factor",
    "num.partitions",
)
"""Keys whose default here is not Kafka's, or that depends on the number of brokers."""
_REPLACED: Final = frozenset(
    {
        *("broker.id", "node.id", "process.roles", "log.dir", "log.dirs", "metadata.log.dir"),
        *("listeners", "advertised.listeners", "listener.security.protocol.map"),
        *("controller.quorum.voters", "controller.quorum.bootstrap.servers"),
        *("controller.listener.names", "control.plane.listener.name", "host.name", "port"),
        *("authorizer.class.name", "inter.broker.protocol.version", "log.message.format.version"),
        *("broker.id.generation.enable", "reserved.broker.max.id"),
        *("transaction.version", "group.version", "eligible.leader.replicas.version"),
    }
)
"""Keys that are written anew, or that Kafka 4 has no more."""
_PREFIXES_OF_OTHERS: Final = ("minibroker.", "zookeeper.", "java.security.")
_REPLACED_IF_SECURED: Final = frozenset(
    {
        *("inter.broker.listener.name", "security.inter.broker.protocol", SUPER_USERS),
        *("sasl.mechanism.inter.broker.protocol", "sasl.mechanism.controller.protocol"),
    }
)


class NodePorts(NamedTuple):
    """The ports of a node that no client uses."""

    controller: int
    between_nodes: int


def choose_ports(configs: Sequence[BrokerConfig]) -> list[NodePorts]:
    """Return free ports for each broker, the first ones behind 9092 that no listener has.

    Raises ConfigError where there are not enough.
    """
    used = {listener.port for config in configs for listener in config.listeners}
    ports = _free_ports(used)
    try:
        return [NodePorts(next(ports), next(ports)) for _ in configs]
    except StopIteration:
        raise ConfigError(
            f"no port from {_FIRST_PORT} to {_LAST_PORT} is free for the controllers of "
            f"{len(configs)} nodes"
        ) from None


def _free_ports(used: set[int]) -> Iterator[int]:
    for port in range(_FIRST_PORT, _LAST_PORT + 1):
        if port not in used and _is_free(port):
            yield port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def new_password() -> str:
    """Return a password that nodes show each other."""
    return secrets.token_urlsafe(24)


def server_properties(
    config: BrokerConfig,
    ports: NodePorts,
    voters: Mapping[int, int],
    password: str,
) -> dict[str, str]:
    """Return key → value for a node.

    Args:
        config: of the broker, as `serve` had it, with its id and its log directories.
        voters: node id → port of its controller, for each node.
        password: that nodes show each other; used where clients have to log in, too.
    """
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(config.broker_id),
        "log.dirs": ",".join(str(Path(path).resolve()) for path in config.log_dirs),
        "controller.quorum.voters": ",".join(
            f"{node_id}@{HOST}:{port}" for node_id, port in voters.items()
        ),
        "controller.listener.names": CONTROLLER,
    }
    properties |= _listeners(config, ports)
    properties |= {key: str(config.get(key)) for key in _DEFAULTS_OF_OURS}
    properties |= _settings_of_user(config)
    if config.is_secured:
        properties |= _logins_of_nodes(password) | _logins_of_users(config)
    if config.authorizer is not None:
        super_users = sorted({*config.authorizer.super_users, f"User:{NODE_USER}"})
        properties["authorizer.class.name"] = STANDARD_AUTHORIZER
        properties[SUPER_USERS] = ";".join(super_users)
    return properties


def _listeners(config: BrokerConfig, ports: NodePorts) -> dict[str, str]:
    listeners = [str(listener) for listener in config.listeners]
    protocols = {listener.name: listener.security_protocol for listener in config.listeners}
    own = {CONTROLLER: ports.controller}
    if config.is_secured:
        own[BETWEEN_NODES] = ports.between_nodes
    for name in own:
        if name in protocols:
            raise ConfigError(
                f"listener {name}: the nodes of Kafka need this name: give the listener another "
                "name before the hand-over"
            )
    listeners += [f"{name}://{HOST}:{port}" for name, port in own.items()]
    protocol = SecurityProtocol.SASL_PLAINTEXT if config.is_secured else SecurityProtocol.PLAINTEXT
    protocols |= dict.fromkeys(own, protocol)
    properties = {
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
    }
    if "advertised.listeners" in config.originals:
        advertised = [str(listener) for listener in config.advertised_listeners]
        if config.is_secured:
            advertised.append(f"{BETWEEN_NODES}://{HOST}:{ports.between_nodes}")
        properties["advertised.listeners"] = ",".join(advertised)
    properties["inter.broker.listener.name"] = (
        BETWEEN_NODES if config.is_secured else config.inter_broker_listener_name
    )
    return properties


def _settings_of_user(config: BrokerConfig) -> dict[str, str]:
    """Return what the user set, but for keys that are written anew or that Kafka has not."""
    replaced = _REPLACED | {"security.inter.broker.protocol", "inter.broker.listener.name"}
    if config.is_secured:
        replaced |= _REPLACED_IF_SECURED
    return {
        key: text
        for key, text in config.originals.items()
        if key not in replaced and not key.startswith(_PREFIXES_OF_OTHERS)
    }


def _logins_of_nodes(password: str) -> dict[str, str]:
    """Return the settings by which nodes know each other."""
    login = (
        f"{_PLAIN_LOGIN} required username={quoted(NODE_USER)} password={quoted(password)} "
        f"{_user_option(NODE_USER, password)};"
    )
    settings = {
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
    }
    for name in (CONTROLLER, BETWEEN_NODES):
        prefix = f"listener.name.{name.lower()}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN"
        settings[f"{prefix}.plain.sasl.jaas.config"] = login
    return settings


def _logins_of_users(config: BrokerConfig) -> dict[str, str]:
    """Return the JAAS lines of the users in `minibroker.users`, for each listener that asks."""
    if USERS not in config.originals:
        return {}
    users = users_of_config(config)
    options = " ".join(_user_option(name, password) for name, password in users.items())
    lines = {
        "plain": f"{_PLAIN_LOGIN} required {options};",
        "scram-sha-256": f"{_SCRAM_LOGIN} required;",
        "scram-sha-512": f"{_SCRAM_LOGIN} required;",
    }
    return {
        f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config": lines[
            mechanism.lower()
        ]
        for listener in config.listeners
        if listener.security_protocol.uses_sasl
        for mechanism in MECHANISMS
    }


def _user_option(name: str, password: str) -> str:
    return f"{quoted(f'user_{name}')}={quoted(password)}"


def properties_text(properties: Mapping[str, str], comments: Iterable[str]) -> str:
    """Return the text of a file: comments, then a line for each key."""
    lines = [f"# {comment}" for comment in comments]
    lines += [f"{key}={escape(text)}" for key, text in properties.items()]
    return "\n".join([*lines, ""])
