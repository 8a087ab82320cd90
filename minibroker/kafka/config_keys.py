"""A configuration key: type, default, range, importance, and the parsing of its text.

`TypedSettings` reads settings as values of their keys' types: those of a broker
(`broker.config.settings`) and those of a client (`client.config`). A range has a short notation:

    notation      allowed are
    ""            all values of the type
    "1.."         numbers from 1
    "0..1"        numbers from 0 to 1, both included
    "-1|1..9"     -1, and numbers from 1 to 9
    "a|b"         these words (in a list: each item one of them)
    "~A|B"        these words in any case
    "non-empty"   everything but an empty text or list
    "version"     a Kafka release (`3.9`, `3.9-IV0`, `0.10.2.1`)
    "throttled"   `*`, or `partition:broker` pairs

Source: Kafka ConfigDef (types, trimming, the shape of its complaints).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_numbers import double_to_text, parse_double, parse_integer, trim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"

_INTEGER_BITS: Final = {"short": 16, "int": 32, "long": 64}
_LIST_SPACE: Final = " \t\n\x0b\f\r"
"""Space around the commas of a list: `\\s` of Java's patterns."""

Value: TypeAlias = "bool | int | float | str | list[str] | None"


class ConfigKey:
    """One key, constant after construction. A start makes some five hundred of them."""

    __slots__ = ("allowed", "default", "importance", "is_hidden", "name", "type", "update_mode")

    def __init__(  # noqa: PLR0917  the columns of a table
        self,
        name: str,
        value_type: str,
        default: str | None = None,
        allowed: str = "",
        importance: str = "medium",
        update_mode: str = CLUSTER_WIDE,
        note: str = "",
    ) -> None:
        """Take the columns of a row of `broker/config/key_rows.py`, in their order."""
        self.name = name
        self.type = value_type
        self.default = default
        """Text as Kafka prints it; None where Kafka has no value."""
        self.allowed = allowed
        self.importance = importance
        self.update_mode = update_mode
        self.is_hidden = note != ""
        """Accepted, but described only where it is set."""

    @property
    def is_sensitive(self) -> bool:
        return self.type == "password"

    def renamed(self, name: str) -> ConfigKey:
        """Return a key of the same type and limits, as a listener's prefix makes it."""
        return ConfigKey(name, self.type, allowed=self.allowed, importance=self.importance)


