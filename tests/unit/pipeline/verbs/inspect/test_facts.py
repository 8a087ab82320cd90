"""Sums over partitions and codecs, also where there is nothing."""

from __future__ import annotations

from minibroker.pipeline.verbs.inspect.facts import CodecFacts, PartitionFacts, TopicFacts


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
