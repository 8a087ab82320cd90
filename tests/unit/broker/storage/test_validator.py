"""Checks before an append: bounds, sizes, bytes that are handed on.

Verdicts on what a batch claims stand beside Kafka's in `test_validator_against_kafka.py`.
"""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from minibroker.broker.storage.record_checks import AppendRules
from minibroker.broker.storage.validator import check_before_append
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.batch import (
    HEADER_FIELDS,
    BatchHeader,
    crc_is_valid,
    read_header,
    set_timestamps,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.produce_rules import InvalidRecordsError
from minibroker.kafka.records.record import Record, decode_records
from tests.support.batches import (
    TIMESTAMP,
    Item,
    batch,
)
from tests.support.logs import check_and_number

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig

NOW = TIMESTAMP + 50
LONG_MAX = 2**63 - 1
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = [Record(0, TIMESTAMP, b"a", b"one"), Record(1, TIMESTAMP - 9, b"b", b"two " * 50)]


def rules(**changes: Any) -> AppendRules:
    """Kafka's defaults, and `changes` under the names of TopicConfig."""
    values: dict[str, Any] = {
        "max_message_bytes": 1_048_588,
        "segment_bytes": 1 << 30,
        "compact": False,
        "is_append_time": False,
        "message_timestamp_before_max_ms": LONG_MAX,
        "message_timestamp_after_max_ms": LONG_MAX,
        "compression_type": "producer",
        "compression_gzip_level": -1,
        "compression_lz4_level": 9,
        "compression_zstd_level": 3,
        "message_magic": 2,
    }
    assert changes.keys() <= values.keys()
    return AppendRules(cast("TopicConfig", SimpleNamespace(**values | changes)))


def check(
    records: bytes | bytearray, applied: AppendRules | None = None, **arguments: Any
) -> tuple[memoryview, BatchHeader]:
    """`check_and_number` at offset 100, leader epoch 7."""
    return check_and_number(
        memoryview(bytearray(records)), applied or rules(), 100, 7, NOW, **arguments
    )


def code_of(
    records: bytes | bytearray, applied: AppendRules | None = None, **arguments: Any
) -> ErrorCode:
    """The error code that answers `records`."""
    try:
        check(records, applied, **arguments)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def refused(records: bytes | bytearray, applied: AppendRules) -> InvalidRecordsError:
    with pytest.raises(InvalidRecordsError) as raised:
        check(records, applied)
    return raised.value


def with_length(length: int) -> bytes:
    return struct.pack(">qi", 0, length) + batch(b"x" * 50)[12:]


def assert_stored(records: memoryview, header: BatchHeader, codec: str) -> None:
    """Check everything that is true of an accepted batch."""
    assert records.nbytes == header.size_bytes
    assert crc_is_valid(records, 0, len(records))
    stored = read_header(records)
    assert all(getattr(stored, name) == getattr(header, name) for name in HEADER_FIELDS)
    assert (header.base_offset, header.leader_epoch) == (100, 7)
    assert CODEC_NAMES[header.codec] == codec
    decoded = decode_records(records)
    assert [(r.offset, r.key, r.value) for r in decoded] == [
        (100 + index, record.key, record.value) for index, record in enumerate(RECORDS)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_an_ordinary_batch_is_only_numbered(codec: str) -> None:
    data = build_batch(RECORDS, codec=codec, producer_id=5, producer_epoch=1, base_sequence=0)
    records, header = check(data)
    assert_stored(records, header, codec)
    assert records[16:] == data[16:]
    assert header.last_offset == 101
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 0)
    assert header.max_timestamp == TIMESTAMP
    assert not header.is_append_time


def test_the_requests_own_memory_is_patched() -> None:
    memory = memoryview(bytearray(build_batch(RECORDS)))
    records, _ = check_and_number(memory, rules(), 100, 7, NOW)
    assert records.obj is memory.obj
    assert read_header(memory).base_offset == 100


def test_append_time_topics_have_no_limits() -> None:
    applied = rules(
        is_append_time=True, message_timestamp_before_max_ms=0, message_timestamp_after_max_ms=0
    )
    records, header = check(build_batch(RECORDS), applied)
    assert_stored(records, header, "none")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("before_max_ms", "after_max_ms", "timestamps", "refused_ones"),
    [
        (100, LONG_MAX, (NOW - 100, NOW), []),
        (100, LONG_MAX, (NOW - 101, NOW), [0]),
        (LONG_MAX, 10, (NOW, NOW + 10), []),
        (LONG_MAX, 10, (NOW, NOW + 11), [1]),
        (5, 5, (NOW - 6, NOW + 6), [0, 1]),
        (5, 5, (-1, -1), []),
    ],
)
def test_timestamps_too_far_from_now(
    codec: str,
    before_max_ms: int,
    after_max_ms: int,
    timestamps: tuple[int, int],
    refused_ones: list[int],
) -> None:
    data = build_batch([Record(0, timestamp, b"k", b"v") for timestamp in timestamps], codec=codec)
    applied = rules(
        message_timestamp_before_max_ms=before_max_ms, message_timestamp_after_max_ms=after_max_ms
    )
    if not refused_ones:
        assert code_of(data, applied) == ErrorCode.NONE
        return
    error = refused(data, applied)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [record_error.batch_index for record_error in error.record_errors] == refused_ones
    assert f"timestamp {timestamps[refused_ones[0]]}" in error.record_errors[0].message


