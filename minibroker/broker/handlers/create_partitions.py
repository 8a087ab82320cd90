"""CreatePartitions: key 37, versions 0-3.

Behaviour: adds partitions to topics. Each topic gets its own result. The new partitions have
leaders before the answer leaves. A request for more partitions than `cluster/creation_limits`
allows is refused as a whole in every version, as in Kafka 4.4.

Versions:
- 2: flexible
- 3: THROTTLING_QUOTA_EXCEEDED (KIP-599)

Differs from Kafka: the results have the order of the request; Kafka's have the order of a hash map.
"""

from __future__ import annotations

from collections import Counter
from itertools import compress
from typing import TYPE_CHECKING

from minibroker.broker.cluster.creation_limits import check_added_partitions
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import Operation
from minibroker.broker.slices import TimeSlice, collect
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.quotas.manager import Mutations
    from minibroker.kafka.protocol.messages.create_partitions import CreatePartitionsTopic


async def handle(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Return one result per topic name, in order.

    Raises KafkaError POLICY_VIOLATION for the whole request if it would add too many partitions.
    """
    response = CreatePartitionsResponse()
    quotas = context.services.quotas
    mutations = quotas.mutations(context.quota_client, is_strict=context.version >= 3)
    named_count = Counter(topic.name for topic in request.topics)
    named_once = [topic for topic in request.topics if named_count[topic.name] == 1]
    may_alter = Allowed(context, Operation.ALTER)
    if context.services.cluster.is_controller:
        are_allowed = await collect(topic.name in may_alter for topic in named_once)
        allowed = list(compress(named_once, are_allowed))
        check_added_partitions(_added_count(context, allowed))
    turn = TimeSlice()
    for topic in {topic.name: topic for topic in request.topics}.values():
        result = CreatePartitionsTopicResult(name=topic.name)
        response.results.append(result)
        try:
            if not context.services.cluster.is_controller:
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            if named_count[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            may_alter.require(topic.name)
            await _grow(context, request, topic, mutations)
        except Exception as error:
            result.error_code, result.error_message = as_answer(
                error, f"adding partitions to {topic.name}"
            )
        if turn.is_over:
            await turn.pause()
    response.throttle_time_ms = mutations.throttle_time_ms
    return response


def _added_count(context: RequestContext, topics: list[CreatePartitionsTopic]) -> int:
    """Return how many partitions these topics would get together; unknown topics do not count."""
    image_topics = context.services.cluster.image.topics
    return sum(
        max(0, topic.count - len(image_topics[topic.name].partitions))
        for topic in topics
        if topic.name in image_topics
    )


async def _grow(
    context: RequestContext,
    request: CreatePartitionsRequest,
    topic: CreatePartitionsTopic,
    mutations: Mutations,
) -> None:
    cluster = context.services.cluster
    assignment = None
    if topic.assignments is not None:
        assignment = [list(replicas.broker_ids) for replicas in topic.assignments]
    cluster.topics.plan_partitions(topic.name, topic.count, assignment)
    if request.validate_only:
        return
    mutations.record(topic.count - len(cluster.image.topics[topic.name].partitions))
    await cluster.topics.add_partitions(topic.name, topic.count, assignment)
    if request.timeout_ms <= 0:
        # Kafka starts the work and does not wait for it.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
