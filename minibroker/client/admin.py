"""Topics as the brokers tell of them now, and calls that change them.

    names, or none for all ─Metadata────────► the topics, their partitions and ids
    partitions ─ListOffsets─► their leaders ─► offsets, and the partitions that gave none
    a topic ─CreateTopics, CreatePartitions, DeleteTopics─► the controller ─► every broker shows it
    brokers ─DescribeLogDirs─► the bytes of each replica

Nothing is kept here: each call asks, and a call that fails may be repeated by its caller. A change
returns when all brokers show it (`propagation`): whoever comes next may trust it.

Source: Kafka AdminClient, KafkaAdminClient, ListOffsetsHandler; KIP-4, KIP-113, KIP-396,
KIP-464.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.answer_parts import by_partition, part_of
from minibroker.client.client import (
    LIST_VERSIONS,
    METADATA_VERSIONS,
    metadata_request,
    offset_of,
)
from minibroker.client.dialogue import BrokerRefusedError, VersionedRequest
from minibroker.client.patience import Patience
from minibroker.client.propagation import NewTopicState, wait_until_shown
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, ZERO_TOPIC_ID, TopicPartition
from minibroker.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minibroker.kafka.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from minibroker.kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.metadata import MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from minibroker.client.client import Client
    from minibroker.kafka.protocol.messages.metadata import MetadataResponseTopic

CREATE_VERSIONS: Final = (0, 7)
DELETE_VERSIONS: Final = (0, 6)
_STATES_FROM: Final = 6
"""Version of DeleteTopics from which on a topic is more than its name, and its id is answered."""
SIZES_VERSIONS: Final = (0, 4)
GROW_VERSIONS: Final = (0, 3)

DEFAULT_REPLICATION: Final = -1
"""Replication factor of a new topic: the cluster's `default.replication.factor` (KIP-464)."""
_ISOLATION_FROM: Final = 2
"""Version of ListOffsets from which on a request has an isolation level."""
_VALIDATION_FROM: Final = 1
"""Version of CreateTopics from which on a request may be one that makes nothing."""
_DEFAULTS_FROM: Final = 4
"""Version of CreateTopics from which on the cluster's own replication factor may be meant."""
MOVING_S: Final = 30.0
"""Time for a leader to know that it leads, after a topic is made or a broker has failed."""
_MOVING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Errors of a broker that does not lead a partition yet, or no longer."""


class DescribedPartition(NamedTuple):
    """The replicas of a partition, as broker ids."""

    number: int
    leader: int
    """-1: none now."""
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    leader_epoch: int
    """-1: the broker does not tell (before Kafka 2.1)."""


class DescribedTopic(NamedTuple):
    """A topic, or the reason why a broker does not describe it."""

    partition_count: int
    topic_id: bytes
    """Sixteen zero bytes: the cluster has no ids (before Kafka 2.8)."""
    error: ErrorCode
    is_internal: bool = False
    partitions: tuple[DescribedPartition, ...] = ()
    """In the order of their numbers."""


class DescribedBroker(NamedTuple):
    """A broker of a cluster."""

    address: tuple[str, int]
    rack: str | None


class DescribedCluster(NamedTuple):
    """The cluster as one broker describes it."""

    cluster_id: str
    topics: Mapping[str, DescribedTopic]
    controller: tuple[str, int] | None
    """Address of the controller, None while there is none, or before Kafka 0.10."""
    controller_id: int = -1
    brokers: Mapping[int, DescribedBroker] = {}
    """Id → broker."""


class MovingLeaderError(KafkaError):
    """The broker that is to lead a partition does not serve it: it does not yet, or no longer."""


class ListedOffsets(NamedTuple):
    """Answers about offsets."""

    offsets: dict[TopicPartition, int]
    failed: dict[TopicPartition, Exception]
    """KafkaError of a partition; OSError or ProtocolError of its broker."""

    def whole(self) -> dict[TopicPartition, int]:
        """Return the offsets of all partitions. Raises the failure of one, if there is any."""
        for error in self.failed.values():
            raise error
        return self.offsets


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
    chosen_names = None if names is None else tuple(names)
    answer = client.ask_any(metadata_request(chosen_names), MetadataResponse, METADATA_VERSIONS)
    brokers = {
        broker.node_id: DescribedBroker((broker.host, broker.port), broker.rack)
        for broker in answer.brokers
    }
    described = {str(topic.name): _described(topic) for topic in answer.topics}
    if chosen_names is not None:  # an old broker tells of all topics, and makes none
        missing = DescribedTopic(0, ZERO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        described = {name: described.get(name, missing) for name in chosen_names}
    controller = brokers.get(int(answer.controller_id))
    return DescribedCluster(
        str(answer.cluster_id or ""),
        described,
        None if controller is None else controller.address,
        int(answer.controller_id),
        brokers,
    )


def _described(topic: MetadataResponseTopic) -> DescribedTopic:
    partitions = sorted(
        DescribedPartition(
            partition.partition_index,
            partition.leader_id,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
            partition.leader_epoch,
        )
        for partition in topic.partitions
    )
    return DescribedTopic(
        len(partitions),
        topic.topic_id,
        ErrorCode(topic.error_code),
        topic.is_internal,
        tuple(partitions),
    )


def list_offsets(
    client: Client, times: Mapping[TopicPartition, int], *, is_committed: bool
) -> ListedOffsets:
    """Return the offset of each partition at a time; every leader is asked once.

    A partition whose leader is another one by now fails, and its topic's leaders are asked for anew
    by the next call.

    Args:
        times: partition → milliseconds since 1970, or -1 for the end and -2 for the start. The
            offset is -1 if no record is so late.
        is_committed: the end is the last stable offset.

    Raises OSError, ProtocolError, ConfigError: nobody tells who leads, as `describe`.
    """
    answers = ListedOffsets({}, {})
    of_topics: dict[str, list[TopicPartition]] = {}
    for place in times:
        of_topics.setdefault(place.topic, []).append(place)
    of_leaders: dict[tuple[str, int], list[TopicPartition]] = {}
    for topic, places in of_topics.items():
        try:
            led = _led(client, topic, places)
        except KafkaError as error:
            answers.failed.update(dict.fromkeys(places, error))
            continue
        for place in places:
            if place.partition in led:
                of_leaders.setdefault(client.leader(*place).address, []).append(place)
            else:
                answers.failed[place] = _leaderless(client, place)
    for address, places in of_leaders.items():
        time_by_place = {place: times[place] for place in places}
        try:
            _list_at(client, address, time_by_place, answers, is_committed=is_committed)
        except (OSError, ProtocolError) as error:
            answers.failed.update(dict.fromkeys(places, error))
    for place in answers.failed:
        client.forget(place.topic)
    return answers


def offsets_at(
    client: Client,
    places: Iterable[TopicPartition],
    time_ms: int,
    *,
    is_committed: bool,
    patience: Patience | None = None,
) -> dict[TopicPartition, int]:
    """Return the offset of every partition at one time; arguments and errors are those of
    `list_offsets`, and the failure of a partition is raised, too: KafkaError.

    `patience`: for leaders that move; None: `MOVING_S`.
    """
    patience = patience or Patience(MOVING_S)
    offsets: dict[TopicPartition, int] = {}
    waiting = list(places)
    while waiting:
        answers = list_offsets(client, dict.fromkeys(waiting, time_ms), is_committed=is_committed)
        offsets |= answers.offsets
        waiting = list(answers.failed)
        for error in answers.failed.values():
            if patience.is_over or not isinstance(error, MovingLeaderError):
                raise error
        if waiting:
            patience.pause()
    return offsets


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
    answers: ListedOffsets,
    *,
    is_committed: bool,
) -> None:
    """Add the answers of one broker to `answers`. Raises OSError, ProtocolError."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for place, timestamp in times.items():
        partition = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
        topics.setdefault(place.topic, []).append(partition)
    request_topics = [ListOffsetsTopic(name=name, partitions=topics[name]) for name in topics]

    def of_version(version: int) -> ListOffsetsRequest:
        level = int(is_committed and version >= _ISOLATION_FROM)
        return ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=request_topics)

    request = VersionedRequest(ListOffsetsRequest, of_version)
    answer = client.ask(address, request, ListOffsetsResponse, LIST_VERSIONS)
    parts = by_partition(answer.topics)
    for place in times:
        part = part_of(parts, (place.topic, place.partition))
        if part.error_code:
            code = ErrorCode(part.error_code)
            kind = MovingLeaderError if code in _MOVING else KafkaError
            answers.failed[place] = kind(code, str(place))
        else:
            answers.offsets[place] = offset_of(part)