@pytest.mark.parametrize("codec", CODECS)
def test_compacted_topics_want_keys(codec: str) -> None:
    records = [Record(0, 5, key, b"v") for key in (None, b"k", None, b"", None, None)]
    error = refused(build_batch(records, codec=codec), rules(compact=True))
    assert error.code == ErrorCode.INVALID_RECORD
    assert [record_error.batch_index for record_error in error.record_errors] == [0, 2, 4, 5]
    assert "topic-0 is compacted" in error.record_errors[0].message
    assert str(error.detail).startswith("4 of 6 records refused: record 0: ")
    assert str(error.detail).count("; record ") == 2
    assert code_of(build_batch(RECORDS, codec=codec), rules(compact=True)) == ErrorCode.NONE


def test_a_wrong_timestamp_decides_over_a_missing_key() -> None:
    records = [Record(0, NOW, None, b""), Record(1, 0, b"k", b"")]
    applied = rules(compact=True, message_timestamp_before_max_ms=10)
    error = refused(build_batch(records), applied)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [record_error.batch_index for record_error in error.record_errors] == [0, 1]


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("is_append_time", [False, True])
def test_another_compression_type_builds_the_batch_anew(
    source: str, target: str, is_append_time: bool
) -> None:
    data = build_batch(
        RECORDS,
        codec=source,
        producer_id=9,
        producer_epoch=3,
        base_sequence=40,
        is_transactional=True,
    )
    records, header = check(data, rules(compression_type=target, is_append_time=is_append_time))
    assert_stored(records, header, "none" if target == "uncompressed" else target)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 3, 40)
    assert header.is_transactional
    assert header.is_append_time == is_append_time
    times = [record.timestamp for record in decode_records(records)]
    assert times == [NOW] * 2 if is_append_time else [TIMESTAMP, TIMESTAMP - 9]
    assert header.max_timestamp == max(times)


def test_recompression_may_make_a_batch_too_large() -> None:
    data = build_batch([Record(0, 5, None, bytes(50_000))], codec="zstd")
    applied = rules(compression_type="uncompressed", max_message_bytes=40_000)
    assert len(data) < 200
    assert code_of(data, applied) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_lengths_of_no_format(length: int) -> None:
    assert code_of(with_length(length)) == ErrorCode.CORRUPT_MESSAGE
    assert code_of(with_length(length)[:30]) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [14, 20, 48])
def test_a_batch_smaller_than_its_header(length: int) -> None:
    assert code_of(with_length(length)) == ErrorCode.CORRUPT_MESSAGE
    assert code_of(with_length(length)[: length + 12]) == ErrorCode.CORRUPT_MESSAGE


def test_no_whole_batch() -> None:
    data = batch(b"value")
    for cut in range(len(data)):
        assert code_of(data[:cut]) == ErrorCode.INVALID_RECORD
    assert code_of(with_length(2**31 - 1)) == ErrorCode.INVALID_RECORD


def test_the_base_offset_of_a_client_is_0() -> None:
    data = build_batch(RECORDS, base_offset=3)
    assert code_of(data) == ErrorCode.INVALID_RECORD
    records, header = check(data, origin="coordinator")
    assert_stored(records, header, "none")


def test_sizes_against_both_limits() -> None:
    data = batch(b"x" * 1000)
    size = len(data)
    assert code_of(data, rules(max_message_bytes=size)) == ErrorCode.NONE
    assert code_of(data, rules(max_message_bytes=size - 1)) == ErrorCode.MESSAGE_TOO_LARGE
    assert code_of(data, rules(segment_bytes=size)) == ErrorCode.NONE
    for changes in ({}, {"is_append_time": True}, {"compact": False, "compression_type": "lz4"}):
        applied = rules(segment_bytes=100, **changes)
        expected = (
            ErrorCode.NONE if "compression_type" in changes else ErrorCode.RECORD_LIST_TOO_LARGE
        )
        assert code_of(data, applied) == expected


def test_every_flipped_byte_is_noticed() -> None:
    """From the CRC on; before it stand what the broker writes, the length and the magic."""
    data = batch(Item(b"value", b"key"))
    for position in range(17, len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x10
        assert code_of(broken) == ErrorCode.CORRUPT_MESSAGE, position


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs(codec: int) -> None:
    assert code_of(batch(b"x", attributes=codec)) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_coordinator_writes_control_batches() -> None:
    marker = build_marker(
        TransactionMarker(True, 1), producer_id=5, producer_epoch=0, timestamp_ms=NOW
    )
    for applied in (rules(), rules(compact=True), rules(compression_type="zstd")):
        records, header = check(marker, applied, origin="coordinator")
        assert header.is_control
        assert header.codec == 0
        assert (header.base_offset, len(records)) == (100, len(marker))
    assert code_of(batch(b"x", attributes=6), origin="coordinator") == (
        ErrorCode.UNKNOWN_SERVER_ERROR
    )


def test_a_refusal_that_is_told_later() -> None:
    checked = check_before_append(
        memoryview(bytearray(batch(b"x", count=5))), rules(), NOW, "topic-0"
    )
    with pytest.raises(KafkaError) as raised:
        checked.number(100, 7)
    assert raised.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "changes",
    [{}, {"is_append_time": True}, {"compression_type": "lz4"}],
    ids=["as sent", "append time", "another codec"],
)
@pytest.mark.parametrize("claimed_ms", [TIMESTAMP, TIMESTAMP + 9], ids=["true", "claims too much"])
def test_the_header_that_is_handed_on_is_the_one_in_the_bytes(
    codec: str, changes: dict[str, Any], claimed_ms: int
) -> None:
    """Code behind the validator does not read it again."""
    claimed_batch = build_batch(RECORDS, codec=codec)
    set_timestamps(claimed_batch, 0, CODEC_NAMES.index(codec), claimed_ms)
    records, header = check(claimed_batch, rules(**changes))
    assert repr(header) == repr(read_header(records))
    assert crc_is_valid(records, 0, header.size_bytes)
