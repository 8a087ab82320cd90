"""Topics as the brokers tell of them now, and calls that change them.

    names, or none for all ─Metadata────────► the topics, their partitions and ids
    partitions ─ListOffsets─► their leaders ─► offsets, and the partitions that gave none
    a topic ─CreateTopics, CreatePartitions─► the controller
    a topic ─DescribeConfigs─► any broker ───► its settings

Nothing is kept here: each call asks, and a call that fails may be repeated by its caller.

Source: Kafka AdminClient, KafkaAdminClient, ListOffsetsHandler; KIP-4, KIP-226, KIP-396, KIP-464.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.answer_parts import by_partition, part_of
from minibroker.client.client import LIST_VERSIONS, METADATA_VERSIONS
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minibroker.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from minibroker.client.client import Client
    from minibroker.kafka.ids import TopicPartition

CREATE_VERSIONS: Final = (4, 7)
"""Versions of CreateTopics that know the cluster's own replication factor."""
GROW_VERSIONS: Final = (0, 3)
CONFIG_VERSIONS: Final = (1, 4)
"""Versions of DescribeConfigs that tell where a value comes from."""

DEFAULT_REPLICATION: Final = -1
"""Replication factor of a new topic: the cluster's `default.replication.factor` (KIP-464)."""
OF_TOPIC: Final = 1
"""The source of a value: the topic's own setting. Others are defaults of the cluster or Kafka."""
_TOPIC_RESOURCE: Final = 2
PAUSE_S: Final = 0.05


class DescribedTopic(NamedTuple):
    """A topic, or the reason why a broker does not describe it."""

    partition_count: int
    topic_id: bytes
    """Sixteen zero bytes: the cluster has no ids (before Kafka 2.8)."""
    error: ErrorCode


class DescribedCluster(NamedTuple):
    """The cluster as one broker describes it."""

    cluster_id: str
    topics: Mapping[str, DescribedTopic]
    controller: tuple[str, int] | None
    """Address of the controller, None while there is none."""


class OwnSetting(NamedTuple):
    """A setting of a topic."""

    name: str
    value: str | None
    """None for one that is secret or has no value."""
    source: int
    """`OF_TOPIC`, or another number of Kafka's ConfigSource."""


class ListedOffsets(NamedTuple):
    """Answers about offsets."""

    found: dict[TopicPartition, int]
    failed: dict[TopicPartition, Exception]
    """KafkaError of a partition; OSError or ProtocolError of its broker."""


class _TopicChange(NamedTuple):
    """A call that the controller alone carries out."""

    request: Any
    response: Any
    versions: tuple[int, int]
    result_of: Callable[[Any], Any]
    """Returns the part of the answer about the topic, with its error."""


def describe(client: Client, names: Iterable[str] | None = None) -> DescribedCluster:
    """Return the topics of these names, or all; a broker makes none that is missing.

    Raises:
        OSError: no broker answers, or it takes no login (BrokerRefusedError).
        ProtocolError: an answer is malformed.
        ConfigError: the settings of TLS.
    """
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = client.ask_any(request, MetadataResponse, METADATA_VERSIONS)
    brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    described = {
        str(topic.name): DescribedTopic(
            len(topic.partitions), topic.topic_id, ErrorCode(topic.error_code)
        )
        for topic in answer.topics
    }
    return DescribedCluster(
        str(answer.cluster_id), described, brokers.get(int(answer.controller_id))
    )


def list_offsets(
    client: Client, times: Mapping[TopicPartition, int], *, is_committed: bool
) -> ListedOffsets:
    """Return the offset of each partition at a time; every leader is asked once.

    A partition whose leader is another one by now fails, and its topic's leaders are asked for anew
    by the next call.

    Args:
        client: to ask with.
        times: partition → milliseconds since 1970, or -1 for the end and -2 for the start. The
            offset is -1 if no record is so late.
        is_committed: the end is the last stable offset.

    Raises OSError, ProtocolError, ConfigError: nobody tells who leads, as `describe`.
    """
    listed = ListedOffsets({}, {})
    of_topics: dict[str, list[TopicPartition]] = {}
    for place in times:
        of_topics.setdefault(place.topic, []).append(place)
    of_leaders: dict[tuple[str, int], list[TopicPartition]] = {}
    for topic, places in of_topics.items():
        try:
            led = _led(client, topic, places)
        except KafkaError as error:
            listed.failed.update(dict.fromkeys(places, error))
            continue
        for place in places:
            if place.partition in led:
                of_leaders.setdefault(client.leader(*place).address, []).append(place)
            else:
                listed.failed[place] = _leaderless(client, place)
    for address, places in of_leaders.items():
        asked = {place: times[place] for place in places}
        try:
            _list_at(client, address, asked, listed, is_committed=is_committed)
        except (OSError, ProtocolError) as error:
            listed.failed.update(dict.fromkeys(places, error))
    for place in listed.failed:
        client.forget(place.topic)
    return listed