def invalid(name: str, value: object, why: str) -> ConfigError:
    """Return the complaint in Kafka's shape: tools and tests look for its beginning."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {why}")


def parse_value(key: ConfigKey, text: str | None) -> Value:
    """Return a text as the user gave it as a value of the key's type, inside its range.

    Raises ConfigError that names key, value and what is allowed. None stays None where the key
    has no range, as in Kafka.
    """
    if text is None:
        if key.allowed and key.allowed != "non-empty":
            raise invalid(key.name, "null", "Value must be non-null")
        return None
    value = _parse_type(key, text)
    if key.allowed:
        _check_allowed(key, value)
    return value


def default_value(key: ConfigKey) -> Value:
    """Return the default as a value. It is in range by construction, so nothing is checked."""
    return None if key.default is None else _parse_type(key, key.default)


def _parse_type(key: ConfigKey, text: str) -> Value:
    trimmed = trim(text)
    kind = key.type
    if kind in _INTEGER_BITS:
        return _parse_integer(key, text, trimmed)
    if kind == "boolean":
        word = trimmed.upper()
        if word not in ("TRUE", "FALSE"):
            raise invalid(key.name, text, "Expected value to be either true or false")
        return word == "TRUE"
    if kind == "list":
        return [item.strip(_LIST_SPACE) for item in trimmed.split(",")] if trimmed else []
    if kind == "double":
        try:
            return parse_double(trimmed)
        except ValueError:
            raise invalid(key.name, text, "Not a number of type DOUBLE") from None
    return trimmed


def _parse_integer(key: ConfigKey, text: str, trimmed: str) -> int:
    value = parse_integer(trimmed, _INTEGER_BITS[key.type])
    if value is not None:
        return value
    raise invalid(key.name, text, f"Not a number of type {key.type.upper()}")


def _check_allowed(key: ConfigKey, value: Value) -> None:
    check = _NAMED_CHECKS.get(key.allowed)
    if check is not None:
        check(key, value)
    elif ".." in key.allowed:
        _check_range(key, value)
    else:
        _check_words(key, value)


def _check_range(key: ConfigKey, value: Value) -> None:
    """Check against `low..high`, either end optional; single numbers before it are allowed."""
    *singles, span = key.allowed.split("|")
    low, high = span.split("..")
    number = float(value) if isinstance(value, (int, float)) else 0.0
    if singles and number in map(float, singles):
        return
    if singles and high and not float(low) <= number <= float(high):
        why = f"Value must be between {low} and {high} or equal to {' or '.join(singles)}"
        raise invalid(key.name, value, why)
    if low and number < float(low):
        extra = f" or equal to {' or '.join(singles)}" if singles else ""
        raise invalid(key.name, value, f"Value must be at least {low}{extra}")
    if high and number > float(high):
        raise invalid(key.name, value, f"Value must be no more than {high}")


def _check_words(key: ConfigKey, value: Value) -> None:
    any_case = key.allowed.startswith("~")
    words = key.allowed.lstrip("~").split("|")
    for item in value if isinstance(value, list) else [str(value)]:
        if (item.upper() if any_case else item) not in words:
            note = " (case insensitive)" if any_case else ""
            raise invalid(key.name, item, f"String must be one of{note}: {', '.join(words)}")


def _check_not_empty(key: ConfigKey, value: Value) -> None:
    if value in ("", []):
        raise invalid(key.name, value, "must not be empty")


def _check_version(key: ConfigKey, value: Value) -> None:
    """Check for a release 0.8.0 to 4.x, with or without `-IVn`; any bug-fix number will do."""
    import re  # noqa: PLC0415  for two keys that hardly anybody sets

    releases = r"0\.8\.[0-2]|0\.9\.0|(0\.10\.[0-2]|0\.11\.0|1\.[01]|2\.[0-8]|[34]\.\d)(-IV\d)?"
    if not re.fullmatch(rf"({releases})(\..*)?", str(value)):
        raise invalid(key.name, value, f"Version {value} is not a valid version")


def _check_throttled(key: ConfigKey, value: Value) -> None:
    items = value if isinstance(value, list) else []
    if "".join(items) == "*":
        return
    for item in items:
        partition, colon, broker = item.partition(":")
        if item and not (colon and partition.isdecimal() and broker.isdecimal()):
            raise invalid(
                key.name,
                f"[{', '.join(items)}]",
                f"{key.name} must be the literal '*' or a list of replicas in the following "
                "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )


_NAMED_CHECKS: Final[dict[str, Callable[[ConfigKey, Value], None]]] = {
    "non-empty": _check_not_empty,
    "version": _check_version,
    "throttled": _check_throttled,
}


def to_text(value: Value) -> str | None:
    """Return the text that Kafka prints for a value (`true`, `a,b`, `0.5`, `1.0E10`)."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float):
        return double_to_text(value)
    return str(value)


class TypedSettings:
    """Settings as texts, read as values of their keys' types. Constant after construction."""

    __slots__ = ("originals",)
    KEYS: ClassVar[Mapping[str, ConfigKey]] = {}
    """Name → key, of the keys that have a type, a range or a default."""

    def __init__(self, originals: dict[str, str]) -> None:
        self.originals = originals
        """Key → text, as the user gave it."""

    def get(self, name: str) -> Value:
        """Return the typed value of any key; of an unknown key the given text, or None."""
        key = self.KEYS.get(name)
        text = self.originals.get(name)
        if key is None:
            return text
        return parse_value(key, text) if text is not None else default_value(key)

    def integer(self, name: str) -> int:
        """Return a whole number that has a default. For keys without an attribute."""
        value = self.get(name)
        assert isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        """Return a fraction that has a default."""
        value = self.get(name)
        assert isinstance(value, (int, float)), name
        return float(value)

    def boolean(self, name: str) -> bool:
        """Return a switch."""
        return self.get(name) is True

    def text(self, name: str) -> str | None:
        """Return a text, None where neither the user nor Kafka gives one."""
        value = self.get(name)
        return None if value is None else str(value)

    def words(self, name: str) -> list[str]:
        """Return a list, empty where there is none."""
        value = self.get(name)
        return value if isinstance(value, list) else []

    def first_given(self, *names_and_factors: tuple[str, int]) -> int:
        """Return the first value that several keys have, times its factor to the smallest unit."""
        for name, factor in names_and_factors:
            value = self.get(name)
            if isinstance(value, int):
                return value * factor
        raise AssertionError(names_and_factors)
