"""A task's loop against a client that says what a test tells it: events, silence, what is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, Message

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.source import reader
from minibroker.pipeline.offsets import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Sequence

EOF = KafkaError._PARTITION_EOF
GIVEN = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "fetchWith": "librdkafka"}


def record(offset: int) -> Message:
    return Message(topic="t", partition=0, offset=offset, value=b"v", timestamp=(1, 1))


def event(code: int, offset: int = 0) -> Message:
    return Message(topic="t", partition=0, offset=offset, error=KafkaError(code))


class SaidClient:
    """Answers `consume` with what it was given, and is silent then."""

    def __init__(self, *answers: Sequence[Message]) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []
        self.closed = False

    def consume(self, count: int, _timeout_s: float) -> list[Message]:
        self.asked.append(count)
        return list(self.answers.pop(0)) if self.answers else []

    def close(self) -> None:
        self.closed = True


def read(
    monkeypatch: pytest.MonkeyPatch, client: SaidClient, start: int, end: int, **more: str
) -> list[int]:
    monkeypatch.setattr(reader, "range_consumer", lambda *_: client)
    given: dict[str, Any] = {**GIVEN, **more}
    wanted = options.parse(given, streaming=False)
    batches = reader.read_range(wanted, OffsetRange("t", 0, start, end))
    found = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    assert client.closed
    return found


def test_a_record_at_the_end_ends_the_range_and_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SaidClient([record(3), record(4), record(9)])

    assert read(monkeypatch, client, 3, 9) == [3, 4]
    assert client.asked == [6]


def test_the_end_of_the_partition_ends_the_range_where_no_record_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SaidClient([record(3)], [event(EOF, 9)])

    assert read(monkeypatch, client, 3, 9) == [3]


def test_an_end_of_the_partition_before_that_of_the_range_is_no_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SaidClient([record(3), event(EOF, 4)], [], [record(4), record(5)])

    assert read(monkeypatch, client, 3, 6) == [3, 4, 5]


def test_passing_errors_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SaidClient(
        [event(KafkaError._ALL_BROKERS_DOWN)], [event(KafkaError._TRANSPORT)], [record(0)]
    )

    assert read(monkeypatch, client, 0, 1) == [0]


def test_a_refusal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SaidClient([event(KafkaError.TOPIC_AUTHORIZATION_FAILED)])

    with pytest.raises(PipelineError, match="cannot read t-0 from offset 0 to before offset 5"):
        read(monkeypatch, client, 0, 5)
    assert client.closed


def test_an_offset_out_of_range_is_data_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SaidClient([record(0)], [event(KafkaError._AUTO_OFFSET_RESET)])

    with pytest.raises(PipelineError, match="records of t-0 from offset 1 to before offset 5 are"):
        read(monkeypatch, client, 0, 5)


def test_silence_ends_with_the_last_word_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SaidClient([event(KafkaError._ALL_BROKERS_DOWN)])

    with pytest.raises(PipelineError, match=r"nothing came for .* last word: .*; is the broker up"):
        read(monkeypatch, client, 0, 5, **{"kafkaConsumer.pollTimeoutMs": "1"})
