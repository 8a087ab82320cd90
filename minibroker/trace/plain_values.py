"""A message as plain values: what JSON, the full text and the page show of its fields.

Names are Kafka's (`groupId`), bytes are in base64, ids in URL-safe base64 without padding.
Passwords and keys are not in it: a trace is sent to others, and stands in reports of failed tests.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.ids import TopicId, topic_id_to_text
from minibroker.kafka.protocol.json_form import fields_of
from minibroker.kafka.protocol.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, "Plain"] | list["Plain"] | str | int | float | bool | None

HIDDEN: Final = "[hidden]"
"""In place of a password or a key; as bytes or text it is read back like any other text."""
_SECRET_FIELDS: Final = frozenset({"authBytes", "hmac", "salt", "saltedPassword"})
_SECRET_CONFIGS: Final = ("password", "secret", "jaas.config", "keystore.key")
"""Ends of the names of configurations whose value is a password or a key."""
_BYTES: Final = frozenset({"bytes", "records"})


def to_plain(
    message: Message, version: int, of_bytes: Callable[[str, bytes], Plain] | None = None
) -> dict[str, Plain]:
    """Return the fields of a version as plain values.

    Args:
        message: a request, an answer or a struct.
        version: the version that it was sent in.
        of_bytes: returns another value for bytes, from the field's name and them.
    """
    content: dict[str, Plain] = {}
    for name, kind, value in fields_of(message, version):
        if name in _SECRET_FIELDS and value:
            content[name] = HIDDEN
        elif of_bytes is not None and kind in _BYTES and value:
            content[name] = of_bytes(name, value)
        else:
            content[name] = _value(kind, value, version, of_bytes)
    if _is_secret_config(content):
        content["value"] = HIDDEN
    return content


def _is_secret_config(content: dict[str, Plain]) -> bool:
    """Return whether the struct is a configuration with a value that nobody should see."""
    name = content.get("name")
    return (
        isinstance(name, str)
        and bool(content.get("value"))
        and (content.get("isSensitive") is True or name.lower().endswith(_SECRET_CONFIGS))
    )


def _value(
    kind: str, value: Any, version: int, of_bytes: Callable[[str, bytes], Plain] | None
) -> Plain:
    if isinstance(value, list):
        return [_value(kind, item, version, of_bytes) for item in value]
    if isinstance(value, Message):
        return to_plain(value, version, of_bytes)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        if kind == "uuid":
            return topic_id_to_text(TopicId(bytes(value)))
        return base64.b64encode(value).decode("ascii")
    plain: Plain = value
    return plain