def create_topic(
    client: Client,
    name: str,
    partitions: int,
    settings: Mapping[str, str],
    *,
    timeout_s: float,
    replicas: int = DEFAULT_REPLICATION,
    assignment: Mapping[int, Sequence[int]] | None = None,
    only_checks: bool = False,
) -> None:
    """Make a topic, and return when every broker shows it, and its leaders serve it.

    Args:
        partitions: -1 for the cluster's `num.partitions`.
        settings: the topic's own ones.
        timeout_s: for a controller that changes, for the controller itself, and for the brokers.
        replicas: of each partition; by default as the cluster's `default.replication.factor`
            says. A cluster before Kafka 2.4 cannot be asked for its defaults, neither of
            partitions: it gets 1.
        assignment: partition → ids of the brokers with its replicas, in place of the two counts.
        only_checks: the topic is checked and not made.

    Raises:
        KafkaError: the controller refuses, as with TOPIC_ALREADY_EXISTS.
        TimeoutError: it is made, and a broker does not show it.
        OSError, ProtocolError, ConfigError: as `describe`. BrokerRefusedError: a broker before
            Kafka 0.10.1, which makes no topic when it is asked.
    """
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]

    def of_version(version: int) -> CreateTopicsRequest:
        counts = (partitions, replicas)
        if version < _DEFAULTS_FROM:
            counts = (max(1, partitions), max(1, replicas))
        topic = CreatableTopic(
            name=name,
            num_partitions=-1 if assignment else counts[0],
            replication_factor=-1 if assignment else counts[1],
            assignments=[
                CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
                for number, brokers in sorted((assignment or {}).items())
            ],
            configs=configs,
        )
        return CreateTopicsRequest(
            topics=[topic], timeout_ms=int(timeout_s * 1000), validate_only=only_checks
        )

    def result(answer: CreateTopicsResponse) -> Any:
        return part_of({topic.name: topic for topic in answer.topics}, name)

    request = VersionedRequest(CreateTopicsRequest, of_version)
    oldest = _VALIDATION_FROM if only_checks else CREATE_VERSIONS[0]
    versions = (oldest, CREATE_VERSIONS[1])
    change = _TopicChange(request, CreateTopicsResponse, versions, result)
    topic = _ask_controller(client, change, timeout_s)
    if not only_checks:
        count = max(1, partitions, topic.num_partitions, len(assignment or ()))
        _wait(client, NewTopicState(name, topic.topic_id, count), timeout_s)


