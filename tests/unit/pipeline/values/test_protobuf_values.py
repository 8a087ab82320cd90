"""Protobuf: every kind of field, the messages of a file, hostile bytes."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.pipeline.values.protobuf_values import ProtobufReader
from minibroker.pipeline.values.schema_registry import descriptors

FILE = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Kind { NONE = 0; BIG = 1; }
message Order {
  int64 id = 1; optional string note = 2; google.protobuf.Timestamp at = 3;
  repeated string tags = 4; Who who = 5; Kind kind = 6; map<string, int32> counts = 7;
  google.protobuf.Int32Value wrapped = 8; oneof one { string x = 9; int32 y = 10; }
  bytes raw = 11; uint64 large = 12; uint32 small = 13;
  message Who { string name = 1; }
}
message Other { double amount = 1; }
message Endless { Endless inner = 1; }
message Empty {}
"""


@pytest.fixture(scope="module")
def files() -> str:
    return descriptors(FILE, {})


def message(files: str, of: str, /, **fields: Any) -> bytes:
    file_set = descriptor_pb2.FileDescriptorSet.FromString(b64decode(files))
    pool = descriptor_pool.DescriptorPool()
    for file in file_set.file:
        pool.Add(file)
    message_class = message_factory.GetMessageClass(pool.FindMessageTypeByName(of))
    return bytes(message_class(**fields).SerializeToString())


def test_every_kind_of_field(files: str) -> None:
    at = datetime(2026, 11, 24, 18, 0, 0, 5, tzinfo=UTC)
    full = message(
        files,
        "shop.Order",
        id=-1,
        at=at,
        tags=["a", "b"],
        who={"name": "n"},
        kind=1,
        counts={"k": 3},
        wrapped={"value": 4},
        y=5,
        raw=b"\xff",
        large=2**64 - 1,
        small=2**32 - 1,
    )
    rows = ProtobufReader(files).read(pa.array([full, b""], pa.binary())).to_pylist()
    assert rows[0] == {
        "id": -1,
        "note": None,
        "at": at,
        "tags": ["a", "b"],
        "who": {"name": "n"},
        "kind": "BIG",
        "counts": [("k", 3)],
        "wrapped": 4,
        "x": None,
        "y": 5,
        "raw": b"\xff",
        "large": Decimal(2**64 - 1),
        "small": 2**32 - 1,
    }
    assert (rows[1]["id"], rows[1]["kind"], rows[1]["at"], rows[1]["who"]) == (
        0,
        "NONE",
        None,
        None,
    )


def test_the_indexes_choose_the_message(files: str) -> None:
    assert ProtobufReader(files, (1,)).type == pa.struct([("amount", pa.float64())])
    assert ProtobufReader(files, (0, 0)).read(
        pa.array([message(files, "shop.Order.Who", name="n")], pa.binary())
    ).to_pylist() == [{"name": "n"}]
    for indexes, sentence in (
        ((9,), r"it has no message \[9\]"),
        ((2,), "its message shop.Endless is inside itself"),
        ((3,), "its message shop.Empty has no fields"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ProtobufReader(files, indexes)


@settings(max_examples=200)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(files: str, data: bytes) -> None:
    reader = ProtobufReader(files)
    try:
        reader.read(pa.array([data], pa.binary()))
    except Exception:
        with pytest.raises(ValueError, match="is no Protobuf of this message"):
            reader.read_alone(data)


# Struct and its kind become JSON text, messages without fields become true.


FIELDS = """
  int64 id = 1; {optional}google.protobuf.Struct s = 2; repeated google.protobuf.Value many = 3;
  map<string, google.protobuf.ListValue> named = 4;
  oneof one {{ google.protobuf.Value v = 5; Empty gone = 6; google.protobuf.Empty left = 7; }}
  {optional}Inner inner = 8; repeated Inner inners = 9; map<string, Inner> by_name = 10;
  {optional}google.protobuf.Any any = 11;
  message Inner {{ {optional}google.protobuf.Struct s = 1; {optional}int32 x = 2; }}
"""
PROTOBUF_JSON_FILE = """
syntax = "{syntax}";
import "google/protobuf/any.proto"; import "google/protobuf/empty.proto";
import "google/protobuf/struct.proto";
message Order {{ {fields} }}
message Empty {{}}
"""
PROTO3 = PROTOBUF_JSON_FILE.format(syntax="proto3", fields=FIELDS.format(optional=""))
PROTO2 = PROTOBUF_JSON_FILE.format(
    syntax="proto2", fields=FIELDS.format(optional="optional ")
).replace("int64 id", "required int64 id")
ENDLESS = "message Endless { google.protobuf.Struct s = 1; repeated Endless inner = 2; }"


def encoded(files: str, *values: dict[str, Any]) -> pa.Array:
    file_set = descriptor_pb2.FileDescriptorSet.FromString(b64decode(files))
    pool = descriptor_pool.DescriptorPool()
    for file in file_set.file:
        pool.Add(file)
    message_class = message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))
    return pa.array(
        [json_format.ParseDict(value, message_class()).SerializeToString() for value in values],
        pa.binary(),
    )


@pytest.mark.parametrize("text", [PROTO3, PROTO2])
def test_every_place_of_such_a_field(text: str) -> None:
    files = descriptors(text, {})
    full = {
        "id": 1,
        "s": {"a": [1, "x", None, True], "b": {"c": 1.5}},
        "many": [1, None, "x"],
        "named": {"k": [1, 2]},
        "v": {"deep": {}},
        "inner": {"s": {}, "x": 5},
        "inners": [{"s": {"y": 1}}, {}],
        "byName": {"k": {"s": {"z": 1}}},
    }
    reader = ProtobufReader(files)
    values = encoded(files, full, {"id": 2, "gone": {}}, {"id": 3, "left": {}}, {"id": 4})
    rows = reader.read(values).to_pylist()
    first = rows[0]
    assert first["s"] == '{"a": [1, "x", null, true], "b": {"c": 1.5}}'
    assert first["many"] == ["1", "null", '"x"']
    assert first["named"] == [("k", "[1, 2]")]
    assert (first["v"], first["gone"]) == ('{"deep": {}}', None)
    assert first["inner"] == {"s": "{}", "x": 5}
    assert [item["s"] for item in first["inners"]] == ['{"y": 1}', None]
    assert [(name, item["s"]) for name, item in first["by_name"]] == [("k", '{"z": 1}')]
    assert [(row["gone"], row["left"]) for row in rows[1:]] == [
        (True, None),
        (None, True),
        (None,) * 2,
    ]
    assert rows[3]["s"] is rows[3]["v"] is rows[3]["inner"] is None
    assert [reader.read_alone(value.as_py())[0].as_py() for value in values] == rows


def test_a_message_inside_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="its message Endless is inside itself"):
        ProtobufReader(descriptors(PROTO3 + ENDLESS, {}), (2,))


def test_bytes_that_are_no_struct() -> None:
    reader = ProtobufReader(descriptors(PROTO3, {}))
    with pytest.raises(ValueError, match="is no Protobuf of this message"):
        reader.read_alone(b"\x12\x01\xff")
