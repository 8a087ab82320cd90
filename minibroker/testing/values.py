"""From keys, values and headers as a test writes them to the bytes of a record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minibroker.kafka.records.record import Header

Value = str | bytes | bytearray | memoryview | Mapping[str, Any] | None
"""The types of a value: text is UTF-8, a mapping is a JSON object, None is a tombstone."""
Headers = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


def to_bytes(value: Value) -> bytes | None:
    """Return the bytes of a key or a value. Raises TypeError, which names the allowed types."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return json.dumps(value).encode()
    raise TypeError(
        f"{value!r:.100} is no key or value of a record: expected str, bytes, a dict (for JSON)"
        " or None"
    )


def to_headers(headers: Headers) -> tuple[Header, ...]:
    """Return the headers in order; text is UTF-8."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, to_bytes(value)) for name, value in pairs)


def to_timestamp(timestamp: int | datetime | None) -> int | None:
    """Return milliseconds since the epoch. A datetime without a zone is local time, as in Python.

    None stays None. Raises TypeError.
    """
    if isinstance(timestamp, datetime):
        return round(timestamp.timestamp() * 1000)
    if timestamp is None or (isinstance(timestamp, int) and not isinstance(timestamp, bool)):
        return timestamp
    raise TypeError(f"timestamp {timestamp!r}: expected milliseconds (int) or a datetime")


def setting_text(value: str | int | bool) -> str:
    """Return a setting as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