def delete_topic(client: Client, name: str, *, timeout_s: float) -> None:
    """Delete a topic, with its records, and return when no broker shows it. Raises KafkaError,
    OSError, ProtocolError, ConfigError, BrokerRefusedError; TimeoutError as `create_topic`.
    """

    def of_version(version: int) -> DeleteTopicsRequest:
        timeout_ms = int(timeout_s * 1000)
        if version < _STATES_FROM:
            return DeleteTopicsRequest(topic_names=[name], timeout_ms=timeout_ms)
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=timeout_ms)

    def result(answer: DeleteTopicsResponse) -> Any:
        return part_of({topic.name: topic for topic in answer.responses}, name)

    request = VersionedRequest(DeleteTopicsRequest, of_version)
    change = _TopicChange(request, DeleteTopicsResponse, DELETE_VERSIONS, result)
    topic = _ask_controller(client, change, timeout_s)
    _wait(client, NewTopicState(name, topic.topic_id, 0), timeout_s)


def log_sizes(client: Client, cluster: DescribedCluster) -> dict[TopicPartition, int]:
    """Return the bytes of each partition's log at its leader.

    A partition is left out whose leader is before Kafka 1.0, or whose broker does not let its
    directories be seen. Raises OSError, ProtocolError, ConfigError.
    """
    leaders = {
        TopicPartition(name, partition.number): partition.leader
        for name, topic in cluster.topics.items()
        for partition in topic.partitions
    }
    sizes: dict[TopicPartition, int] = {}
    for broker_id in sorted(set(leaders.values()) & cluster.brokers.keys()):
        address = cluster.brokers[broker_id].address
        request = DescribeLogDirsRequest(topics=None)
        try:
            answer = client.ask(address, request, DescribeLogDirsResponse, SIZES_VERSIONS)
        except BrokerRefusedError:
            continue
        for directory in answer.results:
            for topic in directory.topics:
                for part in topic.partitions:
                    place = TopicPartition(topic.name, part.partition_index)
                    if leaders.get(place) == broker_id and not part.is_future_key:
                        sizes[place] = int(part.partition_size)
    return sizes


