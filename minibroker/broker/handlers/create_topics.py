"""CreateTopics: key 19, versions 0-7.

Behaviour: each topic gets its own result. A created topic has its leaders before the answer leaves;
after `timeout_ms` without them it is REQUEST_TIMED_OUT, and the topic stays. So it is where all
brokers of an assignment are dead (Kafka 4 refuses those, and so does a broker that stands alone).
From version 5 on the answer holds its configuration. A request that would create more than
`cluster/creation_limits` allows is refused as a whole in every version. Kafka 4.4 does so; Kafka
3.9 creates as many as it can and stops answering.

Versions:
- 1: validate only, error messages
- 4: defaults by -1 (KIP-464)
- 5: flexible, configuration in the answer (KIP-525): a list, never null, as Java's client fails on
  null
- 6: THROTTLING_QUOTA_EXCEEDED
- 7: topic id
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.creation_limits import (
    check_new_partitions,
    check_records,
    records_of_topic,
)
from minibroker.broker.config.describe import topic_entries
from minibroker.broker.first_step import begin
from minibroker.broker.handlers.configs.resources import TOPIC, check_values
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext, Services
    from minibroker.broker.quotas.manager import Mutations
    from minibroker.kafka.protocol.messages.create_topics import CreatableTopic

_DEFAULT: Final = -1
_INVALID_CONFIG_SINCE: Final = (2, 1)
"""The release from which on a wrong setting has an error of its own."""
_METADATA_TOPIC: Final = "__cluster_metadata"


def handle(
    context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse | Awaitable[CreateTopicsResponse]:
    """Return one result per topic name, in order. Where no other process has the tree, a small
    request is done when this returns.

    Raises KafkaError POLICY_VIOLATION for the whole request if it would create too much.
    """
    work = _create_all(context, request)
    return work if context.services.cluster.tree.is_shared else begin(work)


async def _create_all(
    context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    response = CreateTopicsResponse()
    quotas = context.services.quotas
    mutations = quotas.mutations(context.quota_client, is_strict=context.version >= 6)
    topic_by_name = {topic.name: topic for topic in request.topics}
    repeated_names = (
        set() if len(topic_by_name) == len(request.topics) else _repeated(request.topics)
    )
    if context.services.cluster.is_controller:
        await _check_size(context, request.topics, repeated_names)
    until = asyncio.get_running_loop().time() + request.timeout_ms / 1000
    turn = TimeSlice()
    for topic in topic_by_name.values():
        if response.topics and turn.is_over:
            await turn.pause()
        result = CreatableTopicResult(name=topic.name, error_message=None)
        try:
            _check(context, topic.name, is_repeated=topic.name in repeated_names)
            await _create(context, request, topic, result, mutations)
        except Exception as error:
            result = _failed(topic.name, *as_answer(error, f"creating {topic.name}"))
        response.topics.append(result)
    if not request.validate_only:
        await _wait_for_leaders(context, response, until)
    response.throttle_time_ms = mutations.throttle_time_ms
    return response


async def _wait_for_leaders(
    context: RequestContext, response: CreateTopicsResponse, until: float
) -> None:
    """Wait for the leaders of all topics together; replace the results of those without one.

    `until` is a time of the loop.
    """
    loop = asyncio.get_running_loop()
    topics = context.services.cluster.topics
    for place, result in enumerate(response.topics):
        if result.error_code or topics.have_leaders(result.name):
            continue
        try:
            left_s = max(0.0, until - loop.time())
            await topics.wait_for_leaders(result.name, left_s)
        except KafkaError as error:
            response.topics[place] = _failed(result.name, int(error.code), None)


def _repeated(topics: list[CreatableTopic]) -> set[str]:
    """Return the names that several of these topics have."""
    counts = Counter([topic.name for topic in topics])
    return {name for name, count in counts.items() if count > 1}


async def _check_size(
    context: RequestContext, topics: list[CreatableTopic], repeated_names: set[str]
) -> None:
    """Raise KafkaError POLICY_VIOLATION for a request that would create too much.

    Topics do not count whose name is repeated, nor those that the client may not create.
    Kafka also counts the partitions of topics that exist already, and counts records only of topics
    that pass all other checks. Here every topic counts that does not exist yet.
    """
    services = context.services
    partitions = records = 0
    turn = TimeSlice()
    for topic in topics:
        if turn.is_over:
            await turn.pause()
        if topic.name == _METADATA_TOPIC or topic.name in repeated_names:
            continue
        if _may_create(context, topic.name, is_filter=True):
            count = len(topic.assignments) or _partition_count(services, topic)
            partitions += max(0, count)
            if topic.name not in services.cluster.image.topics:
                records += records_of_topic(max(0, count), topic.configs)
    check_new_partitions(partitions)
    check_records(records)


def _partition_count(services: Services, topic: CreatableTopic) -> int:
    """Return the number of partitions of a topic without an assignment; it may be negative."""
    if topic.num_partitions == _DEFAULT:
        return services.config.num_partitions
    return topic.num_partitions


def _failed(name: str, code: int, detail: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=detail, configs=[])


def _check(context: RequestContext, name: str, *, is_repeated: bool) -> None:
    """Raise KafkaError for a refusal that Kafka decides before it looks at the topic itself."""
    if not context.services.cluster.is_controller:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "")
    if name == _METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
        )
    if is_repeated:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
    if not _may_create(context, name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def _may_create(context: RequestContext, name: str, *, is_filter: bool = False) -> bool:
    """Return whether the client may create every topic, or this one."""
    return context.authorize(
        Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True
    ) or context.authorize(Operation.CREATE, ResourceType.TOPIC, name, is_filter=is_filter)


async def _create(
    context: RequestContext,
    request: CreateTopicsRequest,
    topic: CreatableTopic,
    result: CreatableTopicResult,
    mutations: Mutations,
) -> None:
    """Create the topic, or check whether it could be created; write the outcome into `result`.

    Raises KafkaError, in Kafka's order of checks, and CoordinationError.
    """
    services = context.services
    cluster, config = services.cluster, services.config
    name = topic.name
    if name in cluster.image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    configs = _wanted_configs(topic)
    assignment = _wanted_assignment(topic)
    partition_count = _partition_count(services, topic)
    replication_factor = topic.replication_factor
    if replication_factor == _DEFAULT:
        replication_factor = config.default_replication_factor
    replicas = cluster.topics.plan(name, partition_count, replication_factor, assignment)
    if configs:
        _check_configs(services, name, configs)
    if not request.validate_only:
        mutations.record(len(replicas))
        created = await cluster.topics.create(name, replicas, configs, None)
        if request.timeout_ms <= 0:
            # Kafka starts the creation and does not wait for it.
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        result.topic_id = created.topic_id
    if not context.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name, is_filter=True):
        result.topic_config_error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return
    result.num_partitions = len(replicas)
    result.replication_factor = len(replicas[0])
    result.configs = _described(services, configs) if context.version >= 5 else []


def _check_configs(services: Services, name: str, configs: dict[str, str]) -> None:
    """Raise KafkaError for a wrong setting: INVALID_CONFIG, before 2.1 UNKNOWN_SERVER_ERROR."""
    try:
        check_values(services, TOPIC, name, configs)
    except KafkaError as error:
        release = services.config.advertised_kafka_version
        if release is not None and tuple(map(int, release.split("."))) < _INVALID_CONFIG_SINCE:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        raise


def _wanted_configs(topic: CreatableTopic) -> dict[str, str]:
    """Return the topic's own configuration. Raises INVALID_CONFIG."""
    without_value = [entry.name for entry in topic.configs if entry.value is None]
    if without_value:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(without_value)}",
        )
    return {entry.name: entry.value for entry in topic.configs if entry.value is not None}


def _wanted_assignment(topic: CreatableTopic) -> dict[int, list[int]] | None:
    """Return partition → brokers, None if the broker may choose.

    Raises INVALID_REQUEST, INVALID_REPLICA_ASSIGNMENT.
    """
    if not topic.assignments:
        return None
    if topic.num_partitions != _DEFAULT or topic.replication_factor != _DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set."
            " Both cannot be used at the same time.",
        )
    assignment = {
        partition.partition_index: list(partition.broker_ids) for partition in topic.assignments
    }
    if len(assignment) != len(topic.assignments):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned more than once"
        )
    return assignment


def _described(services: Services, configs: dict[str, str]) -> list[CreatableTopicConfigs]:
    """Return every effective setting of a topic with this configuration of its own."""
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in topic_entries(services.dynamic, configs)
    ]
