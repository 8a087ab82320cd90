"""How far the groups of a cluster are behind the ends of topics. The brokers are asked.

For `jobs.inspect`, and only for topics of a broker: files do not have groups. A group counts for a
topic if it has committed an offset there. The exactly-once sink commits to groups of its own
(`sink_marker`), which are no readers: groups with its usual name are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

from minibroker.pipeline import preflight
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.report_facts import GroupLag
from minibroker.pipeline.sink_marker import is_marker_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka.admin import AdminClient

    from minibroker.pipeline.plan import Kafka

ANSWER_TIMEOUT_S: Final = 30


def read_group_lag(kafka: Kafka, topics: Sequence[str]) -> dict[str, tuple[GroupLag, ...]]:
    """Return topic → its groups, the group with the largest lag first.

    Raises PipelineError when the brokers do not answer.
    """
    ends = preflight.end_offsets(kafka, preflight.ask(kafka), topics)
    admin = preflight.admin_of(kafka)
    try:
        listed = admin.list_consumer_groups(request_timeout=ANSWER_TIMEOUT_S).result()
        states = {
            group.group_id: group.state.name.lower()
            for group in listed.valid
            if not is_marker_group(group.group_id)
        }
        committed = {name: _committed(admin, name) for name in sorted(states)}
    except KafkaException as error:
        raise PipelineError(
            f"the groups of {kafka.bootstrap} are not to be had: {error.args[0].str()}"
        ) from error
    return {
        topic: tuple(
            sorted(
                (
                    lag_of(name, states[name], offsets[topic], ends[topic])
                    for name, offsets in committed.items()
                    if topic in offsets
                ),
                key=lambda group: (-group.lag, group.group),
            )
        )
        for topic in topics
    }


def _committed(admin: AdminClient, group: str) -> dict[str, dict[int, int]]:
    """Return topic → partition → committed offset."""
    request = [ConsumerGroupTopicPartitions(group)]
    answers = admin.list_consumer_group_offsets(request, request_timeout=ANSWER_TIMEOUT_S)
    found: dict[str, dict[int, int]] = {}
    for topic_partition in answers[group].result().topic_partitions or ():
        if topic_partition.error is None and topic_partition.offset >= 0:
            found.setdefault(topic_partition.topic, {})[topic_partition.partition] = (
                topic_partition.offset
            )
    return found


def lag_of(
    group: str, state: str, committed: Mapping[int, int], ends: Mapping[int, int]
) -> GroupLag:
    """Return the lag of one group in one topic; a partition without a commit counts as no lag."""
    lag = sum(
        max(0, end - committed[partition])
        for partition, end in ends.items()
        if partition in committed
    )
    return GroupLag(
        group, state, lag, len(ends), sum(partition not in committed for partition in ends)
    )
