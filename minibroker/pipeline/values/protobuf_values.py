"""Protobuf values → Arrow, by ptars, which reads an array of messages in one call.

A field is a column. Enums are their names, timestamps are timestamps, `uint32` is int64 and
`uint64` is a decimal of 20 digits. Fields of a oneof, and those with presence, are null if they are
not set. Wrappers are what they wrap, durations are microseconds, Any is its `type_url` and `value`.
A message that is inside itself has no columns.

Fields that no column can hold as they are travel as bytes and become text:

    field of Struct, Value, ListValue ─ made bytes ─► column of bytes ─► JSON text
    field of a message without fields ─ made bytes ─► column of bytes ─► true, if it is set

A message inside of another one has the same bytes as a field of bytes. So the descriptors of a
.proto file are changed before a reader gets them, and the columns behind it. Struct is inside
itself, and a column without fields cannot be written.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ptars
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
    struct_pb2,
)
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import DecodeError

from minibroker.pipeline.values.wire_format import FIRST_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from google.protobuf.descriptor_pb2 import FileDescriptorSet

_CONFIG: Final = ptars.PtarsConfig(
    timestamp_unit="us",
    enum_repr="string",
    list_value_name="element",
    time_unit="us",
    duration_unit="us",
)


class ProtobufReader:
    """Reads the first message of a .proto file, or the one that `message` says."""

    def __init__(self, files: str, message: Sequence[int] = FIRST_MESSAGE) -> None:
        """Take the descriptors of a .proto file and of those that it imports.

        Args:
            files: a FileDescriptorSet in base64; the .proto file is the last one.
            message: indexes as of `wire_format`.

        Raises ValueError: there is no such message, or no columns can hold it.
        """
        file_set = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(files))
        self._converts = changed(file_set)
        pool = descriptor_pool.DescriptorPool()
        for file in file_set.file:
            pool.Add(file)
        names = list(pool.FindFileByName(file_set.file[-1].name).message_types_by_name.values())
        descriptor = _message(names, message)
        _check(descriptor, ())
        self._descriptor = descriptor
        self._message = message_factory.GetMessageClass(descriptor)
        self._handler = ptars.HandlerPool([descriptor.file], config=_CONFIG).get_for_message(
            descriptor
        )
        self.type = _of_table(self._rows([]).type)

    def read(self, values: pa.Array) -> pa.Array:
        return self._rows(values.to_pylist()).cast(self.type)

    def _rows(self, values: list[bytes]) -> pa.Array:
        batch = self._handler.list_to_record_batch(values)
        batch.validate(full=True)
        rows = batch.to_struct_array()
        if not self._converts:
            return rows
        return without_bytes(rows, self._descriptor, self._converts)

    def read_alone(self, value: bytes) -> pa.Array:
        try:
            self._message.FromString(value)
            return self.read(pa.array([value], pa.binary()))
        except DecodeError as error:
            raise ValueError(f"is no Protobuf of this message ({error})") from error
        except Exception as error:
            raise ValueError(
                f"is no Protobuf of this message ({type(error).__name__}: {error})"
            ) from error


def _message(names: list[Any], indexes: Sequence[int]) -> Any:
    """Return the descriptor of a message. Raises ValueError."""
    message, among = None, names
    for index in indexes:
        if index >= len(among):
            raise ValueError(f"it has no message {list(indexes)}")
        message = among[index]
        # The entries of maps are no messages of people: Java's serializer does not count them.
        among = [inner for inner in message.nested_types if not inner.GetOptions().map_entry]
    if message is None:
        raise ValueError("it has no message")
    return message


def _check(descriptor: Any, around: tuple[str, ...]) -> None:
    """Raise ValueError for a message that is inside itself, or that has no fields."""
    if descriptor.full_name in around:
        raise ValueError(f"its message {descriptor.full_name} is inside itself")
    if not descriptor.fields:
        raise ValueError(f"its message {descriptor.full_name} has no fields")
    for field in descriptor.fields:
        if field.message_type is not None:
            _check(field.message_type, (*around, descriptor.full_name))


def _of_table(kind: pa.DataType) -> pa.DataType:
    """Return the type of a table's column for one of ptars."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _of_table(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _of_table(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_of_table(kind.key_type), _of_table(kind.item_type))
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return pa.int64()
    if kind.equals(pa.uint64()):
        return pa.decimal128(20, 0)
    return pa.int64() if kind.equals(pa.uint32()) else kind


