"""The end of the container's start scripts: reads variables, serves a broker, prints log lines.

The container gets the variables of Kafka's images. Most are settings, which are read like those of
`minibroker serve` (`config.sources`). This module adds the rest: defaults of data and listeners,
`CLUSTER_ID`, `KAFKA_CREATE_TOPICS`, the properties file that users of apache/kafka mount, stores
and passwords under /etc/kafka/secrets, users of `kafka-storage`, a ZooKeeper that a start script
runs inside the container, and the log lines for which Testcontainers waits.

    /etc/kafka/docker/run, /etc/confluent/docker/launch ─► main ─► arrange ─► verbs.serve

Source: docker/ in Apache Kafka (the image), the Kafka modules of Testcontainers for Java, Python,
Go and Node.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.secured import SCRAM_CREDENTIALS
from minibroker.broker.config.sources import from_environment
from minibroker.cli.errors import EXIT_FAILED, UsageError
from minibroker.container.health import LISTENER_FILE, TEMPORARY
from minibroker.container.scram_users import given_users
from minibroker.container.secrets import put_secrets
from minibroker.container.topics import parse_topics
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.properties import read_properties
from minibroker.verbs.serve.plan import parse_serve
from minibroker.verbs.serve.settings import build, configure_logging

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.verbs.serve.plan import ServePlan

DATA_DIR: Final = "/var/lib/kafka/data"
SHARED_PROPERTIES: Final = "/mnt/shared/config/server.properties"
"""Path at which users of apache/kafka mount their own file."""

# From the host: localhost:9092. From other containers: the container's name, port 19092.
_LISTENERS: Final = "{0}://:9092,DOCKER://:19092"
_ADVERTISED: Final = "{0}://localhost:9092,DOCKER://{1}:19092"
_PROTOCOLS: Final = "{0}:{0},DOCKER:{0}"

# Variables for flags of `serve` that are no keys of Kafka.
_FLAGS: Final = {
    "MINIBROKER_LOG_LEVEL": "--log-level",
    "MINIBROKER_CONTROL": "--control",
    "MINIBROKER_CONTROL_TLS": "--control-tls",
    "MINIBROKER_SECURITY": "--security",
}
_USERS: Final = "MINIBROKER_USERS"
"""Words NAME:PASSWORD or @FILE, each for a `--user`."""

_ZOOKEEPER_FILES: Final = ("zookeeper.properties", f"{TEMPORARY}/zookeeper.properties")
"""File that Testcontainers' start scripts write for a ZooKeeper in the container."""

_EASIEST: Final = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
"""Protocols, in the order in which the health check likes them."""
_QUORUM_KEYS: Final = ("process.roles", "controller.quorum.")
"""Beginnings of keys of KRaft, which are accepted without effect."""

# Testcontainers, compose files and scripts wait for these lines in Kafka's log.
_READY_LINES: Final = (
    "[BrokerLifecycleManager id={id}] Transitioning from RECOVERY to RUNNING"
    " (kafka.server.BrokerLifecycleManager)",
    "[KafkaServer id={id}] started (kafka.server.KafkaServer)",
    "[KafkaRaftServer nodeId={id}] Kafka Server started (kafka.server.KafkaRaftServer)",
)


def main() -> int:
    """Serve until SIGTERM; return the exit code of the container."""
    try:
        configure_logging(parse_serve(_flags(os.environ)).log_level)
        plan, settings = arrange(os.environ)
        config, options = build(plan, settings)
        Path(LISTENER_FILE).write_text(listener_to_ask(config), encoding="utf-8")
    except (ConfigError, UsageError) as error:
        sys.stderr.write(f"minibroker: {error}\n")
        return EXIT_FAILED
    except OSError as error:
        sys.stderr.write(f"minibroker: {error.filename}: {error.strerror}\n")
        return EXIT_FAILED
    _name_what_has_no_effect(config)
    options.ready_lines = ready_lines(config.broker_id)

    from minibroker.verbs.serve import process  # noqa: PLC0415  a wrong variable is reported before the imports

    return process.run(config, options)


