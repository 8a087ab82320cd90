"""Topics by name and id, and the hash of their layout; beside Kafka's in tests/compat."""

from __future__ import annotations

from minibroker.broker.cluster.image import BrokerInfo, MetadataImage
from minibroker.broker.groups.consumer.topics import NO_HASH
from tests.support.group_topics import ID, image_with, topic, topics_of


def test_topics_are_found_both_ways() -> None:
    topics = topics_of(image_with(topic(3)))
    assert (topics.id_of("t"), topics.name_of(ID), topics.partition_count(ID)) == (ID, "t", 3)
    assert topics.ids_of(["t", "u"]) == {ID}
    assert (topics.id_of("u"), topics.name_of(bytes(16)), topics.names()) == (None, None, ["t"])


def test_hash_is_kafkas_number() -> None:
    """Computed by Kafka 4.4.0's Utils.computeGroupHash for one topic of one partition."""
    assert topics_of(image_with(topic())).hash_of(["t", "not there"]) == 9071989324415409264
    assert topics_of(image_with(topic())).hash_of(["not there"]) == NO_HASH


def test_hash_changes_with_partitions_and_racks() -> None:
    image = image_with(topic())
    topics = topics_of(image)
    hashes = {topics.hash_of(["t"])}
    image.topics["t"] = topic(2)
    hashes.add(topics.hash_of(["t"]))
    image.brokers[0] = BrokerInfo(0, (), "rack")
    image.topics["t"] = topic(2)
    hashes.add(topics.hash_of(["t"]))
    assert len(hashes) == 3


def test_new_topics_make_older_patterns_stale_even_within_a_millisecond() -> None:
    topics = topics_of(MetadataImage())
    seen = [topics.new_topics_version]
    for _ in range(3):
        topics.note_created()
        seen.append(topics.new_topics_version)
    assert seen == [1000, 1001, 1002, 1003]
    version = topics.version
    topics.note_changed()
    assert topics.version == version + 1
    assert topics.new_topics_version == 1003
