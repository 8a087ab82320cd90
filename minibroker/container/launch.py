"""The end of the container's start scripts: reads variables, serves a broker, prints log lines.

The container gets the variables of Kafka's images. Most are settings, which are read like those of
`minibroker serve` (`config.sources`); `variables` has translated those of other images. This
module adds the rest: defaults of data and listeners, `CLUSTER_ID`, `KAFKA_CREATE_TOPICS`, the
properties file that users mount, users of `kafka-storage`, a ZooKeeper that a start script runs
inside the container, and the log lines for which Testcontainers waits.

    start scripts ─► main ─► translate ─► arrange ─► verbs.serve

Source: docker/ in Apache Kafka (the image), the Kafka modules of Testcontainers for Java, Python,
Go and Node.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.broker import GENERATED_ID
from minibroker.broker.config.secured import SCRAM_CREDENTIALS
from minibroker.broker.config.sources import JAVA_PROPERTIES, from_environment
from minibroker.cli.errors import EXIT_FAILED, UsageError
from minibroker.container.health import LISTENER_FILE, TEMPORARY
from minibroker.container.scram_users import given_users
from minibroker.container.topics import parse_topics
from minibroker.container.variables import Translated, translate
from minibroker.container.without_effect import options_without_effect
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.properties import read_properties
from minibroker.verbs.serve.settings import build, configure_logging
from minibroker.verbs.serve.verb import parse_serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.verbs.serve.plan import ServePlan

PROPERTIES_FILES: Final = (
    "/mnt/shared/config/server.properties",
    "/bitnami/kafka/config/server.properties",
    "/opt/bitnami/kafka/config/server.properties",
    "/opt/kafka/config/server.properties",
)
"""Paths at which users of Kafka's images mount their own file."""
_CONFIG_DIRS: Final = ("/opt/kafka/config/", "/opt/bitnami/kafka/config/", "/etc/kafka/")
"""Directories that hold Kafka's sample files in its own images; this image has no samples."""

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
    "MINIBROKER_REGISTRY": "--registry",
    "MINIBROKER_REGISTRY_TLS": "--registry-tls",
}
_SWITCHES: Final = {"MINIBROKER_CONSOLE_READ_ONLY": "--console-read-only"}
"""Variables that are `true` or `false` → the flag without a value."""
_USERS: Final = {
    "MINIBROKER_USERS": "--user",
    "MINIBROKER_REGISTRY_USERS": "--registry-user",
}
"""Variables of words NAME:PASSWORD or @FILE → the flag of each word."""

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


def main(words: Sequence[str] = ()) -> int:
    """Serve until SIGTERM; return the exit code of the container.

    `words` are those of `kafka-server-start`: FILE, and --override KEY=VALUE.
    """
    try:
        translated = translate(os.environ)
        configure_logging(parse_serve(_flags(translated.variables)).log_level)
        plan, settings = arrange(translated, words)
        config, options = build(plan, settings)
        Path(LISTENER_FILE).write_text(listener_to_ask(config), encoding="utf-8")
    except (ConfigError, UsageError) as error:
        sys.stderr.write(f"minibroker: {error}\n")
        return EXIT_FAILED
    except OSError as error:
        sys.stderr.write(f"minibroker: {error.filename}: {error.strerror}\n")
        return EXIT_FAILED
    _name_what_has_no_effect(config, translated)
    options.ready_lines = ready_lines(config.broker_id)

    from minibroker.verbs.serve import process  # noqa: PLC0415  a wrong variable is reported before the imports

    return process.run(config, options)


def arrange(translated: Translated, words: Sequence[str] = ()) -> tuple[ServePlan, dict[str, str]]:
    """Return the plan of `serve`, and the variables that stay settings. Raises ConfigError and
    UsageError.
    """
    settings = dict(translated.variables)
    plan = parse_serve(_flags(settings))
    # The image has listeners of its own, and variables may give others.
    own = [pair for pair in plan.settings if pair[0] != "listeners"]
    if users := given_users():
        more = from_environment(settings).get(SCRAM_CREDENTIALS, "")
        own.append((SCRAM_CREDENTIALS, f"{more} {users}".strip()))
    topics = parse_topics(
        settings.pop("KAFKA_CREATE_TOPICS", ""),
        settings.pop("KAFKA_CREATE_TOPICS_SEPARATOR", ","),
    )
    config_file, overrides = _words_of_start(words)
    if config_file is None:
        config_file = next((path for path in PROPERTIES_FILES if Path(path).is_file()), None)
    if _has_zookeeper_inside(settings.get("KAFKA_ZOOKEEPER_CONNECT", "")):
        del settings["KAFKA_ZOOKEEPER_CONNECT"]
    file_settings = read_properties(config_file) if config_file else {}
    file_settings.update(from_environment(settings))
    file_settings.update(overrides)
    roles = [role.strip() for role in file_settings.get("process.roles", "broker").split(",")]
    if "broker" not in roles:
        raise ConfigError(
            f"process.roles={file_settings['process.roles']}: there is no controller to run apart, "
            "every minibroker has its own; leave this container out"
        )
    host = socket.gethostname()
    own += _defaults(file_settings, translated, plan, host)
    own += overrides
    whole = plan._replace(
        settings=tuple(own), topics=tuple(topics), config_file=config_file, host=host
    )
    return whole, settings