def arrange(environment: Mapping[str, str]) -> tuple[ServePlan, dict[str, str]]:
    """Return the plan of `serve`, and the variables that stay settings.
    An empty variable counts as missing, as in compose files with `${X:-}`. Raises ConfigError and
    UsageError.
    """
    settings = {name: value for name, value in environment.items() if value}
    put_secrets(settings)
    plan = parse_serve(_flags(settings))
    # The image has listeners of its own, and variables may give others.
    own = [pair for pair in plan.settings if pair[0] != "listeners"]
    if users := given_users():
        own.append((SCRAM_CREDENTIALS, users))
    topics = parse_topics(
        settings.pop("KAFKA_CREATE_TOPICS", ""),
        settings.pop("KAFKA_CREATE_TOPICS_SEPARATOR", ","),
    )
    config_file = SHARED_PROPERTIES if Path(SHARED_PROPERTIES).is_file() else None
    if _has_zookeeper_inside(settings.get("KAFKA_ZOOKEEPER_CONNECT", "")):
        del settings["KAFKA_ZOOKEEPER_CONNECT"]
    file_settings = read_properties(config_file) if config_file else {}
    file_settings.update(from_environment(settings))
    roles = [role.strip() for role in file_settings.get("process.roles", "broker").split(",")]
    if "broker" not in roles:
        raise ConfigError(
            f"process.roles={file_settings['process.roles']}: there is no controller to run apart, "
            "every minibroker has its own; leave this container out"
        )
    host = socket.gethostname()
    own += _defaults(file_settings, settings.get("CLUSTER_ID", ""), plan, host)
    whole = plan._replace(
        settings=tuple(own), topics=tuple(topics), config_file=config_file, host=host
    )
    return whole, settings


def ready_lines(broker_id: int) -> tuple[str, ...]:
    """Return the log lines that say "clients succeed now", as Kafka with and without ZooKeeper."""
    return tuple(line.format(id=broker_id) for line in _READY_LINES)


def listener_to_ask(config: BrokerConfig) -> str:
    """Return HOST:PORT PROTOCOL for the health check: the listener, as it is bound, that asks
    least of a client.
    """
    listener = min(config.listeners, key=lambda known: _EASIEST.index(known.security_protocol))
    return f"{listener.host}:{listener.port} {listener.security_protocol}"


def _flags(environment: Mapping[str, str]) -> list[str]:
    flags = [(flag, environment[name]) for name, flag in _FLAGS.items() if environment.get(name)]
    flags += [("--user", word) for word in environment.get(_USERS, "").split()]
    return [f"{flag}={value}" for flag, value in flags]


def _defaults(
    given: Mapping[str, str], cluster_id: str, plan: ServePlan, host: str
) -> list[tuple[str, str]]:
    """Return the settings that the image has where the user sets none."""
    settings = []
    if cluster_id and "minibroker.cluster.id" not in given:
        settings.append(("minibroker.cluster.id", cluster_id))
    if not {"log.dirs", "log.dir"} & given.keys():
        settings.append(("log.dirs", DATA_DIR))
    if not {"listeners", "advertised.listeners"} & given.keys():
        default = "SASL_PLAINTEXT" if plan.users else "PLAINTEXT"
        protocol = (plan.security or default).upper()
        settings.append(("listeners", _LISTENERS.format(protocol)))
        settings.append(("advertised.listeners", _ADVERTISED.format(protocol, host)))
        settings.append(("listener.security.protocol.map", _PROTOCOLS.format(protocol)))
    return settings


def _has_zookeeper_inside(connect: str) -> bool:
    """Return whether the start script is meant to run a ZooKeeper in this container.
    Testcontainers writes `zookeeper.properties`, starts `zookeeper-server-start` with it and points
    Kafka at localhost. Then minibroker keeps the metadata itself. Raises ConfigError.
    """
    host, _, port = connect.partition("/")[0].rpartition(":")
    if host not in ("localhost", "127.0.0.1"):
        return False
    return any(
        read_properties(file).get("clientPort", "").strip() == port
        for file in _ZOOKEEPER_FILES
        if Path(file).is_file()
    )


def _name_what_has_no_effect(config: BrokerConfig) -> None:
    quorum_keys = sorted(key for key in config.originals if key.startswith(_QUORUM_KEYS))
    if quorum_keys:
        import logging  # noqa: PLC0415  configured by now

        logging.getLogger("minibroker.container").info(
            "no effect, minibroker is its own controller: %s", ", ".join(quorum_keys)
        )


if __name__ == "__main__":
    sys.exit(main())
