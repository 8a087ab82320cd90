"""An exchange as one line, and in full."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.kafka.protocol.messages.heartbeat import HeartbeatResponse
from minibroker.kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.protocol.messages.sync_group import SyncGroupResponse
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    TopicPartition as GivenPartitions,
)
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from minibroker.trace.embedded import RECORDS_MAX, TEXT_MAX, record_lines
from minibroker.trace.full_text import LINES_MAX, full_lines, message_lines
from minibroker.trace.line import clock_text, to_line
from tests.support.batches import Item, batch
from tests.support.trace_frames import EXCHANGE


def text_of(message: Any, version: int) -> str:
    return "\n".join(message_lines(message, version))


def test_an_exchange_has_a_head_and_all_fields() -> None:
    exchange = EXCHANGE._replace(
        api="Heartbeat",
        version=4,
        error="REBALANCE_IN_PROGRESS",
        answer=HeartbeatResponse(error_code=27),
    )
    assert "\n".join(full_lines(exchange)) == (
        "22:13:20.123 Heartbeat v4 #1, correlation id 7\n"
        "  client: shop (127.0.0.1:50000), connection 1\n"
        "  broker: 127.0.0.1:9092\n"
        "  outcome: REBALANCE_IN_PROGRESS, 3.2 ms\n"
        "  subject: orders-0\n"
        "  request: 10 B\n"
        "  answer: 10 B\n"
        "    throttleTimeMs: 0\n"
        "    errorCode: 27 REBALANCE_IN_PROGRESS"
    )


def test_structs_and_lists_are_indented() -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="a"), MetadataRequestTopic(name=None)]
    )
    assert text_of(request, 10) == (
        "    topics:\n"
        "      - topicId: AAAAAAAAAAAAAAAAAAAAAA\n"
        "        name: a\n"
        "      - topicId: AAAAAAAAAAAAAAAAAAAAAA\n"
        "        name: null\n"
        "    allowAutoTopicCreation: true\n"
        "    includeClusterAuthorizedOperations: false\n"
        "    includeTopicAuthorizedOperations: false"
    )


def test_records_are_opened() -> None:
    records = batch(Item(b"value", b"key", None, ((b"h", b"1"),)), b"\xff", None)
    partition = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(topic_data=[TopicProduceData(name="a", partition_data=[partition])])
    text = text_of(request, 9)
    assert "- 0: 'key' → 'value' (1 headers)" in text
    assert "- 1: null → 0xff" in text
    assert "- 2: null → null" in text


def test_the_bytes_of_a_consumer_group_are_opened() -> None:
    topics = ConsumerProtocolSubscription(topics=["a", "b\n"]).to_bytes(0)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=topics)]
    assert "metadata: a b\\n" in text_of(JoinGroupRequest(protocols=protocols), 5)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[GivenPartitions(topic="a", partitions=[0, 2])]
    )
    assert "assignment: a-0 a-2" in text_of(SyncGroupResponse(assignment=assignment.to_bytes(0)), 3)
    other = text_of(SyncGroupResponse(assignment=b"\x00\x00other"), 3)
    assert "assignment: 7 B 0x00006f74686572" in other


def test_foreign_text_stays_on_its_line() -> None:
    text = text_of(
        MetadataRequest(topics=[MetadataRequestTopic(name="a\n  b: \x1b[31m" + "c" * 9_999)]), 9
    )
    assert "name: a\\n  b: \\x1b[31mccc" in text
    assert len(max(text.split("\n"), key=len)) < 1_100


def test_lines_of_a_message_are_bounded() -> None:
    topics = [MetadataRequestTopic(name="a") for _ in range(2 * LINES_MAX)]
    lines = list(message_lines(MetadataRequest(topics=topics), 9))
    assert len(lines) == LINES_MAX + 1
    assert lines[-1].endswith(f"({LINES_MAX} lines are shown)")


def test_records_that_are_shown_are_bounded() -> None:
    assert len(record_lines(batch(*[b"v"] * 50))) == RECORDS_MAX + 1
    (line,) = record_lines(batch(b"v" * 10_000))
    assert line == f"0: null → '{'v' * TEXT_MAX}…'"


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_damaged_records_are_left_out(cut: int) -> None:
    assert record_lines(batch(b"v")[:-cut]) in ([], ["…"])
    damaged = bytearray(batch(b"v"))
    damaged[-cut] ^= 0xFF
    assert record_lines(damaged) is not None


def test_a_line_has_time_api_client_subject_and_duration() -> None:
    assert to_line(EXCHANGE) == (
        "22:13:20.123 Produce v9 shop → 127.0.0.1:9092: orders-0: ok, 3.2 ms"
    )


def test_a_line_has_the_error_and_the_fault() -> None:
    line = to_line(EXCHANGE._replace(error="NOT_LEADER_OR_FOLLOWER", fault="error\n", subject=""))
    assert line.endswith("→ 127.0.0.1:9092: NOT_LEADER_OR_FOLLOWER, 3.2 ms, fault: error\\n")
    assert to_line(EXCHANGE._replace(answer_bytes=None)).endswith(": orders-0: no answer")


def test_a_client_without_an_id_has_its_address() -> None:
    assert " 127.0.0.1:50000 → " in to_line(EXCHANGE._replace(client_id=None))
    long = to_line(EXCHANGE._replace(client_id="\n" + "x" * 32_000))
    assert len(long) < 160
    assert long.isprintable()


def test_a_time_of_no_calendar_is_a_dash() -> None:
    assert clock_text(1e300) == "-"
