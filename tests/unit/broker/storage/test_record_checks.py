"""The work that the records of a batch may cost; verdicts: `test_validator_against_kafka.py`."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.broker.config.keys import TOPIC_KEYS
from minibroker.broker.storage import record_checks
from minibroker.broker.storage.record_checks import AppendRules, check_contents, read_records
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records import contents
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.compression import compress
from minibroker.kafka.records.produce_rules import InvalidRecordsError
from tests.support.batches import TIMESTAMP, Item, batch
from tests.support.logs import config

NOW = TIMESTAMP + 50
PLAIN = AppendRules(config())
COMPACTED = AppendRules(config(cleanup_policy="compact"))
BUILT = AppendRules(config(compression_type="gzip"))
CODECS = (1, 2, 3, 4)


def contents_of(data: bytes, rules: AppendRules = PLAIN) -> Any:
    if rules is BUILT:
        return read_records(memoryview(bytearray(data)), read_header(data), rules, NOW, "topic-0")
    return check_contents(memoryview(bytearray(data)), read_header(data), rules, NOW, "topic-0")


def code_of(data: bytes, rules: AppendRules = PLAIN) -> ErrorCode:
    with pytest.raises(KafkaError, match="topic-0") as raised:
        contents_of(data, rules)
    return raised.value.code


def packed(codec: int, *items: Item | bytes) -> bytes:
    return batch(*items, attributes=codec, payload=compress(codec, batch(*items)[61:]))


@pytest.mark.parametrize("codec", CODECS)
def test_records_that_unfold_to_too_much(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_checks, "DECOMPRESSED_BYTES_MAX", 10_000)
    assert code_of(packed(codec, b"x" * 20_000)) == ErrorCode.MESSAGE_TOO_LARGE


def test_the_list_of_refused_records_is_bounded() -> None:
    """A batch of a few KB can hold millions, each of them wrong."""
    count = 20_000
    payload = compress(4, (b"\x0c\0\0\0\x01\x01\0" * count))
    data = batch(attributes=4, payload=payload, count=count, last_offset_delta=count - 1)
    with pytest.raises(InvalidRecordsError) as raised:
        contents_of(data, COMPACTED)
    assert len(raised.value.record_errors) == 10_000


# Few bytes that unfold to much.

ONE = bytes((12, 0, 0, 0, 1, 1, 0))
"""A whole record: no key, no value, no headers, offset 0."""
MANY = 150_000


def repeated(record: bytes, count: int, codec: int = 4) -> bytes:
    """Return a batch whose compressed content is one record again and again."""
    payload = compress(codec, record * count)
    return batch(attributes=codec, payload=payload, count=count, last_offset_delta=count - 1)


@pytest.mark.pure("counts calls of read_varint")
@pytest.mark.parametrize("record", [ONE, bytes(7)])
def test_records_out_of_order_are_read_for_some_way_only(
    record: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    read_varint = contents.read_varint

    def count_calls(*arguments: int) -> tuple[int, int]:
        nonlocal calls
        calls += 1
        return read_varint(*arguments)

    monkeypatch.setattr(contents, "read_varint", count_calls)
    data = repeated(record, MANY)
    assert len(data) < 200
    assert code_of(data) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert calls <= 10 * contents.READ_ON_MAX


def test_a_fault_behind_the_first_offset_out_of_order_is_told_first() -> None:
    near, far = contents.READ_ON_MAX - 10, contents.READ_ON_MAX + 10
    for count, code in ((near, ErrorCode.INVALID_RECORD), (far, ErrorCode.UNKNOWN_SERVER_ERROR)):
        payload = compress(1, ONE * count + b"\xff" * 7)
        data = batch(attributes=1, payload=payload, count=count + 1, last_offset_delta=count)
        assert code_of(data) == code


@pytest.mark.pure("replaces contents._read_all")
def test_more_records_than_the_bytes_have_room_for_are_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contents, "_read_all", None)
    payload = compress(1, bytes(7 * MANY))
    count = MANY + 1
    data = batch(attributes=1, payload=payload, count=count, last_offset_delta=count - 1)
    assert code_of(data) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("rules", [PLAIN, BUILT])
def test_far_more_headers_than_bytes_are_refused(rules: AppendRules) -> None:
    def with_headers(count: int) -> bytes:
        """Return a record with so many headers without a value."""
        count_field = bytes((count << 1 & 0x7F | 0x80, count >> 6 & 0x7F | 0x80, count >> 13))
        body = bytes((0, 0, 0, 1, 1)) + count_field + bytes((0, 1)) * count
        size = len(body)
        return bytes((size << 1 & 0x7F | 0x80, size >> 6 & 0x7F | 0x80, size >> 13)) + body

    assert code_of(repeated(with_headers(80_000), 1), rules) == ErrorCode.MESSAGE_TOO_LARGE
    contents_of(repeated(with_headers(9_000), 1), rules)


@pytest.mark.parametrize("codec", CODECS)
def test_far_more_records_than_bytes_are_not_built_anew(codec: int) -> None:
    count = 400_000 if codec == 2 else MANY
    data = repeated(ONE, count, codec)
    if count > record_checks.unfolded_records_max(read_header(data)):
        assert code_of(data, BUILT) == ErrorCode.MESSAGE_TOO_LARGE
    few = repeated(ONE, 10_000, codec)
    view = memoryview(bytearray(few))
    assert len(read_records(view, read_header(few), BUILT, NOW, "topic-0")) == 10_000


def test_every_compression_type_of_the_topic_key_is_understood() -> None:
    allowed = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    assert "compression.type" in TOPIC_KEYS
    applied_rules = [AppendRules(config(compression_type=name)) for name in allowed]
    assert [applied.codec for applied in applied_rules] == [None, 0, 1, 2, 3, 4]
    assert [applied.level for applied in applied_rules] == [None, None, -1, None, 9, 3]
