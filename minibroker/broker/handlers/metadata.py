"""Metadata: key 3, versions 0-13.

Behaviour: returns the brokers, the controller, and the partitions of the requested topics, all from
this broker's own image (Kafka's MetadataCache). A missing topic is created if both the broker and
the request allow it.

Versions:
- 1: null asks for all topics, an empty list for none (version 0: empty asks for all), rack,
  controller, internal flag
- 2: cluster id
- 4: the request decides on creation
- 5: offline replicas
- 7: leader epochs
- 8-10: authorized operations of the cluster
- 9: flexible
- 10: topic ids
- 12: lookup by id
- 13: top-level error

Differs from Kafka: on the controller, a topic that this request creates has its leaders before the
answer leaves. Kafka creates it in the background and answers LEADER_NOT_AVAILABLE (3.9) or
UNKNOWN_TOPIC_OR_PARTITION (4.x), and the client asks again after its back-off. So here the first
test run is as quick as the second. A broker that is not the controller answers at once with
LEADER_NOT_AVAILABLE, like 3.9, also for a topic that it has not heard of yet.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from minibroker.broker.cluster.creation_limits import (
    check_new_partitions,
    check_records,
    records_of_topic,
)
from minibroker.broker.cluster.image import INTERNAL_TOPICS
from minibroker.broker.cluster.internal_topics import NewTopic, new_topic
from minibroker.broker.cluster.topics import check_topic_name
from minibroker.broker.handlers.common.authorized_operations import (
    operations_of,
    operations_of_cluster,
)
from minibroker.broker.handlers.common.encoded_struct import EncodedStruct
from minibroker.broker.handlers.common.leaders import endpoint_of, visible_leader
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.broker.slices import TimeSlice, collect, gather, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable, Sequence
    from typing import TypeAlias

    from minibroker.broker.cluster.image import BrokerInfo, PartitionImage, TopicImage
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

    Names = dict[str, None]
    AnsweredTopic: TypeAlias = "MetadataResponseTopic | EncodedTopic"
    Brokers = dict[int, BrokerInfo]
    Key = tuple[int, str, int | None]
    """Version, name of the client's listener, operations that the client may do, if it asks."""

logger = logging.getLogger(__name__)

_WITHOUT_OPERATIONS = frozenset((ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID))


def handle(
    context: RequestContext, request: MetadataRequest
) -> Steps[MetadataResponse | Awaitable[MetadataResponse]]:
    """Return the answer from the image, or an awaitable that creates missing topics first."""
    image = context.services.cluster.image
    if request.topics is None or (context.version == 0 and not request.topics):
        visible = Allowed(context, Operation.DESCRIBE, is_filter=True)
        topics: list[AnsweredTopic] = []
        for image_topic in list(image.topics.values()):
            yield
            if image_topic.name in visible:
                topics.append(_encoded_topic(context, request, image_topic))
        return (yield from _respond(context, request, topics))
    if context.version < 12:
        for topic in request.topics:
            yield
            if topic.name is None:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Topic name can not be null for version {context.version}",
                )
            if topic.topic_id != ZERO_TOPIC_ID:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Topic IDs are not supported in requests for version {context.version}",
                )
    topic_ids = dict.fromkeys(
        topic.topic_id for topic in request.topics if topic.topic_id != ZERO_TOPIC_ID
    )
    if topic_ids:
        topics = yield from _by_id(context, request, topic_ids)
        return (yield from _respond(context, request, topics))
    names = dict.fromkeys(topic.name for topic in request.topics if topic.name is not None)
    may_create = context.services.config.auto_create_topics_enable and (
        context.version < 4 or request.allow_auto_topic_creation
    )
    names_to_show, refused = yield from _split(names, Allowed(context, Operation.DESCRIBE))
    missing = [name for name in names_to_show if name not in image.topics]
    forbidden: list[MetadataResponseTopic] = []
    if missing and may_create and not _may_create_any(context):
        creatable, uncreatable = yield from _split(missing, Allowed(context, Operation.CREATE))
        forbidden = yield from gather(
            _forbidden(name, is_internal=name in INTERNAL_TOPICS) for name in uncreatable
        )
        missing = list(creatable)
        names_to_show = {name: None for name in names_to_show if name not in uncreatable}
    forbidden += yield from gather(_forbidden(name) for name in refused)
    if missing and may_create:
        return _create_and_respond(context, request, list(names_to_show), missing, forbidden)
    topics = yield from gather(_by_name(context, request, name, {}) for name in names_to_show)
    return (yield from _respond(context, request, [*topics, *forbidden]))