_JSON: Final = {
    ".google.protobuf.Struct": struct_pb2.Struct,
    ".google.protobuf.Value": struct_pb2.Value,
    ".google.protobuf.ListValue": struct_pb2.ListValue,
}
_GOOGLE: Final = "google.protobuf"
_WHOLE_MAX: Final = 2**53
"""Whole numbers up to here are exact in a double, the only number that a Value has."""

Convert = Callable[[pa.Array], pa.Array]


def changed(files: FileDescriptorSet) -> dict[str, Convert]:
    """Change such fields in place; return full name of a field → function from its bytes."""
    empty = {
        name
        for file in files.file
        for name, message in _messages(file)
        if not message.field and not message.options.map_entry
    }
    converts: dict[str, Convert] = {}
    for file in files.file:
        if file.package == _GOOGLE:
            continue
        for name, message in _messages(file):
            for field in message.field:
                kind = field.type_name
                if kind not in _JSON and kind not in empty:
                    continue
                _make_bytes(field, message, is_proto3=file.syntax == "proto3")
                convert = _json_text(_JSON[kind]) if kind in _JSON else _is_set
                converts[f"{name}.{field.name}".lstrip(".")] = convert
    return converts


def without_bytes(rows: pa.Array, descriptor: Any, converts: Mapping[str, Convert]) -> pa.Array:
    """Return structs of a message with the columns of `changed` as they are for people."""
    fields = descriptor.fields_by_name
    columns = {
        name: _column(pc.struct_field(rows, [name]), fields[name], converts)
        for name in rows.type.names
    }
    return pa.StructArray.from_arrays(
        list(columns.values()), list(columns), mask=rows.is_null() if rows.null_count else None
    )


def _messages(file: Any) -> Iterator[tuple[str, DescriptorProto]]:
    """Yield the messages of a file with their full names, `.package.Message`."""
    inner = [(f".{file.package}" if file.package else "", message) for message in file.message_type]
    while inner:
        around, message = inner.pop()
        name = f"{around}.{message.name}"
        yield name, message
        inner += [(name, nested) for nested in message.nested_type]


def _make_bytes(field: Any, message: DescriptorProto, *, is_proto3: bool) -> None:
    """Make a field of bytes that is null where the message was not set."""
    field.type = FieldDescriptorProto.TYPE_BYTES
    field.ClearField("type_name")
    is_alone = field.label != FieldDescriptorProto.LABEL_REPEATED
    if (
        is_proto3
        and is_alone
        and not field.HasField("oneof_index")
        and not message.options.map_entry
    ):
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def _column(values: pa.Array, field: Any, converts: Mapping[str, Convert]) -> pa.Array:
    """Return the column of a field."""
    message = field.message_type
    if pa.types.is_map(values.type) and message is not None:
        items = _column(values.items, message.fields_by_name["value"], converts)
        if items.type.equals(values.type.item_type):
            return values
        return pa.MapArray.from_arrays(
            values.offsets, values.keys, items, mask=values.is_null() if values.null_count else None
        )
    if pa.types.is_list(values.type):
        items = _value(values.values, field, converts)
        if items.type.equals(values.type.value_type):
            return values
        kind = pa.list_(pa.field(values.type.value_field.name, items.type))
        mask = values.is_null() if values.null_count else None
        return pa.ListArray.from_arrays(values.offsets, items, type=kind, mask=mask)
    return _value(values, field, converts)


def _value(values: pa.Array, field: Any, converts: Mapping[str, Convert]) -> pa.Array:
    if (convert := converts.get(field.full_name)) is not None:
        return convert(values)
    if pa.types.is_struct(values.type) and field.message_type.file.package != _GOOGLE:
        return without_bytes(values, field.message_type, converts)
    return values


def _json_text(message: Any) -> Convert:
    def one(value: bytes | None) -> str | None:
        if value is None:
            return None
        plain = json_format.MessageToDict(message.FromString(value))
        return json.dumps(_with_whole(plain), sort_keys=True)  # Protobuf's order is a random one

    return lambda values: pa.array([one(value) for value in values.to_pylist()], pa.string())


def _with_whole(value: Any) -> Any:
    """Return a value of JSON with whole numbers written as such."""
    if isinstance(value, dict):
        return {name: _with_whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_whole(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= _WHOLE_MAX:
        return int(value)
    return value


def _is_set(values: pa.Array) -> pa.Array:
    return pc.if_else(values.is_valid(), True, pa.scalar(None, pa.bool_()))
