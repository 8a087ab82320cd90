"""A stored record as JSON, in the form of Kafka's generated converters.

Fields as `json_form` has them, bytes in base64, ids in URL-safe base64 without padding, one line.

Source: Kafka's generated …JsonConverter classes; Jackson's ObjectNode.toString.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Final

from minibroker.kafka.ids import TopicId, topic_id_to_text
from minibroker.kafka.java_numbers import double_to_text
from minibroker.kafka.protocol.json_form import fields_of
from minibroker.kafka.protocol.message import Message

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

_CONTROL: Final = re.compile(r"\\u00[0-9a-f]{2}")


class RawNumber(str):
    """A number whose JSON is written exactly like this."""

    __slots__ = ()


def to_json(message: Message, version: int) -> dict[str, Json]:
    """Return the fields that `message` has in `version`, in order."""
    return {name: _value(kind, value, version) for name, kind, value in fields_of(message, version)}


def to_line(content: Json) -> str:
    """Return compact JSON like Jackson's: not only ASCII, and `\u001f` with capital digits."""
    if isinstance(content, RawNumber):
        return content
    if isinstance(content, dict):
        inner = ",".join(f"{to_line(name)}:{to_line(value)}" for name, value in content.items())
        return "{" + inner + "}"
    if isinstance(content, list):
        return "[" + ",".join(map(to_line, content)) + "]"
    line = json.dumps(content, ensure_ascii=False)
    return _CONTROL.sub(lambda match: "\\u" + match[0][2:].upper(), line)


def _value(kind: str, value: object, version: int) -> Json:
    if isinstance(value, list):
        return [_value(kind, item, version) for item in value]
    if isinstance(value, Message):
        return to_json(value, version)
    if isinstance(value, bytes):
        if kind == "uuid":
            return topic_id_to_text(TopicId(value))
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float):
        return RawNumber(double_to_text(value))
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"a {kind} is a {type(value).__name__}")
