"""The items of a seed: topics, records and committed offsets, checked field by field.

    plain fields of a line, or of a part of a YAML file ─item_of─► Topic | SeedRecord | SeedOffset

A record's key and value are a text (UTF-8), other JSON (written compact, in the order of its
fields), bytes (`key_base64`, `value_base64`, or YAML's `!!binary`), or null. An unknown field, a
field that is missing and a value of a wrong type are a SeedError, which names file and line.
"""

from __future__ import annotations

import base64
import difflib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.cli.errors import UsageError
from minibroker.cli.moments import moment_of
from minibroker.seeds.errors import SeedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.kafka.records.record import Header
    from minibroker.seeds.errors import LinePlace

    Fields = Mapping[str, Any]

CREATE: Final = "create"
TOPIC: Final = "topic"
GROUP: Final = "group"
BASE64: Final = "base64"

PARTITIONS_MAX: Final = 100_000
"""Partitions of a topic: more is a mistake in a seed, and would take the broker's memory."""
_INT16_MAX: Final = 2**15 - 1
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_NO_TIMESTAMP: Final = -1

_OF_TOPIC: Final = (CREATE, "partitions", "replicas", "configs")
_OF_RECORD: Final = (
    *(TOPIC, "partition", "offset", "timestamp"),
    *("key", "key_base64", "value", "value_base64", "headers"),
)
_OF_GROUP: Final = (GROUP, TOPIC, "partition", "offset")

_BYTES: Final = "a text, other JSON, or null"
_MOMENT: Final = (
    "milliseconds since the epoch, a text such as 2026-11-24T17:30+01:00, or one that is relative "
    "to the broker's clock, such as -1h"
)
_HEADERS: Final = (
    'an object of names and texts, or an array of pairs such as ["trace", "abc"]; a value is a '
    'text, null or {"base64": "AAE="}'
)


class Topic(NamedTuple):
    """A topic to make."""

    name: str
    partitions: int
    """-1: the broker's `num.partitions`."""
    replicas: int
    """0: the broker's `default.replication.factor`."""
    configs: dict[str, str]
    place: LinePlace


class SeedRecord(NamedTuple):
    """A record to write."""

    topic: str
    partition: int | None
    """None: the partition that Java's producer chooses for the key, without a key the first."""
    timestamp: int | None
    """Milliseconds since the epoch, -1 for none; None: the time of the load."""
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    place: LinePlace


class SeedOffset(NamedTuple):
    """A committed offset of a group."""

    group: str
    topic: str
    partition: int
    offset: int
    place: LinePlace


Item = Topic | SeedRecord | SeedOffset


def item_of(fields: Fields, place: LinePlace, now_ms: int) -> Item:
    """Return the item of these fields.

    Args:
        fields: of a line of JSON.
        now_ms: the broker's time, for relative timestamps.

    Raises SeedError.
    """
    if CREATE in fields:
        return topic_of(fields, place)
    if GROUP in fields:
        return group_offset_of(fields, place)
    if TOPIC in fields:
        return record_of(fields, place, now_ms)
    raise SeedError(
        f"{place}: {sorted(fields)} is none of a seed's lines: expected a topic (create, "
        "partitions), a record (topic, key, value) or an offset (group, topic, partition, offset)"
    )


def topic_of(fields: Fields, place: LinePlace) -> Topic:
    """Return the topic. Raises SeedError."""
    _check_names(fields, _OF_TOPIC, place)
    configs = fields.get("configs", {})
    if not isinstance(configs, dict):
        raise place.refuse("configs", configs, "an object of settings and their values")
    return Topic(
        _text(fields, CREATE, place),
        _number(fields, "partitions", place, 1, PARTITIONS_MAX) or -1,
        _number(fields, "replicas", place, 1, _INT16_MAX) or 0,
        {name: _setting(name, value, place) for name, value in configs.items()},
        place,
    )


def record_of(fields: Fields, place: LinePlace, now_ms: int) -> SeedRecord:
    """Return the record; `now_ms` as of `item_of`. Raises SeedError."""
    if not fields.keys() <= _RECORD_NAMES:
        _check_names(fields, _OF_RECORD, place)
    if "value" not in fields and "value_base64" not in fields:
        raise SeedError(
            f"{place}: a record has no value: expected value or value_base64 (null: a tombstone)"
        )
    topic = fields.get(TOPIC)
    if not topic or topic.__class__ is not str:
        topic = _text(fields, TOPIC, place)
    _number(fields, "offset", place, 0, _INT64_MAX)
    headers = fields.get("headers")
    when = fields.get("timestamp")
    if when.__class__ is not int or not _NO_TIMESTAMP <= when <= _INT64_MAX:
        when = _moment(when, place, now_ms)
    return SeedRecord(
        topic,
        _number(fields, "partition", place, 0, _INT32_MAX),
        when,
        _bytes(fields, "key", "key_base64", place),
        _bytes(fields, "value", "value_base64", place),
        _headers(headers, place) if headers else (),
        place,
    )


