"""Protobuf values → Arrow, by ptars, which reads an array of messages in one call.

A field is a column. Enums are their names, timestamps are timestamps, `uint32` is int64 and
`uint64` is a decimal of 20 digits. Fields of a oneof, and those with presence, are null if they are
not set. Wrappers are what they wrap, durations are microseconds, Any is its `type_url` and `value`.
`protobuf_json` has the fields that become text. A message that is inside itself has no columns.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import ptars
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from minibroker.pipeline.values.protobuf_json import changed, without_bytes
from minibroker.pipeline.values.wire_format import FIRST_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        found = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(files))
        self._converts = changed(found)
        pool = descriptor_pool.DescriptorPool()
        for file in found.file:
            pool.Add(file)
        names = list(pool.FindFileByName(found.file[-1].name).message_types_by_name.values())
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
    found, among = None, names
    for index in indexes:
        if index >= len(among):
            raise ValueError(f"it has no message {list(indexes)}")
        found = among[index]
        # The entries of maps are no messages of people: Java's serializer does not count them.
        among = [inner for inner in found.nested_types if not inner.GetOptions().map_entry]
    if found is None:
        raise ValueError("it has no message")
    return found


def _check(descriptor: Any, around: tuple[str, ...]) -> None:
    """Raise ValueError for a message that is inside itself, or that has no fields."""
    if descriptor.full_name in around:
        raise ValueError(f"its message {descriptor.full_name} is inside itself")
    if not descriptor.fields:
        raise ValueError(f"its message {descriptor.full_name} has no fields")
    for field in descriptor.fields:
        if field.message_type is not None:
            _check(field.message_type, (*around, descriptor.full_name))


def _of_table(found: pa.DataType) -> pa.DataType:
    """Return the type of a table's column for one of ptars."""
    if pa.types.is_struct(found):
        return pa.struct([pa.field(field.name, _of_table(field.type)) for field in found])
    if pa.types.is_list(found):
        return pa.list_(pa.field("element", _of_table(found.value_type)))
    if pa.types.is_map(found):
        return pa.map_(_of_table(found.key_type), _of_table(found.item_type))
    if pa.types.is_duration(found) or pa.types.is_time(found):
        return pa.int64()
    if found.equals(pa.uint64()):
        return pa.decimal128(20, 0)
    return pa.int64() if found.equals(pa.uint32()) else found
