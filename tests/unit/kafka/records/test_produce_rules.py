"""The records that each Produce version may carry."""

from __future__ import annotations

import struct

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.batch import read_produced_header
from minibroker.kafka.records.produce_rules import (
    InvalidRecordsError,
    RecordError,
    check_produce_version,
)
from tests.support.batches import batch, with_crc

ZSTD = 4


def code_of(records: bytes | None, version: int) -> ErrorCode:
    """Return the error code of Produce `version` for `records`."""
    try:
        view = None if records is None else memoryview(records)
        header = None if view is None else read_produced_header(view)
        check_produce_version(view, header, version)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def with_length(length: int) -> bytes:
    return struct.pack(">qi", 0, length) + batch(b"x")[12:]


@pytest.mark.parametrize("version", [0, 2, 3, 6, 7, 13])
def test_every_version_carries_one_batch(version: int) -> None:
    assert code_of(batch(b"x"), version) == ErrorCode.NONE


@pytest.mark.parametrize("records", [None, b"", batch(b"x")[:-1]], ids=["null", "empty", "cut"])
def test_no_batch(records: bytes | None) -> None:
    assert code_of(records, 3) == ErrorCode.INVALID_RECORD
    assert code_of(records, 2) == ErrorCode.NONE


def test_several_batches_and_rests_of_one() -> None:
    data = batch(b"x")
    assert code_of(data + data, 9) == ErrorCode.INVALID_RECORD
    assert code_of(data + data, 2) == ErrorCode.NONE
    assert code_of(data + data[:-1], 9) == ErrorCode.NONE
    assert code_of(data + b"rest", 9) == ErrorCode.NONE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_belong_to_old_versions(magic: int) -> None:
    data = batch(b"x", magic=magic)
    assert code_of(data, 2) == ErrorCode.NONE
    assert code_of(data, 3) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("version", "is_refused"), [(2, False), (3, True), (6, True), (7, False)])
def test_zstd_came_with_version_7(version: int, is_refused: bool) -> None:
    expected = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if is_refused else ErrorCode.NONE
    assert code_of(with_crc(batch(b"x", attributes=ZSTD)), version) == expected


@pytest.mark.parametrize(
    "records",
    [with_length(-1), with_length(0), with_length(13), batch(b"x", magic=3)],
    ids=["negative", "zero", "too short", "magic 3"],
)
def test_lengths_and_magic_of_no_format(records: bytes) -> None:
    assert code_of(records, 8) == ErrorCode.CORRUPT_MESSAGE
    assert code_of(batch(b"x") + records, 8) == ErrorCode.CORRUPT_MESSAGE


def test_a_small_v2_batch_of_an_old_version() -> None:
    assert code_of(with_length(20), 4) == ErrorCode.CORRUPT_MESSAGE


def test_refused_records_are_named() -> None:
    error = InvalidRecordsError(ErrorCode.INVALID_RECORD, "why", [RecordError(3, "no key")])
    assert error.code == ErrorCode.INVALID_RECORD
    assert error.detail == "why"
    assert error.record_errors == [RecordError(3, "no key")]
    assert str(error) == "INVALID_RECORD: why"
