"""Records of a batch as the tools show them, formats 0 to 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.record import Record
from minibroker.tools.log_file import LogFile
from minibroker.tools.log_records import (
    ControlRecord,
    LogRecord,
    control_of,
    delete_horizon_ms,
    records_of,
    timestamp_type,
)
from tests.support import message_sets

if TYPE_CHECKING:
    from pathlib import Path


def records_in(path: Path, content: bytes) -> list[LogRecord]:
    file_path = path / "0.log"
    file_path.write_bytes(content)
    with LogFile(str(file_path)) as file:
        return [record for batch in file.batches() for record in records_of(batch)]


def test_sequences_follow_the_batch_s_first_and_wrap(tmp_path: Path) -> None:
    sent = build_batch(
        [Record(0, 1, b"k", None), Record(1, 2, None, b"v")],
        base_offset=5,
        producer_id=1,
        producer_epoch=0,
        base_sequence=2**31 - 1,
    )
    first, second = records_in(tmp_path, bytes(sent))
    assert (first.offset, first.sequence, first.key, first.crc) == (5, 2**31 - 1, b"k", None)
    assert (second.offset, second.sequence, second.value) == (6, 0, b"v")


def test_a_wrapper_of_format_1_counts_from_its_own_offset(tmp_path: Path) -> None:
    inner = message_sets.plain(b"a", b"b", b"c")
    wrapper = message_sets.wrapper(message_sets.GZIP, inner, offset=12)
    found = records_in(tmp_path, wrapper)
    assert [record.offset for record in found] == [10, 11, 12]
    assert [record.is_valid for record in found] == [True] * 3
    late = message_sets.wrapper(
        message_sets.GZIP, inner, offset=12, attributes=message_sets.APPEND_TIME, timestamp=99
    )
    assert {record.timestamp for record in records_in(tmp_path, late)} == {99}


def test_a_wrapper_of_format_0_keeps_its_offsets(tmp_path: Path) -> None:
    inner = message_sets.message(b"a", magic=0, offset=7)
    inner += message_sets.message(b"b", magic=0, offset=9, wrong_crc=True)
    wrapper = message_sets.wrapper(message_sets.SNAPPY, inner, magic=0, offset=9)
    found = records_in(tmp_path, wrapper)
    assert [(record.offset, record.timestamp, record.is_valid) for record in found] == [
        (7, -1, True),
        (9, -1, False),
    ]


@pytest.mark.parametrize(
    "content",
    [
        message_sets.wrapper(message_sets.GZIP, b"", offset=1),
        message_sets.wrapper(message_sets.GZIP, bytes(40), offset=1),
        message_sets.message(None, None, attributes=message_sets.GZIP),
        message_sets.wrapper(message_sets.GZIP, message_sets.message(b"a", offset=5) * 2, offset=3),
        message_sets.wrapper(message_sets.GZIP, message_sets.message(b"a", magic=3), offset=3),
    ],
)
def test_wrappers_that_cannot_be_opened(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorruptionError):
        records_in(tmp_path, content)


def test_control_records(tmp_path: Path) -> None:
    marker = build_marker(
        TransactionMarker(is_commit=True, coordinator_epoch=8),
        producer_id=1,
        producer_epoch=0,
        timestamp_ms=1,
    )
    (record,) = records_in(tmp_path, bytes(marker))
    assert control_of(record) == ControlRecord(1, 8)
    assert control_of(record).name == "COMMIT"
    assert control_of(record._replace(key=b"\x00\x00\x00\x02")).name == "LEADER_CHANGE"
    assert control_of(record._replace(key=b"\x00\x00\x00\x63")).name == "UNKNOWN"
    for broken in (record._replace(key=b"\x00"), record._replace(value=None)):
        with pytest.raises(CorruptionError):
            control_of(broken)


def test_times_in_a_header(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    old = message_sets.message(b"a", magic=0)
    path.write_bytes(old + bytes(build_batch([Record(0, 1, None, b"v")], base_offset=1)))
    with LogFile(str(path)) as file:
        first, second = (batch.header for batch in file.batches())
    assert timestamp_type(first) == "NoTimestampType"
    assert timestamp_type(second) == "CreateTime"
    assert delete_horizon_ms(second) is None
    second.attributes |= 0x48
    assert timestamp_type(second) == "LogAppendTime"
    assert delete_horizon_ms(second) == 1