def create_partitions(client: Client, name: str, count: int, *, timeout_s: float) -> None:
    """Have a topic get `count` partitions in all, and return when all brokers show and serve them.

    Raises KafkaError, OSError, ProtocolError, ConfigError, BrokerRefusedError; TimeoutError as
    `create_topic`.
    """
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=int(timeout_s * 1000))

    def result(answer: CreatePartitionsResponse) -> Any:
        return part_of({topic.name: topic for topic in answer.results}, name)

    old = describe(client, [name]).topics[name]
    change = _TopicChange(request, CreatePartitionsResponse, GROW_VERSIONS, result)
    _ask_controller(client, change, timeout_s)
    # An older partition may be without a leader, and stay so.
    first_new = min(old.partition_count, count)
    _wait(client, NewTopicState(name, ZERO_TOPIC_ID, count, first_new), timeout_s)


def _wait(client: Client, state: NewTopicState, timeout_s: float) -> None:
    """Return when every broker shows the topic, and its leaders serve the new partitions.

    Raises TimeoutError, OSError, ProtocolError, ConfigError.
    """
    patience = Patience(timeout_s)
    client.forget(state.name)
    wait_until_shown(client, state, patience)
    numbers = range(state.first_new, state.partition_count)
    wait_until_served(client, [TopicPartition(state.name, number) for number in numbers], patience)


def wait_until_served(client: Client, places: Iterable[TopicPartition], patience: Patience) -> None:
    """Return when the leaders of new partitions serve them.

    Metadata names a leader before that broker leads. Of two batches that are sent meanwhile, the
    first one may be refused and the second one stored: Kafka takes any number for the first batch
    of a producer. Then the first one is out of order for good.

    A partition without a leader is not waited for, nor one that is hidden from this user. Raises
    TimeoutError; OSError, ProtocolError, ConfigError.
    """
    waiting = list(places)
    while waiting:
        times = dict.fromkeys(waiting, EARLIEST_TIMESTAMP)
        failed = list_offsets(client, times, is_committed=False).failed
        moving = {
            place: error for place, error in failed.items() if isinstance(error, MovingLeaderError)
        }
        waiting = list(moving)
        if waiting and patience.is_over:
            raise TimeoutError(
                f"the leader of {waiting[0]} does not serve it after {patience.limit_s:g} s: "
                f"{moving[waiting[0]].code.name}"
            )
        if waiting:
            patience.pause()


def _ask_controller(client: Client, change: _TopicChange, timeout_s: float) -> Any:
    """Return the result of the controller, also of one that takes over meanwhile. Raises
    KafkaError, OSError, ProtocolError, ConfigError, BrokerRefusedError.
    """
    patience = Patience(timeout_s)
    while True:
        cluster = describe(client, ())
        address = cluster.controller
        if address is None and not cluster.cluster_id and cluster.brokers:
            # Before Kafka 0.10 a broker names no controller, and changes no topic when it is asked.
            address = next(iter(cluster.brokers.values())).address
        if address is not None:
            answer = client.ask(address, change.request, change.response, change.versions)
            result = change.result_of(answer)
            code = ErrorCode(result.error_code)
            if not code:
                return result
            if code != ErrorCode.NOT_CONTROLLER or patience.is_over:
                raise KafkaError(code, result.error_message or None)
        elif patience.is_over:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller")
        patience.pause()
