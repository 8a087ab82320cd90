"""The fields of a message by the names that Kafka's JSON has, and a message made of them.

`group_id` is `groupId`. A field that the version does not have is left out, and so is a tagged
field with its default value. `dump-log` and the trace write JSON of these fields, each in its form.

Source: Kafka's generated …JsonConverter classes.
"""

from __future__ import annotations

import base64
import binascii
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.ids import topic_id_from_text
from minibroker.kafka.protocol.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTES: Final = frozenset({"bytes", "records"})
_DEPTH_MAX: Final = 32
"""Structs in structs; the deepest message has seven."""


def fields_of(message: Message, version: int) -> Iterator[tuple[str, str, Any]]:
    """Yield name in Kafka's spelling, type and value of each field of `version`, in order."""
    for name, kind, first, last, is_tagged in message.JSON_FIELDS:
        if not first <= version <= last:
            continue
        value = getattr(message, name)
        if not is_tagged or value != getattr(type(message)(), name):
            yield camel_case(name), kind, value


def from_fields(message_class: type[Message], content: object, version: int) -> Message:
    """Return the message of a JSON object; a field that is left out has its default value.

    Bytes are in base64, ids in URL-safe base64 without padding. Raises ProtocolError for a name
    that the version does not have, and for a value that its type does not allow.
    """
    return _struct(message_class, content, version, 0)


def _struct(message_class: type[Message], content: object, version: int, depth: int) -> Message:
    name = message_class.__name__
    if not isinstance(content, dict) or depth > _DEPTH_MAX:
        raise ProtocolError(f"{name}: {_excerpt(content)} is no object of fields")
    message = message_class()
    fields = {
        camel_case(field): (field, kind)
        for field, kind, first, last, _ in message_class.JSON_FIELDS
        if first <= version <= last
    }
    for spelling, value in content.items():
        if spelling not in fields:
            raise ProtocolError(f"{name} version {version} has no field {_excerpt(spelling)}")
        field, kind = fields[spelling]
        setattr(message, field, _value(message_class, kind, value, version, depth))
    return message


def _value(
    message_class: type[Message], kind: str, value: object, version: int, depth: int
) -> object:
    """Return the Python value of a JSON value."""
    if isinstance(value, list):
        return [_value(message_class, kind, item, version, depth) for item in value]
    if value is None:
        return None
    if kind[0].isupper():
        struct_class: type[Message] = getattr(sys.modules[message_class.__module__], kind)
        return _struct(struct_class, value, version, depth + 1)
    try:
        return _plain(kind, value)
    except (ValueError, binascii.Error):
        place = f"{message_class.__name__}: {_excerpt(value)}"
        raise ProtocolError(f"{place} is no {kind}") from None


def _plain(kind: str, value: object) -> object:
    """Return a value that is no struct and no list. Raises ValueError."""
    if kind == "float64":
        if isinstance(value, int | float | str):
            return float(value)
    elif kind == "bool":
        if isinstance(value, bool):
            return value
    elif isinstance(value, str):
        if kind == "string":
            return value
        if kind == "uuid":
            return topic_id_from_text(value)
        if kind in _BYTES:
            return base64.b64decode(value, validate=True)
    elif isinstance(value, int) and not isinstance(value, bool) and _is_number(kind):
        return value
    raise ValueError(kind)


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint")) or kind == "error_code"


def _excerpt(value: object) -> str:
    """Return a value for an error message, at most 60 characters."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


@cache
def camel_case(name: str) -> str:
    """Return the name in Kafka's spelling: `group_id` → `groupId`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
