"""Transaction markers: written, read back, and the control records that are none."""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import crc_is_valid, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import TransactionMarker, build_marker, read_marker
from minibroker.kafka.records.record import Record, decode_records
from tests.support.batches import CONTROL, TRANSACTIONAL, batch


def control_batch(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch(
        [Record(0, 0, key, value)], is_control=True, is_transactional=True, producer_id=1
    )


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_reads_back(is_commit: bool) -> None:
    marker = TransactionMarker(is_commit, 12)
    data = build_marker(
        marker, producer_id=9, producer_epoch=3, timestamp_ms=1000, base_offset=70, leader_epoch=2
    )
    header = read_header(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 3, -1)
    assert (header.base_offset, header.leader_epoch, header.max_timestamp) == (70, 2, 1000)
    assert crc_is_valid(data, 0, len(data))
    assert read_marker(data) == marker
    assert read_marker(b"--" + data, 2, header) == marker


def test_the_bytes_of_key_and_value() -> None:
    data = build_marker(
        TransactionMarker(True, 258), producer_id=1, producer_epoch=0, timestamp_ms=0
    )
    [record] = decode_records(data)
    assert record.key == b"\x00\x00\x00\x01"
    assert record.value == b"\x00\x00\x00\x00\x01\x02"


def test_an_emptied_control_batch_and_other_control_records() -> None:
    empty = batch(attributes=CONTROL | TRANSACTIONAL, last_offset_delta=0)
    assert read_marker(empty) is None
    assert read_marker(control_batch(b"\x00\x00\x00\x02", b"")) is None


def test_later_versions_only_add_fields() -> None:
    data = control_batch(b"\x00\x05\x00\x00more", b"\x00\x07\x00\x00\x00\x09more")
    assert read_marker(data) == TransactionMarker(False, 9)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (None, b"", "key of null, expected at least 4"),
        (b"\x00\x00\x00", b"", "key of 3 bytes"),
        (b"\xff\xff\x00\x01", b"", "key of version -1"),
        (b"\x00\x00\x00\x01", None, "value of null, expected at least 6"),
        (b"\x00\x00\x00\x01", b"\x00", "value of 1 bytes"),
        (b"\x00\x00\x00\x01", b"\x80\x00\x00\x00\x00\x00", "value of version -32768"),
    ],
)
def test_broken_markers(key: bytes | None, value: bytes | None, message: str) -> None:
    with pytest.raises(CorruptionError, match=message):
        read_marker(control_batch(key, value))
