"""Stored messages with their int16 in front."""

from __future__ import annotations

import pytest

from minibroker.errors import ProtocolError
from minibroker.protocol.stored.control_record import ControlRecordKey, EndTxnMarker
from minibroker.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.protocol.versioned import decode_versioned, encode_versioned, version_of


def test_an_offset_commit_key_as_kafka_stores_it() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=7)
    data = encode_versioned(key, 1)
    assert data == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x07"
    assert version_of(data) == 1
    assert decode_versioned(OffsetCommitKey, data) == key


def test_an_abort_marker_as_kafka_stores_it() -> None:
    assert encode_versioned(ControlRecordKey(type=0), 0) == bytes(4)
    marker = EndTxnMarker(coordinator_epoch=5)
    assert encode_versioned(marker, 0) == b"\x00\x00\x00\x00\x00\x05"


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_value_comes_back(version: int) -> None:
    value = OffsetCommitValue(offset=9, metadata="m", commit_timestamp=11)
    assert decode_versioned(OffsetCommitValue, encode_versioned(value, version)) == value


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="versions 0 to 4, not 5"):
        encode_versioned(OffsetCommitValue(), 5)
    with pytest.raises(ProtocolError, match="versions 0 to 4, found 5"):
        decode_versioned(OffsetCommitValue, b"\x00\x05" + bytes(40))


def test_too_few_and_too_many_bytes_are_refused() -> None:
    data = encode_versioned(OffsetCommitKey(group="g", topic="t", partition=7), 1)
    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            decode_versioned(OffsetCommitKey, data[:length])
    with pytest.raises(ProtocolError, match="1 bytes behind"):
        decode_versioned(OffsetCommitKey, data + b"x")
    with pytest.raises(ProtocolError):
        version_of(b"\x00")
