"""The sources of settings: a properties file, KAFKA_… variables, `--set`. The later wins.

The file has Java's properties syntax. Variables are mapped as the apache/kafka image maps them:
`KAFKA_LOG_DIRS` → `log.dirs`, `__` → `_`, `___` → `-`; as there, `listeners` follows from
`KAFKA_ADVERTISED_LISTENERS` (every host replaced by 0.0.0.0) when nothing else gives it. Of
`KAFKA_OPTS`, Java's options, the properties count that decide who gets in.

Source: java.util.Properties; Kafka KafkaDockerWrapper and docker/resources/common-scripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PREFIX: Final = "KAFKA_"
# Variables of the image's own start script and of Java: not configuration of the broker.
_NOT_CONFIGURATION: Final = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HOME",
        "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    }
)
_JAVA_OPTIONS: Final = "KAFKA_OPTS"
JAVA_PROPERTIES: Final = (
    "java.security.auth.login.config",
    "java.security.krb5.conf",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls",
)
"""Properties of Java that decide who gets in: `-Dname=value` in KAFKA_OPTS."""


def gather(
    file_settings: Mapping[str, str],
    environment: Mapping[str, str],
    settings: Sequence[tuple[str, str]],
) -> dict[str, str]:
    """Return key → text of all sources, each value that of the strongest source."""
    gathered = {**file_settings, **from_environment(environment)}
    if "listeners" not in gathered and environment.get("KAFKA_ADVERTISED_LISTENERS"):
        gathered["listeners"] = _bind_everywhere(environment["KAFKA_ADVERTISED_LISTENERS"])
    gathered.update(settings)
    return gathered


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return key → text of the KAFKA_… variables."""
    settings: dict[str, str] = {}
    for variable, value in environment.items():
        if variable.startswith(_PREFIX) and variable not in _NOT_CONFIGURATION:
            dotted = variable[len(_PREFIX) :].lower().replace("_", ".")
            settings[dotted.replace("...", "-").replace("..", "_")] = value
    if not settings.get("listeners", "-"):
        del settings["listeners"]  # the image takes an empty KAFKA_LISTENERS for none
    return settings | _java_properties(environment.get(_JAVA_OPTIONS, ""))


def _java_properties(options: str) -> dict[str, str]:
    """Return the properties of `JAVA_PROPERTIES` in Java's options: `-Dname=value`."""
    properties: dict[str, str] = {}
    for option in options.split():
        name, _, value = option.removeprefix("-D").partition("=")
        if option.startswith("-D") and name in JAVA_PROPERTIES:
            properties[name] = value.strip("\"'")
    return properties


def _bind_everywhere(advertised: str) -> str:
    parts = []
    for item in advertised.split(","):
        name, separator, address = item.partition("://")
        parts.append(f"{name}{separator}0.0.0.0:{address.rpartition(':')[2]}")
    return ",".join(parts)
