"""Schemas in one line: signs, versions, tags, and bytes that are none."""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.tools.record_schemas import RawNumber, Schema, line_of, read_framed
from minibroker.tools.stored_json import Json


def test_fields_come_and_go_with_versions() -> None:
    schema = Schema("S", "id:int16 name:string?@1", 1, is_flexible=False)
    assert schema.read(Reader(b"\x00\x05"), 0) == {"id": 5}
    assert schema.read(Reader(b"\x00\x05\xff\xff"), 1) == {"id": 5, "name": None}
    assert schema.read(Reader(b"\x00\x05\x00\x01a"), 1) == {"id": 5, "name": "a"}
    with pytest.raises(ProtocolError, match="S has versions 0 to 1, found 2"):
        schema.read(Reader(b"\x00\x05"), 2)
    with pytest.raises(ProtocolError, match="1 bytes behind a S"):
        schema.read(Reader(b"\x00\x05\x00"), 0)


def test_structs_and_lists() -> None:
    schema = Schema("S", "outer:{ids:[]uuid port:uint16} many:[]{flag:bool data:bytes}")
    writer = Writer()
    writer.compact_array_count(1)
    writer.uuid(bytes(16))
    writer.int16(-1)
    writer.uvarint(0)
    writer.compact_array_count(1)
    writer.boolean(True)
    writer.compact_byte_string(b"\x00\xff")
    writer.uvarint(0)
    writer.uvarint(0)
    found = schema.read(Reader(writer.to_bytes()), 0)
    assert found == {
        "outer": {"ids": ["A" * 22], "port": 65535},
        "many": [{"flag": True, "data": "AP8="}],
    }
    assert list(found) == ["outer", "many"]


def test_tagged_fields_stand_in_their_place_and_only_if_they_say_something() -> None:
    schema = Schema("S", "a:int8#0=-1 b:int8 c:[]int32?#1 d:string@1#2", 1)

    def read(*tags: bytes) -> object:
        return schema.read(Reader(b"\x07" + bytes([len(tags)]) + b"".join(tags)), 1)

    assert read() == {"b": 7}
    assert read(b"\x00\x01\xff") == {"b": 7}, "the default"
    assert read(b"\x01\x01\x00") == {"b": 7}, "null, which is the default"
    assert read(b"\x00\x01\x05", b"\x01\x01\x01") == {"a": 5, "b": 7, "c": []}
    assert read(b"\x02\x02\x02x", b"\x63\x01\x00") == {"b": 7, "d": "x"}, "99 is not known"
    with pytest.raises(ProtocolError):
        read(b"\x00\x02\x05\x05")


def test_a_list_that_may_not_be_null() -> None:
    schema = Schema("S", "many:[]int32")
    with pytest.raises(ProtocolError, match="many of a S is null"):
        schema.read(Reader(b"\x00\x00"), 0)
    with pytest.raises(ProtocolError):
        schema.read(Reader(b"\xff\xff\xff\x7f"), 0)


def test_a_schema_that_is_none() -> None:
    with pytest.raises(ValueError, match="schema of S"):
        Schema("S", "a:int8 ; b:int8")


def test_frames() -> None:
    schemas = {3: Schema("S", "id:int8", 1)}
    assert read_framed(b"\x01\x03\x01\x09\x00", schemas) == (3, 1, {"id": 9})
    for data, why in (
        (None, "no value"),
        (b"\x00\x03\x01\x09\x00", "frame has version 0"),
        (b"\x01\x04\x01\x09\x00", "type 4"),
        (b"", "does not fit"),
    ):
        with pytest.raises(ProtocolError, match=why):
            read_framed(data, schemas)


def test_lines_are_compact_and_numbers_java_s() -> None:
    content: Json = {"a": [1, True, None, RawNumber("1.0E7")], "b": {"ü": "\x1f"}}
    assert line_of(content) == '{"a":[1,true,null,1.0E7],"b":{"ü":"\\u001F"}}'
