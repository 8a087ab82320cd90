"""Stored messages with their int16 in front."""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.stored.control_record import ControlRecordKey, EndTxnMarker
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.kafka.protocol.versioned import version_of


def test_an_offset_commit_key_as_kafka_stores_it() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=7)
    data = key.to_bytes(1)
    assert data == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x07"
    assert version_of(data) == 1
    assert OffsetCommitKey.from_bytes(data) == key


def test_an_abort_marker_as_kafka_stores_it() -> None:
    assert ControlRecordKey(type=0).to_bytes(0) == bytes(4)
    marker = EndTxnMarker(coordinator_epoch=5)
    assert marker.to_bytes(0) == b"\x00\x00\x00\x00\x00\x05"


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_value_comes_back(version: int) -> None:
    value = OffsetCommitValue(offset=9, metadata="m", commit_timestamp=11)
    assert OffsetCommitValue.from_bytes(value.to_bytes(version)) == value


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="versions 0 to 4, not 5"):
        OffsetCommitValue().to_bytes(5)
    with pytest.raises(ProtocolError, match="versions 0 to 4, found 5"):
        OffsetCommitValue.from_bytes(b"\x00\x05" + bytes(40))


def test_too_few_and_too_many_bytes_are_refused() -> None:
    data = OffsetCommitKey(group="g", topic="t", partition=7).to_bytes(1)
    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            OffsetCommitKey.from_bytes(data[:length])
    with pytest.raises(ProtocolError, match="1 bytes behind"):
        OffsetCommitKey.from_bytes(data + b"x")
    with pytest.raises(ProtocolError):
        version_of(b"\x00")