def _split(names: Iterable[str], permitted: Allowed) -> Steps[tuple[Names, Names]]:
    """Return the names that are permitted, and the others, each in order."""
    inside: Names = {}
    outside: Names = {}
    for name in names:
        (inside if name in permitted else outside)[name] = None
        yield
    return inside, outside


def _may_create_any(context: RequestContext) -> bool:
    return context.authorize(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True)


def _forbidden(
    name: str | None, topic_id: bytes = ZERO_TOPIC_ID, *, is_internal: bool = False
) -> MetadataResponseTopic:
    """Return the entry of a topic that the client may not describe, whether it is there or not."""
    return MetadataResponseTopic(
        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
    )


async def _create_and_respond(
    context: RequestContext,
    request: MetadataRequest,
    names: list[str],
    missing: list[str],
    forbidden: list[MetadataResponseTopic],
) -> MetadataResponse:
    failures = await _create(context, missing)
    topics = await collect(_by_name(context, request, name, failures) for name in names)
    steps = _respond(context, request, [*topics, *forbidden])
    return await run_with_pauses(steps)


async def _create(context: RequestContext, names: list[str]) -> dict[str, ErrorCode]:
    """Create topics with these names; return the error codes of those that could not be created.
    A broker that is not the controller only begins the creation, and returns LEADER_NOT_AVAILABLE.
    If these are more than one request may create, none is created and each is
    UNKNOWN_TOPIC_OR_PARTITION. So does Kafka 4.4, which sends one CreateTopics request for all of
    them.
    """
    cluster = context.services.cluster
    config = context.services.config
    topics = {name: new_topic(name, config) for name in names if _is_topic_name(name)}
    try:
        _check_size(topics.values())
    except KafkaError as error:
        logger.warning(
            "%d topics are not created for %s: %s",
            len(topics),
            context.client_address,
            error.detail,
        )
        return {}
    failures: dict[str, ErrorCode] = {}
    # The quota delays the client and never refuses: an allowed creation always happens.
    mutations = context.services.quotas.mutations(context.quota_client, is_strict=False)
    if not cluster.is_controller:
        mutations.record(sum(topic.partition_count for topic in topics.values()))
        cluster.auto_creation.begin(topics)
        return dict.fromkeys(topics, ErrorCode.LEADER_NOT_AVAILABLE)
    turn = TimeSlice()
    for name, topic in topics.items():
        try:
            mutations.record(topic.partition_count)
            await cluster.create_topic(
                name, topic.partition_count, topic.replication_factor, configs=topic.configs
            )
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                failures[name] = error.code
                logger.warning(
                    "topic %s is not created for %s: %s", name, context.client_address, error
                )
        except CoordinationError:
            failures[name] = ErrorCode.LEADER_NOT_AVAILABLE
        if turn.is_over:
            await turn.pause()
    return failures


def _check_size(topics: Collection[NewTopic]) -> None:
    """Raise KafkaError POLICY_VIOLATION if these are more topics than one request may create."""
    check_new_partitions(sum(topic.partition_count for topic in topics))
    check_records(sum(records_of_topic(topic.partition_count, topic.configs) for topic in topics))


def _encoded_topic(
    context: RequestContext, request: MetadataRequest, topic: TopicImage
) -> EncodedTopic:
    operations = None
    if context.version >= 8 and request.include_topic_authorized_operations:
        operations = operations_of(context, ResourceType.TOPIC, topic.name)
    return encoded_topic(context, topic, operations=operations)


