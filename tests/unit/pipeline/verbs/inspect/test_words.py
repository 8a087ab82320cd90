"""Sentences that are true of the numbers they are made from."""

from __future__ import annotations

from typing import Any

from minibroker.pipeline.verbs.inspect.facts import (
    CodecFacts,
    Defect,
    FrequentKey,
    GroupLag,
    PartitionFacts,
    ProducerFacts,
    Slice,
    TopicFacts,
)
from minibroker.pipeline.verbs.inspect.words import ReportSentence, findings, share

NOON_MS = 1_790_000_000_000


def topic(*records: int, **fields: Any) -> TopicFacts:
    partitions = tuple(
        PartitionFacts(number, count, count * 10, 0, count - 1, NOON_MS, NOON_MS + 100_000)
        if count
        else PartitionFacts(number)
        for number, count in enumerate(records)
    )
    return TopicFacts("t", partitions, **fields)


def sentences_about(facts: TopicFacts) -> str:
    return "\n".join(("! " if each.is_warning else "") + each.text for each in findings(facts))


def test_a_skewed_topic_is_told_with_its_key() -> None:
    sentences = sentences_about(
        topic(50, 850, 50, 50, frequent_keys=(FrequentKey("hot", 600, 1),), keys=40)
    )
    assert (
        "! Skewed: partition 1 holds 85 % of the records, 3.4 times the fair share of 4 "
        "partitions; the key “hot” alone makes 71 % of that partition."
    ) in sentences
    assert "! The most frequent of about 40 keys, “hot”, is in 60 % of the records." in sentences


def test_a_key_in_other_partitions_is_not_blamed() -> None:
    sentences = sentences_about(
        topic(100, 900, frequent_keys=(FrequentKey("hot", 600, None),), keys=40)
    )
    assert "! Skewed: partition 1 holds 90 % of the records, 1.8 times" in sentences
    assert "alone makes" not in sentences


def test_skew_without_keys_is_not_blamed_on_keys() -> None:
    facts = topic(100, 900)
    facts = facts._replace(
        partitions=(facts.partitions[0], facts.partitions[1]._replace(without_key=800))
    )
    assert "have no key, so it was not the key that chose the partition" in sentences_about(facts)


def test_an_even_topic_is_told_so_and_empty_partitions_are_not_passed_over() -> None:
    assert (
        "spread evenly: the fullest of 3 partitions, partition 1, has 1.03 times"
        in sentences_about(topic(100, 103, 97))
    )
    assert "! Partition 2 holds no record." in sentences_about(topic(400, 100, 0))
    assert "! 2 of 4 partitions hold no record." in sentences_about(topic(400, 100, 0, 0))


def test_few_records_or_one_partition_are_no_skew() -> None:
    for facts in (topic(9, 1), topic(5000)):
        assert "Skewed" not in sentences_about(facts)
        assert "evenly" not in sentences_about(facts)
    assert findings(topic(0, 0)) == [ReportSentence("It holds no records.")]


def test_order_and_rates_are_told() -> None:
    facts = topic(
        1000, slice_ms=2000, slices=(Slice(NOON_MS, 600, 1), Slice(NOON_MS + 98_000, 400, 1))
    )
    assert "Timestamps never go back within a partition." in sentences_about(facts)
    assert (
        "On average 10 records/s; the busiest 2 s, from 2026-09-21 14:13:20, had 300 records/s."
    ) in sentences_about(facts)
    late = facts.partitions[0]._replace(out_of_order=5, most_behind_ms=61_000)
    assert (
        "5 records (0.5 %) have an earlier timestamp than one before them in their partition, "
        "1 min 1 s at most."
    ) in sentences_about(facts._replace(partitions=(late,)))
    at_once = facts.partitions[0]._replace(last_ms=NOON_MS + 5)
    assert "records/s" not in sentences_about(facts._replace(partitions=(at_once,), slice_ms=1))


def test_records_without_time_say_nothing_of_time() -> None:
    assert "imestamp" not in sentences_about(TopicFacts("t", (PartitionFacts(0, 5, 5, 0, 4),)))


