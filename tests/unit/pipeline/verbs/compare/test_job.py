"""Buckets that differ are read again: none of equal sides."""

from __future__ import annotations

from minibroker.kafka.foreign_text import key_text
from minibroker.pipeline.verbs.compare.digests import BucketDigest, RunDigest
from minibroker.pipeline.verbs.compare.job import differing
from minibroker.pipeline.verbs.compare.rules import CompareRules
from minibroker.pipeline.verbs.compare.source import EVERYWHERE


def run(partition: int, *sums: int, order: int = 0, is_ordered: bool = True) -> RunDigest:
    """Return a run with a bucket for each sum."""
    buckets = {
        number: BucketDigest(1, (told_sum, told_sum), (order, order))
        for number, told_sum in enumerate(sums)
        if told_sum
    }
    return RunDigest(0, "t", partition, 0, 9, 0, 0, buckets, is_ordered)


def test_equal_sides_are_not_read_again() -> None:
    runs = {0: run(0, 1, 2), 1: run(1, 3)}
    assert differing(runs, dict(runs), CompareRules()) == {}
    assert differing(runs, dict(runs), CompareRules(partition=False)) == {}
    assert differing({}, {}, CompareRules()) == {}


def test_buckets_that_differ_are_named_by_partition() -> None:
    assert differing({0: run(0, 1, 2)}, {0: run(0, 1, 3)}, CompareRules()) == {0: [1]}
    assert differing({0: run(0, 1)}, {1: run(1, 1)}, CompareRules()) == {0: [0], 1: [0]}
    assert differing({0: run(0, 1, order=1)}, {0: run(0, 1, order=2)}, CompareRules()) == {0: [0]}
    assert (
        differing({0: run(0, 1, order=1)}, {0: run(0, 1, order=2)}, CompareRules(order=False)) == {}
    )


def test_an_order_that_is_not_known_is_looked_at() -> None:
    assert differing({0: run(0, 1)}, {0: run(0, 1, is_ordered=False)}, CompareRules()) == {0: [0]}
    unordered = {0: run(0, 1, is_ordered=False)}
    assert differing(unordered, unordered, CompareRules(order=False)) == {}


def test_in_other_partitions_records_of_a_bucket_are_added_up() -> None:
    a, b = {0: run(0, 1, 2)}, {0: run(0, 1), 1: run(1, 0, 2)}
    assert differing(a, b, CompareRules(partition=False, order=False)) == {}
    assert differing(a, b, CompareRules(partition=False)) == {EVERYWHERE: [1]}, (
        "its order is not known"
    )
    changed = {0: run(0, 1, 3)}
    assert differing(a, changed, CompareRules(partition=False, order=False)) == {EVERYWHERE: [1]}


def test_keys_are_shown_as_text_or_as_bytes() -> None:
    assert key_text("schlüssel".encode(), is_cut=False) == "schlüssel"
    assert key_text(b"\x00\x01", is_cut=False) == "0x0001"
    assert key_text(b"key\xc3", is_cut=False) == "key\\xc3", "no character, and it is shown"


def test_a_key_that_goes_on_is_cut_between_characters() -> None:
    start = ("a" + "ü" * 30).encode()
    assert key_text(start[:48], is_cut=True) == "a" + "ü" * 23 + "…"
    assert key_text(b"\x00" * 48, is_cut=True) == "0x" + "00" * 48 + "…"