def _by_name(
    context: RequestContext, request: MetadataRequest, name: str, failures: dict[str, ErrorCode]
) -> AnsweredTopic:
    topic = context.services.cluster.image.topics.get(name)
    if topic is not None:
        return _encoded_topic(context, request, topic)
    code = failures.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not _is_topic_name(name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(
        error_code=int(code), name=name, is_internal=name in INTERNAL_TOPICS
    )


def _is_topic_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


def _by_id(
    context: RequestContext, request: MetadataRequest, topic_ids: dict[bytes, None]
) -> Steps[list[AnsweredTopic]]:
    topic_by_id = context.services.cluster.image.topic_by_id
    described: list[AnsweredTopic] = []
    unknown: list[AnsweredTopic] = []
    forbidden: list[AnsweredTopic] = []
    may_describe = Allowed(context, Operation.DESCRIBE)
    for topic_id in topic_ids:
        yield
        topic = topic_by_id.get(topic_id)
        if topic is not None and topic.name not in may_describe:
            forbidden.append(_forbidden(None, topic_id))
        elif topic is not None:
            described.append(_encoded_topic(context, request, topic))
        else:
            code = int(ErrorCode.UNKNOWN_TOPIC_ID)
            unknown.append(MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id))
    return unknown + described + forbidden


def _respond(
    context: RequestContext, request: MetadataRequest, topics: Sequence[AnsweredTopic]
) -> Steps[MetadataResponse]:
    image = context.services.cluster.image
    response = MetadataResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,  # type: ignore[arg-type]  # the encoder calls only `write`
    )
    for broker in image.brokers.values():
        address = endpoint_of(context, broker)
        if address is not None:
            response.brokers.append(
                MetadataResponseBroker(
                    node_id=broker.id, host=address.host, port=address.port, rack=broker.rack
                )
            )
    if context.version >= 8 and request.include_topic_authorized_operations:
        for topic in topics:
            yield
            if (
                isinstance(topic, MetadataResponseTopic)
                and topic.error_code not in _WITHOUT_OPERATIONS
            ):
                name = topic.name or ""
                topic.topic_authorized_operations = operations_of(context, ResourceType.TOPIC, name)
    if 8 <= context.version <= 10 and request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations_of_cluster(context)
    return response


# Topics as bytes.


class EncodedTopic(EncodedStruct):
    """One topic of a Metadata answer as bytes; constant after construction.
    It stands in `MetadataResponse.topics` in place of a `MetadataResponseTopic`.
    """

    __slots__ = ("brokers",)

    def __init__(self, topic: MetadataResponseTopic, version: int, brokers: Brokers) -> None:
        code = next((part.error_code for part in topic.partitions if part.error_code), 0)
        super().__init__(topic, version, code)
        self.brokers = brokers
        """The registered brokers at the time of encoding."""


_encoded: Final[WeakKeyDictionary[TopicImage, dict[Key, EncodedTopic]]] = WeakKeyDictionary()
"""A topic's part of the answer changes only with the topic or with the registered brokers. Both are
values of the image, which are replaced and never changed. So the bytes are built once per topic
value, version and listener, and are sent until the image has another value: an answer about a
thousand topics costs a thousand look-ups. An entry lives as long as its topic value, so the images
of this process bound the size."""


def encoded_topic(
    context: RequestContext, topic: TopicImage, *, operations: int | None
) -> EncodedTopic:
    """Return the topic as bytes of the request's version, for the client's listener.
    `operations`: the topic's authorized operations, None if nobody asks for them (KIP-430).
    """
    brokers = context.services.cluster.image.brokers
    by_key = _encoded.get(topic)
    if by_key is None:
        by_key = _encoded[topic] = {}
    key = context.version, context.listener.name, operations
    encoded = by_key.get(key)
    if encoded is None or encoded.brokers is not brokers:
        described = _describe(context, topic)
        if operations is not None:
            described.topic_authorized_operations = operations
        encoded = by_key[key] = EncodedTopic(described, context.version, brokers)
    return encoded


def _describe(context: RequestContext, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            _describe_partition(context, index, state)
            for index, state in enumerate(topic.partitions)
        ],
    )


def _describe_partition(
    context: RequestContext, index: int, state: PartitionImage
) -> MetadataResponsePartition:
    brokers = context.services.cluster.image.brokers
    code, leader_id = visible_leader(context, state)
    if code == ErrorCode.LISTENER_NOT_FOUND and context.version < 6:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    replicas, isr = state.replicas, state.isr
    if context.version == 0:
        # Version 0 lists no dead brokers, so a dead replica is left out, with an error code.
        replicas = [replica for replica in replicas if replica in brokers]
        isr = [replica for replica in isr if replica in brokers]
        if code == ErrorCode.NONE and len(replicas) < len(state.replicas):
            code = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=int(code),
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=state.offline,
    )
