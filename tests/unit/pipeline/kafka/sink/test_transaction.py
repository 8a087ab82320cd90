"""Sentences for users when Kafka refuses a transaction; tests/pipeline runs transactions."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.transaction import Transaction, explain

OPTIONS = parse_options({"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"})
POSITION = Position("prefix", "query", "run", batch=7, task=2, tasks=4)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (KafkaError._FENCED, "taken over by another writer .* one query at a time"),
        (KafkaError._TRANSPORT, r"no broker answers at localhost:9092 \(refused\): start one"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "not there .* create the topic"),
        (KafkaError._UNKNOWN_PARTITION, "not there .* change the columns"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "too large .*kafka.message.max.bytes"),
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, "transactions of 900000 ms: lower the option"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, r"not written: .*TOPIC_AUTHORIZATION_FAILED\)"),
    ],
)
def test_an_error_is_one_sentence_that_names_what_to_do(code: int, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        raise PipelineError(explain(KafkaError(code), POSITION, OPTIONS, "refused"))


def test_a_setting_that_librdkafka_does_not_know_is_named() -> None:
    options = parse_options(
        {"kafka.bootstrap.servers": "localhost:9092", "kafka.max.block.ms": "1"}
    )

    with pytest.raises(PipelineError, match=r"max.block.ms.*see the options kafka"):
        Transaction(options, POSITION)