def test_keys_tombstones_and_gaps() -> None:
    facts = PartitionFacts(0, 200, 1, 0, 399, without_key=50, tombstones=2)
    sentences = sentences_about(TopicFacts("t", (facts,)))
    assert "25 % of the records have no key." in sentences
    assert "2 records (1.0 %) are tombstones." in sentences
    assert "50 % of the offsets hold no record" in sentences
    assert "No record has a key." in sentences_about(
        TopicFacts("t", (facts._replace(without_key=200),))
    )
    once = TopicFacts("t", (facts,), keys=150, frequent_keys=(FrequentKey("a", 1, 0),))
    assert "No key is in more than one record." in sentences_about(once)
    few = sentences_about(
        TopicFacts("t", (PartitionFacts(0, 20_000, 1, 0, 20_001, without_key=3),))
    )
    assert "Less than 0.1 % of the records have no key." in few
    assert "Less than 0.1 % of the offsets hold no record" in few


def test_storage_is_told() -> None:
    codecs = (
        CodecFacts("zstd", 2, 3, 10, 1024, 10_240, 4),
        CodecFacts("gzip", 1, 1, 9, 1024, 2048),
    )
    sentences = sentences_about(
        topic(10, codecs=codecs, defects=(Defect(3, "0.log", 1_234, 50, "it is cut"),))
    )
    assert "Compression (gzip, zstd) makes 12.0 KiB of records into 2.0 KiB, 6.0 to 1." in sentences
    assert "9 records are in the message formats of before Kafka 0.11." in sentences
    assert "4 records of aborted transactions are still stored." in sentences
    assert "! 0.log of partition 3 is torn: 50 bytes from position 1,234 on" in sentences
    plain = sentences_about(topic(10, codecs=(CodecFacts("none", 2, 3, 10, 1024, 900),)))
    assert "Nothing is compressed; the batches take 1.0 KiB." in plain


def test_producers_are_told() -> None:
    sound = ProducerFacts(0, 7, 3, 9, 1, 0, 0)
    assert (
        "One idempotent producer: no record is there twice and none is missing."
        in sentences_about(topic(10, producers=(sound,)))
    )
    sentences = sentences_about(
        topic(
            10,
            producers=(
                sound,
                sound._replace(producer_id=8, partition=2, missing=3),
                sound._replace(producer_id=9, repeated=4),
                sound._replace(producer_id=9, partition=1, repeated=5),
            ),
        )
    )
    assert (
        "! 3 idempotent producers: 9 records are there twice, 5 of them from producer 9 in "
        "partition 1."
    ) in sentences
    assert "3 records are not there (compacted, or lost), all of them from producer 8" in sentences


def test_groups_are_told() -> None:
    behind = GroupLag("g", "stable", 1_500, 2, 0)
    done = GroupLag("h", "empty", 0, 2, 0)
    assert "Group “g” (stable) is 1,500 offsets behind the end." in sentences_about(
        topic(10, groups=(behind, done))
    )
    assert "Its group has read everything." in sentences_about(topic(10, groups=(done,)))
    assert "All 2 groups have read everything." in sentences_about(topic(10, groups=(done, done)))


def test_share_is_times_the_fair_one() -> None:
    facts = topic(30, 10)
    assert [share(each, facts) for each in facts.partitions] == [1.5, 0.5]
    assert share(PartitionFacts(0), topic(0)) == 0.0


def test_a_topic_sums_up_its_partitions() -> None:
    topic = TopicFacts(
        "t",
        (
            PartitionFacts(0, 10, 1000, 5, 20, 7, 90, out_of_order=2),
            PartitionFacts(1),
            PartitionFacts(2, 1, 10, 0, 0, 3, 3),
        ),
        codecs=(CodecFacts("none", 2, 1, 1, 70, 10), CodecFacts("zstd", 2, 1, 10, 30, 190)),
    )
    assert (topic.records, topic.size_bytes, topic.out_of_order) == (11, 1010, 2)
    assert (topic.first_ms, topic.last_ms) == (3, 90)
    assert (topic.stored_bytes, topic.unfolded_bytes) == (100, 200)
    assert [partition.offsets_without_record for partition in topic.partitions] == [6, 0, 0]


def test_a_topic_without_times_has_none() -> None:
    topic = TopicFacts("t", (PartitionFacts(0, 1),))
    assert (topic.first_ms, topic.last_ms, topic.stored_bytes) == (None, None, 0)
