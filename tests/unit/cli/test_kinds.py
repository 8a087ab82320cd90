"""Kinds of values: read from words and from Python, refused, and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import (
    COUNT,
    DURATION,
    PAIRS,
    RATE,
    SIZE,
    SWITCH,
    TOPICS,
    Either,
    Kind,
    addresses,
    bytes_of,
    check_choice,
    check_topic,
    choice,
    duration_ms,
    near,
)
from minibroker.pipeline.options.kinds import EXPRESSIONS, speed_of, topic_or_directory


@pytest.mark.parametrize(
    ("text", "wanted_ms"),
    [("250ms", 250), ("30s", 30_000), ("1m", 60_000), ("1h30m", 5_400_000), ("2 d", 172_800_000)],
)
def test_durations(text: str, wanted_ms: int) -> None:
    assert duration_ms(text) == wanted_ms


@pytest.mark.parametrize("text", ["", "1", "m", "1x", "-1m", "0s", "1m later", "1 minute"])
def test_no_durations(text: str) -> None:
    with pytest.raises(UsageError, match="is no duration"):
        duration_ms(text)


def test_speeds() -> None:
    assert [speed_of(text) for text in ("max", "1x", "0.5x", "60", "1e2x")] == [
        None,
        1.0,
        0.5,
        60.0,
        100.0,
    ]
    for text in ("", "fast", "0x", "-1x", "nanx", "infx"):
        with pytest.raises(UsageError, match="expected 1x"):
            speed_of(text)


def test_names_of_topics() -> None:
    assert check_topic("a.B_c-9") == "a.B_c-9"
    for name in ("", ".", "..", "a/b", "a b", "a" * 250, "ä"):
        with pytest.raises(UsageError, match="cannot be a topic"):
            check_topic(name)


def test_choices_name_what_is_allowed() -> None:
    assert check_choice("csv", ("json", "csv")) == "csv"
    with pytest.raises(UsageError, match="'xml': expected json or csv"):
        check_choice("xml", ("json", "csv"))


def test_sizes() -> None:
    assert [bytes_of(text) for text in ("7", "512KB", "64 mb", "1GiB")] == [
        7,
        512 << 10,
        64 << 20,
        1 << 30,
    ]
    for text in ("", "0", "MB", "-1MB", "1TB", "1.5GB"):
        with pytest.raises(UsageError, match="is no size: expected for instance 64MB"):
            bytes_of(text)


def test_a_value_of_python_is_read_as_its_text_is() -> None:
    for kind, words, value in (
        (COUNT, ["5"], 5),
        (DURATION, ["1h30m"], "1h30m"),
        (Kind("DIR"), ["/a/b"], Path("/a/b")),
        (TOPICS, ["a,b", "c"], ["a", "b", "c"]),
        (TOPICS, ["a"], "a"),
        (EXPRESSIONS, ["sum(a, b)", "count(*)"], ("sum(a, b)", "count(*)")),
        (PAIRS, ["a=b", "c=d=e"], {"a": "b", "c": "d=e"}),
        (SWITCH, [""], True),
        (Either("fail", "continue"), ["continue"], False),
    ):
        assert kind.of_words(words) == kind.of_python(value), kind.metavar


@pytest.mark.parametrize(
    ("kind", "words", "value"),
    [
        (COUNT, "0", 0),
        (COUNT, "9" * 5000, "9" * 5000),
        (COUNT, "1.5", 1.5),
        (RATE, "50MB/min", "50MB/min"),
        (SIZE, "64 potatoes", "64 potatoes"),
        (TOPICS, "a/b", ["a/b"]),
        (choice("a", "b"), "c", "c"),
        (Kind("HOST:PORT", addresses), "h:70000", "h:70000"),
    ],
)
def test_both_ways_in_refuse_with_the_same_sentence(kind: Kind, words: str, value: object) -> None:
    sentences = []
    for parse, arguments in ((kind.of_words, [words]), (kind.of_python, value)):
        with pytest.raises(UsageError) as caught:
            parse(arguments)  # type: ignore[operator]
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]


def test_python_values_of_another_type_are_refused() -> None:
    for kind, value, kind_words in (
        (SWITCH, "yes", "'yes': expected True or False"),
        (Either("fail", "continue"), "fail", "'fail': expected True or False"),
        (PAIRS, "a=b", "'a=b': expected a dict"),
        (COUNT, True, "True: expected text"),
    ):
        with pytest.raises(UsageError, match=kind_words):
            kind.of_python(value)


def test_a_value_is_shown_as_a_person_writes_it() -> None:
    assert [SIZE.show(size) for size in (64 << 20, 3 << 10, 1 << 30, 7)] == [
        "64MB",
        "3KB",
        "1GB",
        "7",
    ]
    assert [DURATION.show(ms) for ms in (5_400_000, 250, 90_061_001)] == [
        "1h30m",
        "250ms",
        "1d1h1m1s1ms",
    ]
    assert PAIRS.show({"ssl.key.password": "secret", "a": "b"}) == "ssl.key.password=… a=…"
    assert Either("fail", "continue").show(value=False) == "continue"
    assert DURATION.as_python(600_000) == "10m"
    assert TOPICS.as_python(("a",)) == ("a",)


def test_a_near_word_is_named() -> None:
    assert near("--tpic", ["--topic", "--to"]) == " (did you mean --topic?)"
    assert near("--nothing-like-it", ["--topic", "--to"]) == ""


def test_a_topic_is_told_from_a_directory() -> None:
    assert [topic_or_directory(text) for text in ("./out", "totals")] == ["./out", "totals"]
    with pytest.raises(UsageError, match="'a b' cannot be a topic"):
        topic_or_directory("a b")


def test_a_rate_is_a_size_a_second() -> None:
    assert [RATE.of_words([text]) for text in ("50MB/s", "50 mb / S", "7")] == [
        50 << 20,
        50 << 20,
        7,
    ]
    assert RATE.show(50 << 20) == "50MB/s"
    with pytest.raises(UsageError, match="'fast' is no rate: expected for instance 50MB/s"):
        RATE.of_words(["fast"])
