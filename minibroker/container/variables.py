"""The variables of a container, whichever image they were written for, as those of apache/kafka.

    os.environ ─► translate ─► variables of apache/kafka ─► launch.arrange
                            └► sentences for the log: what has no effect, and why

bitnami's and wurstmeister's variables are known by names that no other image has.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.container import old_addresses
from minibroker.container.secrets import put_secrets
from minibroker.container.without_effect import is_named, sentence, without_effect
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA_DIR: Final = "/var/lib/kafka/data"
BITNAMI_DATA_DIR: Final = "/bitnami/kafka/data"
_BITNAMI_PREFIX: Final = "KAFKA_CFG_"
_BITNAMI: Final = (
    "KAFKA_CLIENT_USERS",
    "KAFKA_ENABLE_KRAFT",
    "KAFKA_KRAFT_CLUSTER_ID",
)
"""Variables that only bitnami's image has: one of them is enough to know it."""
_BITNAMI_VOLUMES: Final = ("/bitnami", "/bitnami/kafka")
_OLD_VOLUME: Final = "/kafka"
"""Directory at which users of wurstmeister's image mount a volume."""
_LOG_LEVEL: Final = "KAFKA_LOG4J_ROOT_LOGLEVEL"
_LOG_LEVELS: Final = {
    "ALL": "debug",
    "TRACE": "debug",
    "DEBUG": "debug",
    "INFO": "info",
    "WARN": "warning",
    "ERROR": "error",
    "FATAL": "error",
    "OFF": "error",
}


class Translated(NamedTuple):
    """The variables, and what the image adds where they say nothing."""

    variables: dict[str, str]
    data_dir: str
    listeners: dict[str, str]
    """Settings of listeners for a container without any; empty: those of this image."""
    notes: list[str]
    """Sentences for the log."""


def translate(environment: Mapping[str, str]) -> Translated:
    """Return the variables as apache/kafka has them. Raises ConfigError.

    An empty variable counts as missing, as in compose files with `${X:-}`. Commands of variables
    run here.
    """
    variables = {name: value for name, value in environment.items() if value}
    notes: list[str] = []
    by_reason = without_effect(variables)
    if by_reason:
        notes.append(f"these variables have no effect: {sentence(by_reason)}")
    are_bitnamis = is_bitnami(variables)
    variables = {name: value for name, value in variables.items() if not is_named(name)}
    old_addresses.put_outputs(variables)
    if are_bitnamis:
        from minibroker.container import bitnami  # noqa: PLC0415  other containers do without

        notes += bitnami.put_bitnami(variables)
        data_dir, listeners = BITNAMI_DATA_DIR, {"listeners": "PLAINTEXT://:9092"}
    else:
        data_dir, listeners = _data_dir(), {}
    if "KAFKA_ADVERTISED_PORT" not in variables and os.path.exists("/var/run/docker.sock"):  # noqa: PTH110  pathlib costs 3 ms
        notes += _unknown_port(variables)
    notes += old_addresses.put_listeners(variables)
    put_secrets(variables)
    level = variables.pop(_LOG_LEVEL, "")
    if level:
        variables.setdefault("MINIBROKER_LOG_LEVEL", _log_level(level))
    return Translated(variables, data_dir, listeners, notes)


def is_bitnami(variables: Mapping[str, str]) -> bool:
    """Return whether the variables were written for bitnami's image."""
    return any(name in variables for name in _BITNAMI) or any(
        name.startswith(_BITNAMI_PREFIX) for name in variables
    )


def _unknown_port(variables: Mapping[str, str]) -> list[str]:
    """Return a sentence where wurstmeister's image asks Docker for the published port."""
    if "KAFKA_ADVERTISED_HOST_NAME" not in variables:
        return []
    return [
        "Docker is not asked for the published port: clients are told 9092; "
        "KAFKA_ADVERTISED_PORT says another one"
    ]


def _data_dir() -> str:
    """Return the directory of the volume that the user has mounted, else that of this image."""
    if any(map(os.path.ismount, _BITNAMI_VOLUMES)):
        return BITNAMI_DATA_DIR
    if os.path.ismount(_OLD_VOLUME):
        return f"{_OLD_VOLUME}/kafka-logs-{os.uname().nodename}"
    return DATA_DIR


def _log_level(level: str) -> str:
    log_level = _LOG_LEVELS.get(level.upper().partition(",")[0].strip())
    if log_level is None:
        raise ConfigError(f"{_LOG_LEVEL}={level}: expected one of {', '.join(_LOG_LEVELS)}")
    return log_level
