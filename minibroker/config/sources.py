"""The sources of settings: a properties file, KAFKA_… variables, `--set`. The later wins.

The file has Java's properties syntax. Variables are mapped as the apache/kafka image maps them:
`KAFKA_LOG_DIRS` → `log.dirs`, `__` → `_`, `___` → `-`; as there, `listeners` follows from
`KAFKA_ADVERTISED_LISTENERS` (every host replaced by 0.0.0.0) when nothing else gives it. Of
`KAFKA_OPTS`, Java's options, the properties count that decide who gets in.

Source: java.util.Properties; Kafka KafkaDockerWrapper and docker/resources/common-scripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
_JAVA_PROPERTIES: Final = ("org.apache.kafka.sasl.oauthbearer.allowed.urls",)
"""Properties of Java that decide who gets in: `-Dname=value` in KAFKA_OPTS."""
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


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
    found: dict[str, str] = {}
    for variable, value in environment.items():
        if variable.startswith(_PREFIX) and variable not in _NOT_CONFIGURATION:
            dotted = variable[len(_PREFIX) :].lower().replace("_", ".")
            found[dotted.replace("...", "-").replace("..", "_")] = value
    if not found.get("listeners", "-"):
        del found["listeners"]  # the image takes an empty KAFKA_LISTENERS for none
    return found | _java_properties(environment.get(_JAVA_OPTIONS, ""))


def _java_properties(options: str) -> dict[str, str]:
    """Return the properties of `_JAVA_PROPERTIES` in Java's options: `-Dname=value`."""
    found: dict[str, str] = {}
    for option in options.split():
        name, _, value = option.removeprefix("-D").partition("=")
        if option.startswith("-D") and name in _JAVA_PROPERTIES:
            found[name] = value.strip("\"'")
    return found


def _bind_everywhere(advertised: str) -> str:
    parts = []
    for item in advertised.split(","):
        name, separator, address = item.partition("://")
        parts.append(f"{name}{separator}0.0.0.0:{address.rpartition(':')[2]}")
    return ",".join(parts)


def read_properties(path: str) -> dict[str, str]:
    """Return key → text of a properties file (ISO 8859-1, as Java reads it). Raises ConfigError."""
    try:
        with open(path, encoding="iso-8859-1") as file:  # noqa: PTH123  pathlib costs 3 ms here
            return parse_properties(file.read())
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return key → text of Java properties text; of equal keys the last one holds.

    Raises ValueError on a broken `\\uXXXX`.
    """
    return dict(_split(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    r"""Yield the lines without comments and blanks; a line that ends in an odd number of `\` goes
    on.
    """
    pending = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        content = line.lstrip(" \t\f")
        if not pending and (not content or content[0] in "#!"):
            continue
        backslashes = len(content) - len(content.rstrip("\\"))
        if backslashes % 2:
            pending += content[:-1]
            continue
        yield pending + content
        pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """Return key and value. A key ends at the first unescaped `=`, `:` or blank; blanks around the
    separator go.
    """
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(" \t\f")
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(" \t\f")
    return _unescape(line[:end]), _unescape(value)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                digits = text[position : position + 4]
                if len(digits) != 4 or not all(d in "0123456789abcdefABCDEF" for d in digits):
                    raise ValueError(f"\\u{digits} is not \\u and four hexadecimal digits")
                char = chr(int(digits, 16))
                position += 4
            else:
                char = _ESCAPES.get(char, char)
        elif char == "\\":
            break
        characters.append(char)
    return "".join(characters)
