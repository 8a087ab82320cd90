"""`minibroker topics`, as a person and as a script use it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Broker
from tests.unit.verbs.conftest import Program

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def empty() -> Iterator[Program]:
    with Broker() as broker:
        yield Program(broker.bootstrap)


def test_topics_are_made_listed_changed_and_deleted(empty: Program) -> None:
    assert "there are no topics" in empty.run("topics").lines[0]
    created = empty.run("topics", "--create", "orders:3:retention.ms=60000", "--create", "users")
    assert created.lines == ["orders is made", "users is made"]
    assert [line.split()[:2] for line in empty.run("topics").lines[2:]] == [
        ["orders", "3"],
        ["users", "1"],
    ]
    assert empty.run("topics", "orders", "--partitions", "5").lines == ["orders has 5 partitions"]
    changed = empty.run("topics", "orders", "--set=cleanup.policy=compact", "--set=retention.ms=")
    assert changed.lines == ["orders is changed"]
    (view,) = json.loads(empty.run("topics", "orders", "--json").out)
    assert len(view["partitions"]) == 5
    assert view["settings"] == {"cleanup.policy": "compact"}
    assert view["partitions"][4]["in_sync"] == [view["partitions"][4]["leader"]]
    assert empty.run("topics", "orders", "users", "--delete").code == 0
    assert json.loads(empty.run("topics", "--json").out) == []


def test_a_description_has_settings_offsets_and_sizes(program: Program, broker: Broker) -> None:
    broker.create_topic("described", config={"retention.ms": "5000000"})
    broker.produce("described", [b"x" * 1000] * 3)
    text = "\n".join(program.run("topics", "described").lines)
    assert "described: 1 partitions, id " in text
    assert "  retention.ms=5000000" in text
    assert text.splitlines()[-1].split()[4:] == ["0", "3", "3.0", "KiB"]
    with_defaults = program.run("topics", "described", "--all").lines
    assert "  max.message.bytes=1048588" in with_defaults


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("none",), "there is no topic none: minibroker topics lists"),
        (("none", "--delete"), "there is no topic none: minibroker topics lists"),
        (("--create", "t:1:retention.ms=x"), "topic t cannot be made: INVALID_CONFIG"),
        (("--create", "twice"), "topic twice is there already: choose another name"),
    ],
)
def test_a_failure_is_one_sentence(
    program: Program, broker: Broker, words: tuple[str, ...], sentence: str
) -> None:
    if words[-1] == "twice" and "twice" not in broker.topics:
        broker.create_topic("twice")
    ran = program.run("topics", *words)
    assert ran.code == 1
    assert sentence in ran.errors
    assert ran.errors.count("\n") == 1


def test_a_topic_that_is_there_may_be_left(program: Program) -> None:
    for answer in ("left is made", "left was there"):
        assert program.run("topics", "--create", "left", "--if-missing").lines == [answer]


@pytest.mark.parametrize(
    "words",
    [
        ("--delete",),
        ("t", "--delete", "--partitions", "3"),
        ("t", "--create", "x"),
        ("--if-missing",),
        ("--create", "t:0"),
        ("a/b",),
    ],
)
def test_wrong_usage_changes_nothing(program: Program, words: tuple[str, ...]) -> None:
    ran = program.run("topics", *words)
    assert ran.code == 2
    assert "see minibroker topics --help" in ran.errors


def test_nobody_listens() -> None:
    ran = Program("127.0.0.1:1").run("topics")
    assert ran.code == 1
    sentence = "minibroker topics: no broker answers at 127.0.0.1:1: Connection refused\n"
    assert ran.errors == sentence
