"""The `range` assignor: every topic is cut into one run of partitions per subscriber.

The first members get one partition more when a topic cannot be divided evenly. Static members come
first, in the order of their instance ids, then the others by member id: topics with equally many
partitions and the same subscribers are cut alike, so their partitions can be joined.

Source: Kafka 4.4, RangeAssignor.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from minibroker.broker.groups.consumer.java_order import java_string_key

if TYPE_CHECKING:
    from minibroker.broker.groups.consumer.assignor import Assignment, AssignorInput, MemberInput


def assign(group: AssignorInput) -> dict[str, Assignment]:
    """See the module; the assignment so far does not matter."""
    subscribers = Counter(
        topic_id for member in group.members.values() for topic_id in set(member.topic_ids)
    )
    served_counts: Counter[bytes] = Counter()  # subscribers served so far, per topic
    result: dict[str, Assignment] = {}
    for member_id, member in sorted(group.members.items(), key=_order):
        assignment: Assignment = {}
        for topic_id in member.topic_ids:
            quota, extra = divmod(group.partition_counts[topic_id], subscribers[topic_id])
            place = served_counts[topic_id]
            served_counts[topic_id] += 1
            start = place * quota + min(place, extra)
            end = start + quota + (place < extra)
            if start < end:
                assignment[topic_id] = tuple(range(start, end))
        result[member_id] = assignment
    return result


def _order(entry: tuple[str, MemberInput]) -> tuple[bool, bytes]:
    member_id, member = entry
    is_dynamic = member.instance_id is None
    return is_dynamic, java_string_key(member.instance_id or member_id)