def group_offset_of(fields: Fields, place: LinePlace) -> SeedOffset:
    """Return the committed offset. Raises SeedError."""
    _check_names(fields, _OF_GROUP, place)
    numbers = {}
    for name, largest in (("partition", _INT32_MAX), ("offset", _INT64_MAX)):
        number = _number(fields, name, place, 0, largest)
        if number is None:
            raise SeedError(f"{place}: an offset of a group has no {name}: expected a number")
        numbers[name] = number
    return SeedOffset(
        _text(fields, GROUP, place),
        _text(fields, TOPIC, place),
        numbers["partition"],
        numbers["offset"],
        place,
    )


_RECORD_NAMES: Final = frozenset(_OF_RECORD)


def _check_names(fields: Fields, names: tuple[str, ...], place: LinePlace) -> None:
    """Raise SeedError for a field that is none of `names`."""
    for name in fields:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise SeedError(
                f"{place}: {str(name)[:100]!r} is no field here{hint}: expected "
                f"{', '.join(names[:-1])} or {names[-1]}"
            )


def _text(fields: Fields, name: str, place: LinePlace) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise place.refuse(name, value, "a name")
    return value


def _number(fields: Fields, name: str, place: LinePlace, least: int, largest: int) -> int | None:
    """Return the number, None where the field is missing or null. Raises SeedError."""
    value = fields.get(name)
    if value is None:
        return None
    if value.__class__ is int and least <= value <= largest:
        return int(value)
    raise place.refuse(name, value, f"a whole number from {least} to {largest}")


def _setting(name: str, value: Any, place: LinePlace) -> str:
    """Return the value of a setting as Kafka writes it. Raises SeedError."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise place.refuse(f"configs.{name}", value, "a text, a number, true or false")


def _moment(value: Any, place: LinePlace, now_ms: int) -> int | None:
    """Return the milliseconds of a timestamp, None for none. Raises SeedError."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise place.refuse("timestamp", value, _MOMENT)
    try:
        return moment_of(value, now_ms).ms
    except UsageError:
        raise place.refuse("timestamp", value, _MOMENT) from None


def _bytes(fields: Fields, name: str, encoded_name: str, place: LinePlace) -> bytes | None:
    """Return a key or a value. Raises SeedError."""
    if encoded_name in fields:
        if name in fields:
            raise SeedError(
                f"{place}: a record has {name} and {encoded_name}: expected one of them"
            )
        return _decoded(fields[encoded_name], encoded_name, place)
    value = fields.get(name)
    if value.__class__ is str:
        try:
            return bytes(value.encode())
        except UnicodeEncodeError:
            raise place.refuse(name, value, "a text of Unicode characters") from None
    return None if value is None else _json_bytes(value, name, place)


def _json_bytes(value: Any, name: str, place: LinePlace) -> bytes:
    """Return a value that is no text: bytes as they are, anything else as compact JSON."""
    if isinstance(value, bytes):
        return value
    try:
        return compact_json(value)
    except (TypeError, ValueError, RecursionError):  # bytes inside of a value, NaN, surrogates
        raise place.refuse(name, value, _BYTES) from None


_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_encode: Final[Callable[[Any], str]] = _ENCODER.encode


def compact_json(value: Any) -> bytes:
    """Return compact JSON in UTF-8. Raises TypeError, ValueError, RecursionError."""
    return _encode(value).encode()


def _decoded(value: Any, name: str, place: LinePlace) -> bytes | None:
    """Return the bytes of a text of base64, null for null. Raises SeedError."""
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise place.refuse(name, value, "bytes in base64, such as AAE=, or null") from None


def _headers(value: Any, place: LinePlace) -> tuple[Header, ...]:
    """Return the headers in their order. Raises SeedError."""
    if isinstance(value, dict):
        pairs: list[Any] = list(map(list, value.items()))
    elif isinstance(value, list):
        pairs = value
    else:
        raise place.refuse("headers", value, _HEADERS)
    headers = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise place.refuse("headers", pair, _HEADERS)
        try:
            pair[0].encode()
            headers.append((pair[0], _header_value(pair[1], place)))
        except UnicodeEncodeError:
            raise place.refuse("headers", pair, "texts of Unicode characters") from None
    return tuple(headers)


def _header_value(value: Any, place: LinePlace) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {BASE64}:
        return _decoded(value[BASE64], "headers", place)
    raise place.refuse("headers", value, _HEADERS)
