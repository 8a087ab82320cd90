"""Decoding of batches: rows, dead letters and unseen schemas; the way of the decodings as text."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
import pytest

from minibroker.pipeline.tables.data_files import RECORD
from minibroker.pipeline.values.decoding import (
    AVRO,
    JSON,
    ColumnDecoding,
    SchemaKey,
    ValueSchema,
    decoded,
    from_json,
    of_type,
    reader_of,
    to_json,
)
from minibroker.pipeline.values.salvage import salvaged
from minibroker.pipeline.values.wire_format import (
    ValueGroup,
    grouped,
    header_of,
    message_indexes,
    split_by_message,
    with_headers,
)

TEXT = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
SCHEMA = ValueSchema(JSON, TEXT)
TYPE = pa.struct([("a", pa.int64()), ("b", pa.string())])


def batch(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "offset": list(range(len(values))),
            "key": pa.array([b"k"] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def decoding(**changes: Any) -> ColumnDecoding:
    schemas = {SchemaKey(1): SCHEMA, SchemaKey(2): SCHEMA._replace(reason="it does not fit")}
    return ColumnDecoding("value", schemas, None, TYPE)._replace(**changes)


def value(number: int, id_: int = 1) -> bytes:
    return header_of(id_) + json.dumps({"a": number}).encode()


def test_rows_keep_their_order_and_dead_letters_have_reasons() -> None:
    records = batch(value(0), None, b"x", value(3, 2), value(4), header_of(1) + b"{", value(6))
    columns = decoded(records, [decoding(keeps_bytes=True)])
    assert columns.rows.to_pylist() == [
        {"offset": 0, "key": b"k", "value": {"a": 0, "b": None}, "valueBytes": value(0)},
        {"offset": 1, "key": b"k", "value": None, "valueBytes": None},
        {"offset": 4, "key": b"k", "value": {"a": 4, "b": None}, "valueBytes": value(4)},
        {"offset": 6, "key": b"k", "value": {"a": 6, "b": None}, "valueBytes": value(6)},
    ]
    assert columns.dead is not None
    assert columns.dead["offset"].to_pylist() == [2, 3, 5]
    assert columns.dead["value"].to_pylist() == [b"x", value(3, 2), header_of(1) + b"{"]
    first, second, third = columns.dead["reason"].to_pylist()
    assert first == "its value does not begin with the byte 0 and the id of a schema"
    assert second == "its value has schema 2, but it does not fit"
    assert third.startswith("its value is no JSON (")
    assert third.endswith(", schema 1")


def test_unseen_schemas_are_told_once_each() -> None:
    columns = decoded(batch(value(0, 8), value(1), value(2, 9), value(3, 8)), [decoding()])
    assert sorted(columns.unseen) == [("value", SchemaKey(8)), ("value", SchemaKey(9))]
    assert columns.dead is None


def test_the_schema_is_in_a_header() -> None:
    guid = "89791762-2336-4186-9674-299b90a802e2"
    name = {"key": "__value_schema_id", "value": b"\x01" + uuid.UUID(guid).bytes}
    records = batch(b'{"a": 1}', value(2), b'{"a": 3}').append_column(
        "headers", pa.array([[name], None, [name]], RECORD.field("headers").type)
    )
    columns = decoded(records, [decoding()])
    assert columns.unseen == [("value", SchemaKey(guid))]
    with_schemas = decoding(
        schemas={SchemaKey(1): SCHEMA, SchemaKey(guid): SCHEMA}, keeps_bytes=True
    )
    rows = decoded(records, [with_schemas]).rows.to_pylist()
    assert [row["value"]["a"] for row in rows] == [1, 2, 3]
    assert [row["valueBytes"] for row in rows] == [b'{"a": 1}', value(2), b'{"a": 3}']
    assert from_json(to_json([with_schemas])) == [with_schemas]


def test_two_columns_and_one_dead_letter_for_a_record() -> None:
    key = ColumnDecoding("key", {}, of_type(pa.struct([("a", pa.int64())])), TYPE)
    columns = decoded(batch(b"x"), [key, decoding()])
    assert (columns.rows.num_rows, columns.dead["reason"].to_pylist()) == (
        0,
        ["its key is no JSON (Expecting value: line 1 column 1 (char 0))"],
    )


def test_only_tombstones_and_nothing() -> None:
    columns = decoded(batch(None, None), [decoding(schemas={}, type=pa.null())])
    assert columns.rows["value"].to_pylist() == [None, None]
    assert decoded(batch(), [decoding()]).rows.num_rows == 0


def test_decodings_travel_as_text() -> None:
    referring_schema = ValueSchema(
        AVRO, '"int"', (("Other", '"string"'),), (0, 3), "why", as_numbers=True
    )
    examples = [
        decoding(
            schemas={SchemaKey(5, (0, 3)): referring_schema}, keeps_bytes=True, has_bounds=True
        ),
        ColumnDecoding("key", {}, of_type(TYPE), TYPE),
    ]
    assert from_json(to_json(examples)) == examples
    assert reader_of(examples[1].plain or SCHEMA).type == TYPE


# Salvage: every good value is read, every bad one has a reason, in few calls.


class Numbers:
    """Reads decimal numbers; counts its calls."""

    type = pa.int64()

    def __init__(self) -> None:
        self.calls = 0

    def read(self, values: pa.Array) -> pa.Array:
        self.calls += 1
        return pa.array([int(value.as_py()) for value in values], self.type)

    def read_alone(self, value: bytes) -> pa.Array:
        try:
            return pa.array([int(value)], self.type)
        except ValueError as error:
            raise ValueError(f"is no number: {value!r}") from error


def values(count: int, bad: set[int]) -> pa.Array:
    data = [b"x" if index in bad else str(index).encode() for index in range(count)]
    return pa.array(data, pa.binary())


def test_good_values_take_one_call() -> None:
    reader = Numbers()
    outcome = salvaged(reader, values(1000, set()))
    assert (outcome.array.to_pylist(), outcome.reasons) == (list(range(1000)), {})
    assert reader.calls == 1


def test_bad_values_among_many_stand_alone() -> None:
    reader, bad = Numbers(), {0, 500, 999}
    outcome = salvaged(reader, values(1000, bad))
    expected = [None if index in bad else index for index in range(1000)]
    assert outcome.array.to_pylist() == expected
    assert outcome.reasons == dict.fromkeys(sorted(bad), "is no number: b'x'")
    assert reader.calls < 60


def test_nothing_and_all_bad() -> None:
    assert salvaged(Numbers(), values(0, set())).array.equals(pa.nulls(0, pa.int64()))
    outcome = salvaged(Numbers(), values(40, set(range(40))))
    assert (outcome.array.null_count, sorted(outcome.reasons)) == (40, list(range(40)))


class Times(Numbers):
    """Reads microseconds."""

    type = pa.timestamp("us")


def test_a_time_that_no_table_keeps_is_bad_in_a_table_alone() -> None:
    data = pa.array([b"0", b"9223372036825200000", b"1"], pa.binary())
    outcome = salvaged(Times(), data, has_bounds=True)
    assert outcome.reasons == {1: "has a time outside of the years 1 to 9999 in it"}
    assert outcome.array.cast(pa.int64()).to_pylist() == [0, None, 1]
    assert salvaged(Times(), data).reasons == {}


# The wire format: headers, groups of one schema, message indexes.


GUID = "89791762-2336-4186-9674-299b90a802e2"
GUID_HEADER = b"\x01" + uuid.UUID(GUID).bytes


def rows_of(group: ValueGroup) -> list[int]:
    assert group.rows is not None
    return list(group.rows.to_pylist())


def test_the_header_of_a_record_stands_before_its_value() -> None:
    name = "__value_schema_id"
    headers = pa.array(
        [
            [{"key": "x", "value": b"no"}, {"key": name, "value": b"A"}],
            None,
            [],
            [{"key": name, "value": b"B"}, {"key": name, "value": b"C"}],
            [{"key": name, "value": b"D"}],
            [{"key": "__key_schema_id", "value": b"E"}],
            [{"key": name, "value": None}],
        ],
        RECORD.field("headers").type,
    )
    values = pa.array([b"1", b"2", None, b"4", None, b"6", b"7"], pa.binary())
    expected = [b"A1", b"2", None, b"B4", None, b"6", b"7"]
    assert with_headers(values, headers, "value").to_pylist() == expected
    assert with_headers(values.slice(3), headers.slice(3), "value").to_pylist() == expected[3:]
    assert with_headers(values, headers.slice(0, 0), "value") is values


def test_values_of_one_schema_are_one_group() -> None:
    values = pa.array([header_of(7) + b"a", header_of(7) + b"b"], pa.binary())
    (group,) = grouped(values)
    assert (group.schema, group.rows, group.payload.to_pylist()) == (7, None, [b"a", b"b"])


def test_other_values_are_grouped_by_schema_with_their_rows() -> None:
    values = [header_of(1) + b"a", b"x", header_of(2), header_of(1) + b"c", b"", b"\x01\0\0\0\1z"]
    values += [GUID_HEADER + b"d", GUID_HEADER[:-1], GUID_HEADER]
    expected = {
        group.schema: (rows_of(group), group.payload.to_pylist())
        for group in grouped(pa.array(values, pa.binary()))
    }
    assert expected == {
        GUID: ([6, 8], [b"d", b""]),
        1: ([0, 3], [b"a", b"c"]),
        2: ([2], [b""]),
        None: ([1, 4, 5, 7], [b"x", b"", b"\x01\0\0\0\1z", GUID_HEADER[:-1]]),
    }
    assert grouped(pa.array([], pa.binary())) == []


def test_a_sliced_array_is_read_from_its_place() -> None:
    values = pa.array([b"no", header_of(3) + b"a", header_of(3) + b"b"], pa.binary()).slice(1)
    (group,) = grouped(values)
    assert (group.schema, group.payload.to_pylist()) == (3, [b"a", b"b"])


@pytest.mark.parametrize(
    ("payload", "indexes", "size"),
    [
        (b"\0rest", (0,), 1),
        (b"\x02\x02rest", (1,), 2),
        (b"\x04\x00\x04rest", (0, 2), 3),
        (b"\x02\x80\x01", (64,), 3),
        (b"", None, 0),
        (b"\x02", None, 0),
        (b"\x01\x00", None, 0),  # a negative count
        (b"\x02\x01", None, 0),  # a negative index
        (b"\xff\xff\xff\xff\xff\xff", None, 0),
        (b"\xfe\x01" + b"\0" * 127, None, 0),  # 127 messages inside each other
    ],
)
def test_message_indexes(payload: bytes, indexes: tuple[int, ...] | None, size: int) -> None:
    assert message_indexes(payload) == (indexes, size)


def test_payloads_are_split_by_message() -> None:
    (whole,) = split_by_message(pa.array([b"\0a", b"\0b"], pa.binary()))
    assert (whole[0], whole[1].rows, whole[1].payload.to_pylist()) == ((0,), None, [b"a", b"b"])
    expected = {
        message: (rows_of(group), group.payload.to_pylist())
        for message, group in split_by_message(
            pa.array([b"\0a", b"\x02\x02b", b"\x02", b"\0c"], pa.binary())
        )
    }
    assert expected == {(0,): ([0, 3], [b"a", b"c"]), (1,): ([1], [b"b"]), None: ([2], [b"\x02"])}
