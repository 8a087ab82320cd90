"""A stored record as JSON, in the form of Kafka's generated converters.

Names in Kafka's spelling (`group_id` → `groupId`), bytes in base64, ids in URL-safe base64 without
padding, one line. A field that the version does not have is left out, and so is a tagged field with
its default value. The generated classes say both in `JSON_FIELDS`.

Source: Kafka's generated …JsonConverter classes; Jackson's ObjectNode.toString.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Final

from minibroker.kafka.ids import TopicId, topic_id_to_text
from minibroker.kafka.java_numbers import double_to_text
from minibroker.kafka.protocol.message import Message

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

_CONTROL: Final = re.compile(r"\\u00[0-9a-f]{2}")


class RawNumber(str):
    """A number whose JSON is written exactly like this."""

    __slots__ = ()


def to_json(message: Message, version: int) -> dict[str, Json]:
    """Return the fields that `message` has in `version`, in order."""
    content: dict[str, Json] = {}
    for name, kind, first, last, is_tagged in message.JSON_FIELDS:
        value = getattr(message, name)
        if not first <= version <= last:
            continue
        if not is_tagged or value != getattr(type(message)(), name):
            content[_camel(name)] = _value(kind, value, version)
    return content


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


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
