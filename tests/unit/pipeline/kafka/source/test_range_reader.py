"""A range against a broker that says what a test tells it: errors that pass, losses, silence."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any, cast

import pytest

from minibroker.client.client import PartitionLeader
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import topic_id_to_text
from minibroker.kafka.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.kafka.source import range_reader as wire_reader
from minibroker.pipeline.kafka.source.range_reader import read_span
from minibroker.pipeline.offsets import OffsetRange
from tests.unit.client.told_batches import batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from minibroker.client.client import Client

TOPIC_ID = bytes(range(16))


def answer(records: bytes = b"", error: int = 0, high: int = 100, **more: Any) -> FetchResponse:
    data = PartitionData(error_code=error, high_watermark=high, records=records, **more)
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[data])])


class ToldConnection:
    """Answers a request with the next answer of its broker."""

    is_retired = False

    def __init__(self, broker: ToldBroker) -> None:
        self.broker = broker
        self.waiting = 0
        self.topic_id = broker.leader("t", 0).topic_id

    @property
    def is_waiting(self) -> bool:
        return self.waiting > 0

    def version_for(self, request: Any, oldest: int, newest: int) -> int:
        assert request is FetchRequest
        assert oldest == 4
        return newest

    def send(self, request: FetchRequest, response: Any, version: int) -> None:
        assert response is FetchResponse
        self.waiting += 1
        self.broker.requests.append((version, request))

    def receive(self) -> FetchResponse:
        self.waiting -= 1
        response = self.broker.answers.pop(0) if self.broker.answers else answer(high=0)
        if isinstance(response, Exception):
            raise response
        for topic in response.responses:
            topic.topic_id = self.topic_id
        return response

    def close(self) -> None:
        self.broker.closed += 1


class ToldBroker:
    """Stands for the client and the broker behind it."""

    def __init__(
        self, *answers: FetchResponse | Exception, first: int = 0, ids: tuple[bytes, ...] = ()
    ) -> None:
        self.answers = list(answers)
        self.first = first
        self.ids = list(ids)
        """Ids of the topic: each counts until it is forgotten."""
        self.failures: list[Exception] = []
        """Answers about the start of the log that are none."""
        self.requests: list[tuple[int, FetchRequest]] = []
        self.closed = self.given_back = self.forgotten = 0

    def leader(self, topic: str, partition: int) -> PartitionLeader:
        assert (topic, partition) == ("t", 0)
        id_ = self.ids[min(self.forgotten, len(self.ids) - 1)] if self.ids else TOPIC_ID
        return PartitionLeader(("x", 1), 5 + self.forgotten, id_)

    def forget(self, topic: str) -> None:
        assert topic == "t"
        self.forgotten += 1

    def connection(self, address: tuple[str, int]) -> ToldConnection:
        assert address == ("x", 1)
        return ToldConnection(self)

    def give_back(self, connection: ToldConnection) -> None:
        assert connection.broker is self
        self.given_back += 1

    def earliest(self, topic: str, partition: int) -> int:
        assert (topic, partition) == ("t", 0)
        if self.failures:
            raise self.failures.pop()
        return self.first

    def offsets_asked(self) -> list[int]:
        return [request.topics[0].partitions[0].fetch_offset for _, request in self.requests]


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_reader, "PAUSE_S", 0.001)
    monkeypatch.setattr(wire_reader, "UNKNOWN_PAUSES_S", (0.001, 0.001))


def read(broker: ToldBroker, start: int, end: int, **more: str) -> list[int]:
    rows = batches(broker, start, end, **more)
    return [offset for batch in rows for offset in batch.column("offset").to_pylist()]


def batches(broker: ToldBroker, start: int, end: int, **more: str) -> Iterator[pa.RecordBatch]:
    settings = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", **more}
    source_options = options.parse(settings, streaming=False)
    client = cast("Client", broker)
    span = OffsetRange("t", 0, start, end)
    return read_span(source_options, connection_settings(source_options.settings), client, span)


def test_the_next_answer_is_on_its_way_before_this_one_is_decoded() -> None:
    broker = ToldBroker(answer(batch(0, 5)), answer(batch(5, 5)))
    assert read(broker, 2, 8) == [2, 3, 4, 5, 6, 7]
    assert broker.offsets_asked() == [2, 5]
    assert [version for version, _ in broker.requests] == [16, 16]
    assert broker.requests[0][1].topics[0].topic_id == TOPIC_ID
    assert (broker.given_back, broker.closed) == (1, 0)


def test_an_answer_that_goes_beyond_the_range_gives_no_empty_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire_reader, "CHUNK_RECORDS", 1)
    broker = ToldBroker(answer(batch(0, 5) + batch(5, 5) + batch(10, 5)))
    assert [rows.num_rows for rows in batches(broker, 2, 7)] == [3, 2]


def test_errors_that_pass_are_asked_again() -> None:
    broker = ToldBroker(
        answer(batch(0, 2)),
        answer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ConnectionResetError("gone"),
        answer(batch(2, 2)),
    )
    assert read(broker, 0, 4) == [0, 1, 2, 3]
    assert broker.forgotten == 2
    assert broker.closed == 1


def test_another_leader_is_asked_whether_its_log_goes_on_from_here() -> None:
    ends = EpochEndOffset(epoch=5, end_offset=1)
    moved = answer(error=ErrorCode.FENCED_LEADER_EPOCH)
    broker = ToldBroker(answer(batch(0, 2)), moved, answer(diverging_epoch=ends))
    with pytest.raises(
        PipelineError, match=r"t-0 from offset 2 .* are gone \(another leader's log"
    ):
        read(broker, 0, 4)
    epochs = [request.topics[0].partitions[0].last_fetched_epoch for _, request in broker.requests]
    assert epochs == [-1, -1, 5]


def test_records_that_are_gone_are_a_loss_or_passed_by() -> None:
    def broker() -> ToldBroker:
        out_of_range = answer(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        return ToldBroker(answer(batch(0, 2)), out_of_range, answer(batch(5, 4)), first=6)

    with pytest.raises(PipelineError, match=r"from offset 2 to before offset 9 are gone \(OFFSET_"):
        read(broker(), 0, 9)
    assert read(broker(), 0, 9, failOnDataLoss="false") == [0, 1, 6, 7, 8]
    asked_twice = broker()
    asked_twice.answers.insert(1, asked_twice.answers[1])
    asked_twice.failures = [ConnectionResetError("gone")]
    assert read(asked_twice, 0, 9, failOnDataLoss="false") == [0, 1, 6, 7, 8]


def test_a_topic_that_stays_unknown_is_gone() -> None:
    unknown = [answer(error=ErrorCode.UNKNOWN_TOPIC_ID)] * 2
    assert read(ToldBroker(*unknown, answer(batch(0, 3))), 0, 3) == [0, 1, 2]
    with pytest.raises(PipelineError, match="are gone"):
        read(ToldBroker(*unknown * 2), 0, 3)
    assert read(ToldBroker(*unknown * 2), 0, 3, failOnDataLoss="false") == []


def test_a_topic_made_anew_is_not_read_on() -> None:
    """Its records have the offsets of others; without an answer yet, its planned id tells."""
    unknown = answer(error=ErrorCode.UNKNOWN_TOPIC_ID)

    def broker() -> ToldBroker:
        return ToldBroker(
            answer(batch(0, 2)), unknown, answer(batch(2, 2)), ids=(TOPIC_ID, bytes(range(1, 17)))
        )

    with pytest.raises(
        PipelineError, match=r"from offset 2 .* are gone \(the topic has another id"
    ):
        read(broker(), 0, 4)
    assert read(broker(), 0, 4, failOnDataLoss="false") == [0, 1]

    either = b64encode(b"\xff" * 8 + bytes(range(8))).decode().rstrip("=")
    assert "/" in either
    for text in (either, either.replace("/", "_")):
        broker_of_it = ToldBroker(answer(batch(0, 2)), ids=(b"\xff" * 8 + bytes(range(8)),))
        assert read(broker_of_it, 0, 2, topicIds=json.dumps({"t": text})) == [0, 1]
    topic_ids = json.dumps({"t": topic_id_to_text(TOPIC_ID), "another": "x"})
    known_before = ToldBroker(answer(batch(0, 2)), ids=(bytes(range(1, 17)), TOPIC_ID))
    assert read(known_before, 0, 2, topicIds=topic_ids) == [0, 1]
    assert read(ToldBroker(answer(batch(0, 2))), 0, 2, topicIds=topic_ids) == [0, 1]
    for allowed in ("true", "false"):
        another = ToldBroker(answer(batch(0, 2)), ids=(bytes(range(1, 17)),))
        with pytest.raises(PipelineError, match=r"from offset 0 .* the topic was made anew"):
            read(another, 0, 2, topicIds=topic_ids, failOnDataLoss=allowed)


def test_no_record_before_the_end_is_believed_at_the_second_answer() -> None:
    broker = ToldBroker(answer(batch(0, 2)), answer(high=9), answer(high=9))
    assert read(broker, 0, 9) == [0, 1]
    assert len(broker.requests) == 3


def test_a_committed_reader_goes_by_the_last_stable_offset() -> None:
    early = answer(high=9, last_stable_offset=1)
    broker = ToldBroker(early, early, early, answer(batch(0, 9)))
    assert len(read(broker, 0, 9, **{"kafka.isolation.level": "read_committed"})) == 9


def test_an_answer_over_the_quota_is_waited_for() -> None:
    broker = ToldBroker(FetchResponse(throttle_time_ms=5), answer(batch(0, 2)))
    assert read(broker, 0, 2) == [0, 1]


def test_an_answer_about_another_partition_is_asked_for_again() -> None:
    another = answer(batch(0, 2), partition_index=1)
    empty = FetchResponse(responses=[FetchableTopicResponse()])
    broker = ToldBroker(another, empty, answer(batch(0, 2)))
    assert read(broker, 0, 2) == [0, 1]
    assert (broker.closed, broker.forgotten) == (2, 2)


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (answer(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED), "cannot read .* TOPIC_AUTHORIZATION"),
        (answer(batch(0)[:-1] + b"!"), "the batch of offset 0 has a wrong CRC"),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION, "no"), "cannot read .* UNSUPPORTED_VERSION"),
    ],
)
def test_errors_that_stay_are_one_sentence(
    failure: FetchResponse | Exception, sentence: str
) -> None:
    with pytest.raises(PipelineError, match=sentence):
        read(ToldBroker(failure), 0, 2)


def test_silence_ends_after_the_time_that_was_told() -> None:
    with pytest.raises(PipelineError, match=r"nothing came for .* word: closed; is the broker up"):
        read(
            ToldBroker(*[ConnectionResetError("closed")] * 999),
            0,
            2,
            **{"kafkaConsumer.pollTimeoutMs": "30"},
        )
