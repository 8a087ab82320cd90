"""`compare`: two sides by their places, and what has to be the same in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.cli.errors import UsageError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.verbs.compare.rules import CompareRules
from minibroker.pipeline.verbs.compare.side import check_word, side_of
from minibroker.pipeline.verbs.table import VERBS
from tests.support.plans import plan_from

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.compare.plan import ComparePlan


def plan(words: str) -> ComparePlan:
    compare_plan: ComparePlan = plan_from(VERBS["compare"], words.split())
    return compare_plan


def test_two_sides_stand_by_their_places() -> None:
    compare_plan = plan("orders --ignore timestamp,order copy@there:9093 --bootstrap here:9092")
    a, b = compare_plan.sides
    assert (a.topic, a.kafka.bootstrap) == ("orders", "here:9092")
    assert (b.topic, b.kafka.bootstrap) == ("copy", "there:9093")
    assert compare_plan.rules == CompareRules(timestamp=False, order=False)
    assert compare_plan.rules.ignored == ("timestamp", "order")
    assert compare_plan.rules.columns == ("value", "headers")


def test_b_has_the_cluster_of_a_unless_something_is_said() -> None:
    settings = "--kafka security.protocol=SSL --bootstrap here:9092"
    assert plan(f"x y {settings}").sides[1].kafka.settings == {"security.protocol": "SSL"}
    moved = plan(f"x y {settings} --with-bootstrap there:9092").sides[1].kafka
    assert (moved.bootstrap, moved.settings) == ("there:9092", {"security.protocol": "SSL"})
    other = plan(f"x y {settings} --with-bootstrap t:1 --with-kafka client.id=c").sides[1].kafka
    assert (other.bootstrap, other.settings) == ("t:1", {"client.id": "c"})
    same = plan(f"x y {settings} --with-kafka client.id=c").sides[1].kafka
    assert same.bootstrap == "here:9092"
    assert same.settings == {"security.protocol": "SSL", "client.id": "c"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "A is missing: for instance orders"),
        ("orders", "B is missing: for instance orders-copy"),
        ("orders copy more", "unknown argument 'more'"),
        ("orders ./lake#a/b", "B 'a/b' cannot be a topic"),
        ("x y --ignore key", "--ignore 'key': expected timestamp, partition, headers or order"),
        ("x y --same-offsets --ignore partition", "offsets belong to partitions"),
        ("x y --examples 10001", "--examples is 10,001: at most 10,000"),
        ("x y --source connector", "unknown argument '--source'"),
    ],
)
def test_wrong_usage(words: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(words)
    assert sentence in str(caught.value)


OWN_CLUSTER = Kafka("here:9092")


@pytest.mark.parametrize(
    ("word", "topic", "archive", "place"),
    [
        ("orders", "orders", None, "orders@here:9092"),
        ("orders@there:9093", "orders", None, "orders@there:9093"),
        ("./lake", None, "./lake", "./lake"),
        ("/lake#orders", "orders", "/lake", "/lake#orders"),
        ("s3a://bucket/x", None, "s3a://bucket/x", "s3a://bucket/x"),
    ],
)
def test_a_word_names_a_side(word: str, topic: str | None, archive: str | None, place: str) -> None:
    side = side_of(check_word(word), OWN_CLUSTER)
    assert (side.topic, side.archive, side.label) == (topic, archive, place)
    if "there" in word:
        assert side.kafka.bootstrap == "there:9093"


@pytest.mark.parametrize("word", ["", "a b", "./lake#a b", "@host:9092", "a@", "a@host"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be a topic|expected HOST:PORT"):
        check_word(word)
