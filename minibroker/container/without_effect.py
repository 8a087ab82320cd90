"""Variables of other images that change nothing here, each with its reason.

`launch` names those that are set in one warning, so that none is lost in silence. A variable that
decides who gets in is not here: it acts, or ends the start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_JAVA: Final = "no Java runs here"
_JMX: Final = "there is no JMX; MINIBROKER_CONTROL=0.0.0.0:9644 has the metrics at /metrics"
_LOGGERS: Final = "MINIBROKER_LOG_LEVEL sets the level of the log"
_CONFLUENT: Final = "it is of Confluent's own programs, which are not in this image"
_QUORUM: Final = "minibroker is its own controller"
_CLIENTS: Final = "it is a setting of clients"

_REASONS: Final = (
    ("(KAFKA_)?(HEAP_OPTS|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS)|JAVA_TOOL_OPTIONS", _JAVA),
    ("EXTRA_ARGS|KAFKA_DEBUG|CLASSPATH", _JAVA),
    ("(KAFKA_)?JMX_.*", _JMX),
    ("KAFKA_LOG4J_(OPTS|LOGGERS)|KAFKA_TOOLS_LOG4J_LOGLEVEL|LOG4J_.*", _LOGGERS),
    ("(KAFKA_)?CONFLUENT_.*|KAFKA_REST_.*", _CONFLUENT),
    (
        "KAFKA_(ENABLE_KRAFT|INITIAL_CONTROLLERS|SKIP_KRAFT_STORAGE_INIT|CONTROLLER_USER"
        "|CONTROLLER_PASSWORD)",
        _QUORUM,
    ),
    ("KAFKA_(CFG_)?MAX_(PARTITION_FETCH_BYTES|REQUEST_SIZE)", _CLIENTS),
    ("KAFKA_CLIENT_(LISTENER|LISTENER_NAME|SASL_MECHANISM)", _CLIENTS),
    ("KAFKA_ZOOKEEPER_(USER|PASSWORD|TLS_.*)", "minibroker does not log in at ZooKeeper"),
    ("ZOOKEEPER_SASL_ENABLED", "minibroker does not log in at ZooKeeper"),
    ("CUSTOM_INIT_SCRIPT", "no file is written that it could change; set the variables"),
    ("START_TIMEOUT", "the topics are made before the broker serves"),
    ("DOCKER_API_VERSION", "Docker is not asked; KAFKA_ADVERTISED_LISTENERS says the address"),
    ("KAFKA_PORT_NUMBER|KAFKA_CFG_PORT", "KAFKA_CFG_LISTENERS says the port"),
    ("KAFKA_(MOUNTED_CONF_DIR|DATA_DIRS)", "the directory is not moved; KAFKA_LOG_DIRS moves data"),
)
_COMPILED: Final = tuple((re.compile(pattern), reason) for pattern, reason in _REASONS)


def without_effect(variables: Iterable[str]) -> dict[str, list[str]]:
    """Return reason → the variables that have no effect for it, in their order."""
    by_reason: dict[str, list[str]] = {}
    for variable in sorted(variables):
        for pattern, reason in _COMPILED:
            if pattern.fullmatch(variable):
                by_reason.setdefault(reason, []).append(variable)
                break
    return by_reason


def is_named(variable: str) -> bool:
    """Return whether `without_effect` names the variable."""
    return any(pattern.fullmatch(variable) for pattern, _ in _COMPILED)


def options_without_effect(java_options: str, served: Iterable[str]) -> list[str]:
    """Return the options of `KAFKA_OPTS` that change nothing, without their values.

    `served`: names of properties that act.
    """
    acting = {f"-D{name}" for name in served}
    names = [option.partition("=")[0] for option in java_options.split()]
    return [name for name in names if name.startswith("-") and name not in acting]


def sentence(by_reason: Mapping[str, list[str]]) -> str:
    """Return the warning's text."""
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())
