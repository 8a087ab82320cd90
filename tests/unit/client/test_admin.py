"""Calls about topics and settings, answered by a broker in this process or by a made-up one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from minibroker.client import admin, configs
from minibroker.client.client import Client
from minibroker.client.configs import (
    BROKER,
    TOPIC,
    Resource,
    alter_settings,
    settings_of,
    topic_settings,
)
from minibroker.client.patience import Patience
from minibroker.client.settings import client_settings
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from minibroker.kafka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator


LATEST, EARLIEST = -1, -2


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"auto.create.topics.enable": "true"}) as new_broker:
        yield new_broker


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(client_settings({"bootstrap.servers": broker.bootstrap}))


def test_a_topic_is_made_grows_and_is_described(client: Client) -> None:
    settings = {"retention.ms": "-1", "cleanup.policy": "compact"}
    admin.create_topic(client, "made", 2, settings, timeout_s=10)
    descriptions = admin.describe(client, ["made", "missing"])
    assert descriptions.topics["made"].partition_count == 2
    assert any(descriptions.topics["made"].topic_id)
    assert descriptions.topics["missing"].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert descriptions.cluster_id

    admin.create_partitions(client, "made", 5, timeout_s=10)
    everything = admin.describe(client).topics
    assert everything["made"].partition_count == 5
    assert "missing" not in everything, "asking makes no topic"

    own = {
        setting.name: setting.value
        for setting in configs.topic_settings(client, "made")
        if setting.source == configs.OF_TOPIC
    }
    assert own == settings
    others = {setting.name for setting in configs.topic_settings(client, "made")} - own.keys()
    assert "max.message.bytes" in others, "defaults are there, too"


def test_refusals_have_the_brokers_reason(client: Client) -> None:
    admin.create_topic(client, "twice", 1, {}, timeout_s=10)
    with pytest.raises(KafkaError) as refused:
        admin.create_topic(client, "twice", 1, {}, timeout_s=10)
    assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(KafkaError) as refused:
        admin.create_topic(client, "odd", 1, {"no.such.setting": "1"}, timeout_s=10)
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    with pytest.raises(KafkaError) as refused:
        admin.create_partitions(client, "twice", 1, timeout_s=10)
    assert refused.value.code == ErrorCode.INVALID_PARTITIONS
    with pytest.raises(KafkaError) as refused:
        configs.topic_settings(client, "missing")
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_come_from_the_leaders_and_failures_with_their_partitions(
    broker: Broker, client: Client
) -> None:
    broker.produce("listed", [b"x"] * 7)
    inside, beyond = TopicPartition("listed", 0), TopicPartition("listed", 9)
    missing = TopicPartition("never", 0)
    for time_ms, offset in ((LATEST, 7), (EARLIEST, 0), (1, 0), (2**50, -1)):
        answer = admin.list_offsets(client, {inside: time_ms}, is_committed=True)
        assert answer.offsets == {inside: offset}
    times = dict.fromkeys((inside, beyond, missing), LATEST)
    offsets = admin.list_offsets(client, times, is_committed=False)
    assert offsets.offsets == {inside: 7}
    codes = {place: cast("KafkaError", error).code for place, error in offsets.failed.items()}
    assert codes == dict.fromkeys((beyond, missing), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def metadata_of(
    nodes: list[int], *topics: MetadataResponseTopic, controller: int = -1
) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=node, host="x", port=node) for node in nodes]
    return MetadataResponse(
        brokers=brokers, controller_id=controller, cluster_id="c", topics=list(topics)
    )


def topic_answer(name: str, partitions: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        partitions=[
            MetadataResponsePartition(partition_index=number, leader_id=1)
            for number in range(partitions)
        ],
    )


def offset_answer(code: ErrorCode) -> ListOffsetsResponse:
    part = ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=7)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[part])])


class MovingController(Client):
    """Two brokers; the first answers that it is no controller any more. Both show the topic."""

    def __init__(self, *controllers: int) -> None:
        super().__init__(client_settings({"bootstrap.servers": "x:1"}))
        self.controllers = list(controllers)
        self.requests: list[tuple[str, int]] = []

    def ask_any(self, request: Any, response: Any, versions: tuple[int, int]) -> MetadataResponse:
        at = self.controllers.pop(0) if self.controllers else 2
        return metadata_of([1, 2], topic_answer("t", 1), controller=at)

    def ask(self, address: Any, request: Any, response: Any, versions: Any) -> Any:
        if response is MetadataResponse:
            return metadata_of([1, 2], topic_answer("t", 1))
        if response is ListOffsetsResponse:
            return offset_answer(ErrorCode.NONE)
        self.requests.append(address)
        code = ErrorCode.NONE if address[1] == 2 else ErrorCode.NOT_CONTROLLER
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=code)])


def test_the_controller_that_takes_over_is_asked() -> None:
    moving = MovingController(1, -1, 2)
    admin.create_topic(moving, "t", 1, {}, timeout_s=10)
    assert moving.requests == [("x", 1), ("x", 2)]


@pytest.mark.parametrize("controller", [1, -1])
def test_a_controller_that_does_not_come_is_not_waited_for_longer(controller: int) -> None:
    with pytest.raises(KafkaError) as refused:
        admin.create_topic(MovingController(controller), "t", 1, {}, timeout_s=0)
    assert refused.value.code == ErrorCode.NOT_CONTROLLER


def test_partitions_their_replicas_and_sizes_are_described(broker: Broker, client: Client) -> None:
    admin.create_topic(client, "sized", 2, {}, timeout_s=10)
    broker.produce("sized", [b"x" * 1000] * 3, partition=1)
    cluster = admin.describe(client, ["sized"])
    node = cluster.controller_id
    assert cluster.brokers[node].address == cluster.controller
    assert [
        (part.number, part.leader, part.replicas, part.in_sync)
        for part in cluster.topics["sized"].partitions
    ] == [(0, node, (node,), (node,)), (1, node, (node,), (node,))]
    sizes = admin.log_sizes(client, cluster)
    assert sizes[TopicPartition("sized", 0)] == 0
    assert sizes[TopicPartition("sized", 1)] > 3000


def test_a_topic_is_checked_placed_and_deleted(client: Client) -> None:
    admin.create_topic(client, "checked", 1, {}, timeout_s=10, only_checks=True)
    assert admin.describe(client, ["checked"]).topics["checked"].error
    node = admin.describe(client, ()).controller_id
    assignment = {0: [node], 1: [node]}
    admin.create_topic(client, "placed", -1, {}, timeout_s=10, assignment=assignment)
    assert admin.describe(client, ["placed"]).topics["placed"].partition_count == 2
    admin.delete_topic(client, "placed", timeout_s=10)
    with pytest.raises(KafkaError) as refused:
        admin.delete_topic(client, "placed", timeout_s=10)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class LateLeader(Client):
    """A broker that leads a partition, and knows it after some answers."""

    def __init__(self, *codes: ErrorCode) -> None:
        super().__init__(client_settings({"bootstrap.servers": "late-leader:1"}))
        self.codes = list(codes)

    def ask_any(self, request: Any, response: Any, versions: tuple[int, int]) -> MetadataResponse:
        return metadata_of([1], topic_answer("t", 1))

    def ask(self, address: Any, request: Any, response: Any, versions: Any) -> ListOffsetsResponse:
        return offset_answer(self.codes.pop(0))


def test_a_leader_that_does_not_know_it_yet_is_asked_again() -> None:
    place = TopicPartition("t", 0)
    codes = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)
    assert admin.offsets_at(LateLeader(*codes), [place], LATEST, is_committed=False) == {place: 7}
    with pytest.raises(admin.MovingLeaderError) as refused:
        admin.offsets_at(
            LateLeader(*codes), [place], LATEST, is_committed=False, patience=Patience(0)
        )
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class LateServer(LateLeader):
    """The same, of a topic that it makes."""

    def ask(self, address: Any, request: Any, response: Any, versions: Any) -> Any:
        if response is MetadataResponse:
            return metadata_of([1], topic_answer("t", 1))
        if response is CreateTopicsResponse:
            return CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
        return super().ask(address, request, response, versions)

    def ask_any(self, request: Any, response: Any, versions: tuple[int, int]) -> MetadataResponse:
        return metadata_of([1], topic_answer("t", 1), controller=1)


def test_a_topic_is_made_when_its_leader_serves_it() -> None:
    brokers = LateServer(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)
    admin.create_topic(brokers, "t", 1, {}, timeout_s=10)
    assert not brokers.codes
    with pytest.raises(
        TimeoutError, match="the leader of t-0 does not serve it after 0 s: NOT_LEADER"
    ):
        admin.create_topic(LateServer(ErrorCode.NOT_LEADER_OR_FOLLOWER), "t", 1, {}, timeout_s=0)


def own(client: Client, topic: str) -> dict[str, str | None]:
    settings = topic_settings(client, topic)
    return {setting.name: setting.value for setting in settings if setting.source == 1}


@pytest.mark.parametrize("release", ["4.4", "1.1"])
def test_a_change_keeps_the_other_settings(release: str) -> None:
    """Kafka before 2.3 takes all settings of a resource at once."""
    with Broker(config={"minibroker.advertised.kafka.version": release}) as broker:
        client = Client(client_settings({"bootstrap.servers": broker.bootstrap}))
        configs = {"retention.ms": "1000", "max.message.bytes": "5000"}
        admin.create_topic(client, "t", 1, configs, timeout_s=10)
        topic = Resource(TOPIC, "t")
        changes = {"retention.ms": None, "cleanup.policy": "compact"}
        alter_settings(client, topic, changes, only_checks=True)
        assert own(client, "t") == configs
        alter_settings(client, topic, changes, only_checks=False)
        assert own(client, "t") == {"max.message.bytes": "5000", "cleanup.policy": "compact"}
        with pytest.raises(KafkaError) as refused:
            alter_settings(client, topic, {"retention.ms": "soon"}, only_checks=False)
        assert refused.value.code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


def test_a_broker_is_asked_about_itself() -> None:
    with Broker() as broker:
        client = Client(client_settings({"bootstrap.servers": broker.bootstrap}))
        node = str(admin.describe(client, ()).controller_id)
        settings = {
            setting.name: setting for setting in settings_of(client, Resource(BROKER, node))
        }
        assert settings["broker.id"].value == node
        assert settings["broker.id"].is_read_only
        alter_settings(client, Resource(BROKER, node), {"log.retention.ms": "9"}, only_checks=False)
        changed = {s.name: s.value for s in settings_of(client, Resource(BROKER, node))}
        assert changed["log.retention.ms"] == "9"
        with pytest.raises(KafkaError, match="broker 77"):
            settings_of(client, Resource(BROKER, "77"))
