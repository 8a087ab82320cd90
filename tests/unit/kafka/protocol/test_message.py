"""Generated classes as their users see them: construction, comparison, refusals, special cases."""

from __future__ import annotations

import subprocess
import sys

import pytest

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import APIS, METADATA, load_messages
from minibroker.kafka.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer
from minibroker.kafka.protocol.stored.control_record import ControlRecordKey, EndTxnMarker
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.kafka.protocol.versioned import version_of
from tests.support.message_bytes import body_of


def test_fields_that_are_not_given_have_the_protocols_defaults() -> None:
    request = FetchRequest()
    assert (request.replica_id, request.max_bytes, request.cluster_id) == (-1, 0x7FFFFFFF, None)
    assert request.topics == []
    assert FetchRequest().topics is not request.topics
    assert PartitionData().records is None


def test_an_array_that_may_be_null_takes_none_as_null() -> None:
    assert PartitionData().aborted_transactions == []
    assert PartitionData(aborted_transactions=None).aborted_transactions is None


def test_messages_compare_by_value_and_show_their_fields() -> None:
    assert EpochEndOffset(epoch=1) == EpochEndOffset(epoch=1)
    assert EpochEndOffset(epoch=1) != EpochEndOffset(epoch=2)
    assert EpochEndOffset() != ProduceRequest()
    assert repr(EpochEndOffset(epoch=1)) == "EpochEndOffset(epoch=1, end_offset=-1)"
    with pytest.raises(TypeError):
        hash(EpochEndOffset())


def test_a_message_has_no_room_for_a_misspelt_field() -> None:
    with pytest.raises(AttributeError):
        FetchRequest().max_byte = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        FetchRequest(max_byte=1)  # type: ignore[call-arg]


def test_a_value_that_the_version_cannot_carry_is_refused() -> None:
    request = ProduceRequest(transactional_id="t")
    with pytest.raises(ValueError, match="ProduceRequest version 2 cannot carry transactional_id"):
        request.write(Writer(), 2)
    request.write(Writer(), 3)


def test_an_ignorable_value_is_dropped_where_the_version_has_no_place() -> None:
    FetchRequest(rack_id="r1").write(Writer(), 10)


def test_a_tagged_value_is_refused_where_there_are_no_tags() -> None:
    partition = PartitionData(diverging_epoch=EpochEndOffset(epoch=3, end_offset=4))
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    with pytest.raises(ValueError, match="diverging_epoch"):
        answer.write(Writer(), 11)


def test_none_is_refused_in_versions_that_have_no_null() -> None:
    with pytest.raises(ValueError, match="topics is None"):
        MetadataRequest(topics=None).write(Writer(), 0)
    MetadataRequest(topics=None).write(Writer(), 1)


def test_a_tagged_struct_of_defaults_is_not_written() -> None:
    with_default = PartitionData(diverging_epoch=EpochEndOffset())
    assert body_of(PartitionData(), 12) == body_of(with_default, 12)


def test_a_topic_id_that_is_not_set_is_sixteen_zero_bytes() -> None:
    topic = FetchableTopicResponse()
    assert topic.topic_id == ZERO_UUID == bytes(16)
    assert body_of(topic, 13).startswith(bytes(16))


def test_an_unknown_tagged_field_is_skipped() -> None:
    data = body_of(EpochEndOffset(epoch=3, end_offset=4), 12)[:-1] + b"\x01\x63\x03abc"
    assert EpochEndOffset.read(Reader(data), 12) == EpochEndOffset(epoch=3, end_offset=4)


def test_a_tagged_field_shorter_than_its_value_is_refused() -> None:
    data = bytearray(body_of(FetchRequest(cluster_id="abc"), 12))
    data[-5] = 3
    with pytest.raises(ProtocolError):
        FetchRequest.read(Reader(data), 12)


def test_messages_load_by_key_at_first_use() -> None:
    assert load_messages(METADATA) == (MetadataRequest, MetadataResponse)
    for key in APIS:
        request, response = load_messages(key)
        assert request.API_KEY == response.API_KEY == key
        assert (APIS[key].min_version, APIS[key].max_version) == request.VERSIONS
        assert APIS[key].flexible_from == request.FLEXIBLE_FROM
    with pytest.raises(KeyError):
        load_messages(52)


def test_one_message_module_brings_in_no_other() -> None:
    """Starting the broker must not load ninety of them."""
    code = (
        "import sys, minibroker.kafka.protocol.messages.produce\n"
        "print(*sorted(n for n in sys.modules if n.startswith('minibroker.kafka.protocol.')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    package = "minibroker.kafka.protocol"
    assert result == [
        f"{package}.message",
        f"{package}.messages",
        f"{package}.messages.produce",
        f"{package}.primitives",
        f"{package}.writer",
    ]


# Stored messages with their int16 in front.


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
