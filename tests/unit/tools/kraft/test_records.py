"""Records of KRaft: their order, their versions, and what no record can hold."""

from __future__ import annotations

import pytest

from minibroker.kafka.ids import TopicId
from minibroker.kafka.protocol.stored.cluster_metadata import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from minibroker.tools.kraft.levels import LEVELS, LevelError
from minibroker.tools.kraft.metadata import Metadata, PartitionValue, TopicValue
from minibroker.tools.kraft.records import RegisteredBroker, encode_record, records_of
from tests.support.kraft_metadata import full_metadata

DIRECTORY = b"d" * 16


def test_features_come_first_and_a_topic_before_its_partitions() -> None:
    kinds = [type(message) for _, _, message in records_of(full_metadata("4.4", DIRECTORY))]
    features = len(LEVELS["4.4"])
    assert kinds[:features] == [FeatureLevelRecord] * features
    assert kinds[features : features + 5] == [TopicRecord, *[PartitionRecord] * 3, TopicRecord]
    first = next(records_of(full_metadata("4.4", DIRECTORY))).message
    assert isinstance(first, FeatureLevelRecord)
    assert first.name == "metadata.version"


@pytest.mark.parametrize(("release", "partition", "broker"), [("3.9", 1, 3), ("4.4", 2, 4)])
def test_the_level_decides_the_versions(release: str, partition: int, broker: int) -> None:
    brokers = {0: RegisteredBroker(3, b"i" * 16, (DIRECTORY,))}
    records = records_of(full_metadata(release, DIRECTORY), brokers=brokers)
    versions = {type(message): version for _, version, message in records}
    assert versions[PartitionRecord] == partition
    assert versions[RegisterBrokerRecord] == broker


def test_an_acl_without_an_id_gets_one_that_is_the_same_everywhere() -> None:
    metadata = full_metadata("4.4", DIRECTORY)
    metadata.acls = dict.fromkeys(metadata.acls, bytes(16))
    once, again = (
        [m.id for _, _, m in records_of(metadata) if isinstance(m, AccessControlEntryRecord)]
        for _ in range(2)
    )
    assert once == again
    assert len(set(once)) == len(metadata.acls)
    assert {len(acl_id) for acl_id in once} == {16}
    assert bytes(16) not in once


def test_a_level_that_no_release_has_is_refused() -> None:
    with pytest.raises(LevelError, match=r"metadata\.version is 20, expected 21"):
        list(records_of(Metadata(features={"metadata.version": 20})))
    with pytest.raises(LevelError, match=r"metadata\.version is None"):
        list(records_of(Metadata()))


def test_kafka_3_9_has_no_settings_of_groups() -> None:
    metadata = full_metadata("4.0", DIRECTORY)
    metadata.features = dict(LEVELS["3.9"])
    with pytest.raises(LevelError, match="group readers has settings, which"):
        list(records_of(metadata))


def test_eligible_replicas_need_their_feature() -> None:
    partition = PartitionValue((0,), (), -1, 7, eligible=(0,))
    topics = {"t": TopicValue(TopicId(b"t" * 16), (partition,))}
    with pytest.raises(LevelError, match="partition t-0 has eligible leader replicas"):
        list(records_of(Metadata(topics=topics, features={"metadata.version": 33})))


def test_the_frame_of_a_record_is_kafka_s() -> None:
    record = next(records_of(Metadata(features={"metadata.version": 33})))
    assert encode_record(record) == b"\x01\x0c\x00" + b"\x11metadata.version" + b"\x00\x21\x00"
