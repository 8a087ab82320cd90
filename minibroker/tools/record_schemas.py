"""Schemas in one line for records that this broker never writes, for `dump-log`.

A schema names the fields in their order, as Kafka's JSON shows them:

    brokerId:int32 rack:string? logDirs:[]uuid@3#0 endPoints:[]{name:string port:uint16}

| sign | the field                                                                           |
|------|-------------------------------------------------------------------------------------|
| `[]` | is a list                                                                           |
| `{}` | is a struct                                                                         |
| `?`  | may be null                                                                         |
| `@n` | is there from version n on                                                          |
| `#n` | is tagged with n: shown only where it does not have its default                     |
| `=v` | has another default than zero, nothing, or (`?`) null: a number                     |

All are flexible (compact lengths, tagged fields) unless a schema says otherwise. No classes are
generated for these records, because the tools only show them.

Source: Kafka's message definitions, and its generated …JsonConverter classes.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.config.definition import to_text
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.ids import TopicId, topic_id_to_text
from minibroker.kafka.protocol.primitives import Reader
from minibroker.tools.stored_json import Json, to_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.kafka.protocol.primitives import Buffer

_FIELD: Final = re.compile(r"(?P<name>\w+):(?P<list>\[\])?(?:(?P<type>\w+)|(?P<open>\{))")
_SIGNS: Final = re.compile(
    r"(?P<null>\?)?(?:@(?P<since>\d+))?(?:#(?P<tag>\d+))?(?:=(?P<default>-?\d+))?"
)


class RawNumber(str):
    """A number whose JSON is written exactly like this."""

    __slots__ = ()


class Field(NamedTuple):
    """A field of a schema; `fields` is the content of a struct, else None."""

    name: str
    type: str
    fields: tuple[Field, ...] | None
    is_list: bool
    is_nullable: bool
    since: int
    tag: int | None
    default: Json


class Schema:
    """Layout of one kind of record in the versions `first` to `last`."""

    __slots__ = ("fields", "is_flexible", "last", "name")

    def __init__(self, name: str, text: str, last: int = 0, *, is_flexible: bool = True) -> None:
        """Parse `text`, in the notation of the module's docstring."""
        self.name = name
        self.last = last
        self.is_flexible = is_flexible
        fields, end = _parse(text, 0)
        if end != len(text):
            raise ValueError(f"schema of {name}: nothing is expected at {text[end:]!r}")
        self.fields = fields

    def read(self, reader: Reader, version: int) -> dict[str, Json]:
        """Read the fields from the rest of `reader`. Raises ProtocolError."""
        if not 0 <= version <= self.last:
            raise ProtocolError(f"{self.name} has versions 0 to {self.last}, found {version}")
        found = self._struct(reader, self.fields, version)
        if reader.remaining:
            raise ProtocolError(f"{reader.remaining} bytes behind a {self.name}")
        return found

    def _struct(self, reader: Reader, fields: tuple[Field, ...], version: int) -> dict[str, Json]:
        present = [field for field in fields if version >= field.since]
        values = {
            field.name: self._field(reader, field, version)
            for field in present
            if field.tag is None
        }
        if self.is_flexible:
            by_tag = {field.tag: field for field in present if field.tag is not None}
            for _ in range(reader.uvarint()):
                field = by_tag.get(reader.uvarint())
                end = reader.tag_end()
                if field is None:
                    reader.take(end - reader.position)
                    continue
                value = self._field(reader, field, version)
                reader.finish_tag(end)
                if value != field.default:
                    values[field.name] = value
        return {field.name: values[field.name] for field in present if field.name in values}

    def _field(self, reader: Reader, field: Field, version: int) -> Json:
        if not field.is_list:
            return self._value(reader, field, version)
        if self.is_flexible:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        if count < 0:
            if field.is_nullable:
                return None
            raise ProtocolError(f"{field.name} of a {self.name} is null")
        item = field._replace(is_nullable=False)
        return [self._value(reader, item, version) for _ in range(count)]

    def _value(self, reader: Reader, field: Field, version: int) -> Json:
        if field.fields is not None:
            return self._struct(reader, field.fields, version)
        kind = field.type
        if kind in _NUMBERS:
            return _NUMBERS[kind](reader)
        null = "nullable_" if field.is_nullable else ""
        compact = "compact_" if self.is_flexible else ""
        if kind == "string":
            text: str | None = getattr(reader, f"{compact}{null}string")()
            return text
        data: bytes | None = getattr(reader, f"{compact}{null}byte_string")()
        return None if data is None else base64.b64encode(data).decode("ascii")


_NUMBERS: Final[dict[str, Callable[[Reader], Json]]] = {
    "bool": Reader.boolean,
    "int8": Reader.int8,
    "int16": Reader.int16,
    "uint16": Reader.uint16,
    "int32": Reader.int32,
    "int64": Reader.int64,
    "float64": lambda reader: RawNumber(to_text(reader.float64())),
    "uuid": lambda reader: topic_id_to_text(TopicId(reader.uuid())),
}
_EMPTY: Final[dict[str, Json]] = {"bool": False, "string": "", "bytes": ""}


def _parse(text: str, position: int) -> tuple[tuple[Field, ...], int]:
    """Return the fields from `position` on, and the position of a `}` or of the end of `text`."""
    fields = []
    while (found := _FIELD.match(text, position)) is not None:
        position = found.end()
        inner = None
        if found["open"]:
            inner, position = _parse(text, position)
            position += 1
        signs = _SIGNS.match(text, position)
        assert signs is not None  # every part of it may be absent
        position = signs.end()
        fields.append(_field(found, inner, signs))
        if text[position : position + 1] == " ":
            position += 1
    return tuple(fields), position


def _field(found: re.Match[str], inner: tuple[Field, ...] | None, signs: re.Match[str]) -> Field:
    kind = found["type"] or ""
    default: Json = _EMPTY.get(kind, 0)
    if signs["default"] is not None:
        default = int(signs["default"])
    elif signs["null"]:
        default = None
    elif found["list"]:
        default = []
    tag = None if signs["tag"] is None else int(signs["tag"])
    return Field(
        found["name"],
        kind,
        inner,
        found["list"] is not None,
        signs["null"] is not None,
        int(signs["since"] or 0),
        tag,
        default,
    )


def read_framed(
    data: Buffer | None, schemas: dict[int, Schema]
) -> tuple[int, int, dict[str, Json]]:
    """Return (type, version, content) of a record in the frame of Kafka's metadata.

    Three varints at the start are the frame, the type and the version. Raises ProtocolError.

    Source: Kafka AbstractApiMessageSerde.
    """
    if data is None:
        raise ProtocolError("the record has no value")
    reader = Reader(data)
    frame = reader.uvarint()
    if frame != 1:
        raise ProtocolError(f"the record's frame has version {frame}, expected 1")
    kind, version = reader.uvarint(), reader.uvarint()
    if kind not in schemas:
        raise ProtocolError(f"there is no record of type {kind}")
    return kind, version, schemas[kind].read(reader, version)


def line_of(content: Json) -> str:
    """Return a line like `stored_json.to_line`, with numbers as Java writes them."""
    if isinstance(content, RawNumber):
        return content
    if isinstance(content, dict):
        inner = ",".join(f"{line_of(name)}:{line_of(value)}" for name, value in content.items())
        return "{" + inner + "}"
    if isinstance(content, list):
        return "[" + ",".join(map(line_of, content)) + "]"
    return to_line(content)