def _words_of_start(words: Sequence[str]) -> tuple[str | None, list[tuple[str, str]]]:
    """Return the file and the pairs of `kafka-server-start FILE --override KEY=VALUE`; None for a
    sample file of Kafka. Raises UsageError.
    """
    file, overrides = None, []
    remaining = iter(words)
    for word in remaining:
        if word == "-daemon":
            raise UsageError("kafka-server-start -daemon: a container ends with its first program")
        if word == "--override":
            key, equals, value = next(remaining, "").partition("=")
            if not equals:
                raise UsageError("kafka-server-start --override: expected KEY=VALUE")
            overrides.append((key, value))
        elif Path(word).is_file() or not Path(Path.cwd(), word).as_posix().startswith(_CONFIG_DIRS):
            file = word
    return file, overrides


def ready_lines(broker_id: int) -> tuple[str, ...]:
    """Return the log lines that say "clients succeed now", as Kafka with and without ZooKeeper."""
    return tuple(line.format(id=broker_id) for line in _READY_LINES)


def listener_to_ask(config: BrokerConfig) -> str:
    """Return HOST:PORT PROTOCOL for the health check: the listener, as it is bound, that asks
    least of a client.
    """
    listener = min(
        config.listeners,
        key=lambda listener_choice: _EASIEST.index(listener_choice.security_protocol),
    )
    return f"{listener.host}:{listener.port} {listener.security_protocol}"


def _flags(environment: Mapping[str, str]) -> list[str]:
    flags = [(flag, environment[name]) for name, flag in _FLAGS.items() if environment.get(name)]
    flags += [
        (flag, word) for name, flag in _USERS.items() for word in environment.get(name, "").split()
    ]
    return [*(f"{flag}={value}" for flag, value in flags), *_switches(environment)]


def _switches(environment: Mapping[str, str]) -> list[str]:
    """Return the flags that are on. Raises UsageError for a variable that is neither true nor
    false.
    """
    switches = []
    for name, flag in _SWITCHES.items():
        value = environment.get(name, "")
        if value.lower() not in ("", "true", "false"):
            raise UsageError(f"{name}={value}: expected true or false")
        if value.lower() == "true":
            switches.append(flag)
    return switches


def _defaults(
    environment: Mapping[str, str], translated: Translated, plan: ServePlan, host: str
) -> list[tuple[str, str]]:
    """Return the settings that the image has where the user sets none."""
    settings = []
    cluster_id = translated.variables.get("CLUSTER_ID", "")
    if cluster_id and "minibroker.cluster.id" not in environment:
        settings.append(("minibroker.cluster.id", cluster_id))
    if not {"log.dirs", "log.dir"} & environment.keys():
        settings.append(("log.dirs", translated.data_dir))
    if "zookeeper.connect" in environment and not {"broker.id", "node.id"} & environment.keys():
        settings.append(("broker.id", str(GENERATED_ID)))
    if {"listeners", "advertised.listeners"} & environment.keys():
        return settings
    if translated.listeners and not plan.users and plan.security is None:
        return [*settings, *translated.listeners.items()]
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


def _name_what_has_no_effect(config: BrokerConfig, translated: Translated) -> None:
    import logging  # noqa: PLC0415  configured by now

    logger = logging.getLogger("minibroker.container")
    for note in translated.notes:
        logger.warning("%s", note)
    options = options_without_effect(translated.variables.get("KAFKA_OPTS", ""), JAVA_PROPERTIES)
    if options:
        logger.warning("these options of KAFKA_OPTS have no effect: %s", ", ".join(options))
    quorum_keys = sorted(key for key in config.originals if key.startswith(_QUORUM_KEYS))
    if quorum_keys:
        logger.info("no effect, minibroker is its own controller: %s", ", ".join(quorum_keys))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