def _led(client: Client, topic: str, places: Iterable[TopicPartition]) -> set[int]:
    """Return the partitions of a topic that have a leader, asked for anew if one of `places` has
    none. Raises KafkaError, and as `list_offsets`.
    """
    led = set(client.led_partitions(topic))
    if not led.issuperset(place.partition for place in places):
        client.forget(topic)
        led = set(client.led_partitions(topic))
    return led


def _leaderless(client: Client, place: TopicPartition) -> KafkaError:
    is_present = place.partition < client.partition_count(place.topic)
    code = ErrorCode.LEADER_NOT_AVAILABLE if is_present else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return KafkaError(code, str(place))


def _list_at(
    client: Client,
    address: tuple[str, int],
    times: Mapping[TopicPartition, int],
    listed: ListedOffsets,
    *,
    is_committed: bool,
) -> None:
    """Add the answers of one broker to `listed`. Raises OSError, ProtocolError."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for place, timestamp in times.items():
        partition = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
        topics.setdefault(place.topic, []).append(partition)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(is_committed),
        topics=[ListOffsetsTopic(name=name, partitions=topics[name]) for name in topics],
    )
    answer = client.ask(address, request, ListOffsetsResponse, LIST_VERSIONS)
    parts = by_partition(answer.topics)
    for place in times:
        part = part_of(parts, (place.topic, place.partition))
        if part.error_code:
            listed.failed[place] = KafkaError(ErrorCode(part.error_code), str(place))
        else:
            listed.found[place] = int(part.offset)


def create_topic(
    client: Client,
    name: str,
    partitions: int,
    settings: Mapping[str, str],
    *,
    timeout_s: float,
) -> None:
    """Make a topic with the cluster's replication factor. The controller answers when it is made.

    Raises:
        KafkaError: the controller refuses, as with TOPIC_ALREADY_EXISTS.
        OSError, ProtocolError, ConfigError: as `describe`.
    """
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=DEFAULT_REPLICATION,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(timeout_s * 1000))

    def result(answer: CreateTopicsResponse) -> Any:
        return part_of({topic.name: topic for topic in answer.topics}, name)

    change = _TopicChange(request, CreateTopicsResponse, CREATE_VERSIONS, result)
    _ask_controller(client, change, timeout_s)


def create_partitions(client: Client, name: str, count: int, *, timeout_s: float) -> None:
    """Have a topic get `count` partitions in all. Raises as `create_topic`."""
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=int(timeout_s * 1000))

    def result(answer: CreatePartitionsResponse) -> Any:
        return part_of({topic.name: topic for topic in answer.results}, name)

    change = _TopicChange(request, CreatePartitionsResponse, GROW_VERSIONS, result)
    _ask_controller(client, change, timeout_s)


def topic_settings(client: Client, name: str) -> list[OwnSetting]:
    """Return the settings of a topic, with their defaults.

    Raises:
        KafkaError: there is no such topic, or it may not be read.
        OSError, ProtocolError, ConfigError: as `describe`.
    """
    resource = DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource])
    answer = client.ask_any(request, DescribeConfigsResponse, CONFIG_VERSIONS)
    described = part_of({result.resource_name: result for result in answer.results}, name)
    if described.error_code:
        raise KafkaError(ErrorCode(described.error_code), described.error_message)
    return [
        OwnSetting(setting.name, setting.value, setting.config_source)
        for setting in described.configs
    ]


def _ask_controller(client: Client, change: _TopicChange, timeout_s: float) -> None:
    """Ask the controller, also one that takes over meanwhile. Raises as `create_topic`."""
    deadline = time.monotonic() + timeout_s
    while True:
        controller = describe(client, ()).controller
        if controller is not None:
            answer = client.ask(controller, change.request, change.response, change.versions)
            result = change.result_of(answer)
            code = ErrorCode(result.error_code)
            if not code:
                return
            if code != ErrorCode.NOT_CONTROLLER or time.monotonic() >= deadline:
                raise KafkaError(code, result.error_message)
        elif time.monotonic() >= deadline:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller")
        threading.Event().wait(PAUSE_S)
