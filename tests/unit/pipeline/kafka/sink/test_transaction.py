"""Sentences for users when Kafka refuses a transaction; tests/pipeline runs transactions."""

from __future__ import annotations

import re

import pytest

from minibroker.kafka.error_codes import ERROR_CODES
from minibroker.kafka.errors import KafkaError
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.transaction import refusal

OPTIONS = parse_options({"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"})
POSITION = Position("prefix", "query", "run", batch=7, task=2, tasks=4)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("PRODUCER_FENCED", "taken over by another writer .* one query at a time"),
        ("INVALID_PRODUCER_EPOCH", "open for more than 900000 ms: let one query"),
        ("UNKNOWN_TOPIC_OR_PARTITION", "not there .* create the topic.* change the columns"),
        ("MESSAGE_TOO_LARGE", "too large .*kafka.message.max.bytes"),
        ("INVALID_TRANSACTION_TIMEOUT", "transactions of 900000 ms: lower the option"),
        ("TOPIC_AUTHORIZATION_FAILED", r"not written: the reason \(TOPIC_AUTHORIZATION_FAILED\)"),
    ],
)
def test_an_error_is_one_sentence_that_names_what_to_do(code: str, sentence: str) -> None:
    text = refusal(KafkaError(ERROR_CODES[code], "the reason"), POSITION, OPTIONS)
    assert re.search(sentence, text)
