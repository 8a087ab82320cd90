"""Laws of Protobuf compatibility: data of a compatible writer is read, and keeps its values.

Google's Python library writes and reads. A pair of schemas comes from a seed: the second has a few
edits of the first.
"""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.registry.compatibility import incompatibilities
from minibroker.registry.formats import ParsedSchema, parse

SCALARS = (
    *("int32", "int64", "uint32", "uint64", "bool", "sint32", "sint64"),
    *("string", "bytes", "fixed32", "sfixed64", "float", "double"),
)
INTEGERS = {1, 2, 3, 4}
"""The types of C++: signed and unsigned, of 32 and 64 bits."""
SEEDS = st.integers(0, 2**32)


class Maker:
    """Files and data of one seed: a message M, with a message N inside."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def file(self) -> FileDescriptorProto:
        file = FileDescriptorProto(name="x.proto", syntax="proto3", package="p")
        outer = file.message_type.add(name="M")
        inner = outer.nested_type.add(name="N")
        for message in (inner, outer):
            self._add_fields(message, [*range(1, 6)])
        return file

    def edited(self, file: FileDescriptorProto) -> FileDescriptorProto:
        """Return a copy with one to three changes."""
        copy = FileDescriptorProto.FromString(file.SerializeToString())
        outer = copy.message_type[0]
        for _ in range(self.random.randint(1, 3)):
            self._edit(self.random.choice([outer, outer.nested_type[0]]))
        return copy

    def fill(self, message: Any) -> None:
        """Set about each second field."""
        for field in message.DESCRIPTOR.fields:
            if self.random.random() < 0.5:
                continue
            if field.message_type is None:
                value = self._value(field)
                if field.is_repeated:
                    getattr(message, field.name).extend([value, value])
                else:
                    setattr(message, field.name, value)
            elif field.is_repeated:
                self.fill(getattr(message, field.name).add())
            else:
                getattr(message, field.name).SetInParent()
                self.fill(getattr(message, field.name))

    def _value(self, field: Any) -> Any:
        kind = field.cpp_type
        if kind == field.CPPTYPE_STRING:
            text = self.random.choice(["a", "bb"])
            return text.encode() if field.type == field.TYPE_BYTES else text
        if kind == field.CPPTYPE_BOOL:
            return True
        return self.random.randint(1, 100)

    def _edit(self, message: DescriptorProto) -> None:
        kind = self.random.random()
        numbers = {field.number for field in message.field}
        if kind < 0.2 and numbers:
            message.field.pop(self.random.randrange(len(message.field)))
        elif kind < 0.4:
            self._add_fields(message, [*({*range(1, 8)} - numbers)])
        elif numbers:
            field = self.random.choice(message.field)
            if kind < 0.7:
                self._set_type(field, message)
            elif kind < 0.8:
                field.ClearField("oneof_index")
            elif kind < 0.9 and message.oneof_decl and field.label == 1:
                field.oneof_index = 0
            elif not field.HasField("oneof_index"):
                field.label = 4 - field.label
        used = {field.oneof_index for field in message.field if field.HasField("oneof_index")}
        if not used:
            message.ClearField("oneof_decl")

    def _add_fields(self, message: DescriptorProto, numbers: list[int]) -> None:
        for number in self.random.sample(numbers, min(len(numbers), self.random.randint(1, 3))):
            field = message.field.add(name=f"f{number}", number=number, label=1)
            self._set_type(field, message)
            if self.random.random() < 0.3:
                if not message.oneof_decl:
                    message.oneof_decl.add(name="choice")
                field.oneof_index = 0
            elif self.random.random() < 0.3:
                field.label = 3

    def _set_type(self, field: FieldDescriptorProto, message: DescriptorProto) -> None:
        if message.name == "M" and self.random.random() < 0.2:
            field.type = FieldDescriptorProto.TYPE_MESSAGE
            field.type_name = ".p.M.N"
        else:
            field.ClearField("type_name")
            name = self.random.choice(SCALARS)
            field.type = FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")


def schema_of(file: FileDescriptorProto) -> ParsedSchema:
    return parse("PROTOBUF", b64encode(file.SerializeToString()).decode())


def message_of(file: FileDescriptorProto) -> Any:
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("p.M"))()


def assert_kept(written: Any, read: Any) -> None:
    """Check each field that has the same type, or an integer, on both sides."""
    fields = read.DESCRIPTOR.fields_by_number
    for field in written.DESCRIPTOR.fields:
        other = fields.get(field.number)
        if other is None or field.message_type is not None:
            continue
        is_same = field.type == other.type or {field.cpp_type, other.cpp_type} <= INTEGERS
        if is_same and field.is_repeated == other.is_repeated:
            assert getattr(written, field.name) == getattr(read, other.name), field.name


@settings(max_examples=400)
@given(seed=SEEDS)
def test_data_of_a_compatible_writer_is_read(seed: int) -> None:
    maker = Maker(seed)
    writer = maker.file()
    reader = maker.edited(writer)
    if incompatibilities(schema_of(reader), schema_of(writer)):
        return
    for _ in range(5):
        old, new = message_of(writer), message_of(reader)
        maker.fill(old)
        new.ParseFromString(old.SerializeToString())
        assert_kept(old, new)


@settings(max_examples=80)
@given(seed=SEEDS)
def test_a_schema_is_compatible_with_itself(seed: int) -> None:
    file = Maker(seed).file()
    assert not incompatibilities(schema_of(file), schema_of(file))


@settings(max_examples=8)
@given(seed=SEEDS)
def test_the_text_of_a_descriptor_is_the_same_schema(seed: int) -> None:
    schema = schema_of(Maker(seed).file())
    again = parse("PROTOBUF", schema.canonical)
    assert again.canonical == schema.canonical
    assert again.normalized == schema.normalized
    assert parse("PROTOBUF", schema.normalized).normalized == schema.normalized
