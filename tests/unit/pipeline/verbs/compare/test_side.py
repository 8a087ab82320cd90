"""Sides are named in one word."""

from __future__ import annotations

import pytest

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.verbs.compare.side import check_word, side_of

HERE = Kafka("here:9092")


@pytest.mark.parametrize(
    ("word", "topic", "archive", "where"),
    [
        ("orders", "orders", None, "orders@here:9092"),
        ("orders@there:9093", "orders", None, "orders@there:9093"),
        ("./lake", None, "./lake", "./lake"),
        ("/lake#orders", "orders", "/lake", "/lake#orders"),
        ("s3a://bucket/x", None, "s3a://bucket/x", "s3a://bucket/x"),
    ],
)
def test_a_word_names_a_side(word: str, topic: str | None, archive: str | None, where: str) -> None:
    side = side_of(check_word(word), HERE)
    assert (side.topic, side.archive, side.where) == (topic, archive, where)
    if "there" in word:
        assert side.kafka.bootstrap == "there:9093"


@pytest.mark.parametrize("word", ["", "a b", "./lake#a b", "@host:9092", "a@", "a@host"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(JobUsageError, match=r"cannot be a topic|expected HOST:PORT"):
        check_word(word)
