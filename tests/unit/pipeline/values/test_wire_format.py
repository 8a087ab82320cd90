"""The wire format: headers, groups of one schema, message indexes."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from minibroker.pipeline.tables.data_files import RECORD
from minibroker.pipeline.values.wire_format import (
    ValueGroup,
    grouped,
    header_of,
    message_indexes,
    split_by_message,
    with_headers,
)

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
    found = {
        group.schema: (rows_of(group), group.payload.to_pylist())
        for group in grouped(pa.array(values, pa.binary()))
    }
    assert found == {
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
    found = {
        message: (rows_of(group), group.payload.to_pylist())
        for message, group in split_by_message(
            pa.array([b"\0a", b"\x02\x02b", b"\x02", b"\0c"], pa.binary())
        )
    }
    assert found == {(0,): ([0, 3], [b"a", b"c"]), (1,): ([1], [b"b"]), None: ([2], [b"\x02"])}
