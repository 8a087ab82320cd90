"""The `uniform` assignor: the same number of partitions for everybody, and as few moves as can be.

When all subscribed to the same topics: a member keeps what it has up to its quota (the total
divided by the members, and one more while there are remainders), what is over and what nobody has
goes to those below theirs. When subscriptions differ, `uniform_balancing.py` does it.

Source: Kafka 4.4, UniformAssignor, UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.groups.consumer.assignor import frozen, walk_partitions
from minibroker.broker.groups.consumer.java_order import (
    copied_capacity,
    grown_capacity,
    hash_order,
    uuid_hash,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.groups.consumer.assignor import Assignment, AssignorInput, MemberInput


def assign(group: AssignorInput) -> dict[str, Assignment]:
    """See the module."""
    if not group.members:
        return {}
    if group.is_homogeneous:
        return _assign_alike(group)
    from minibroker.broker.groups.consumer.uniform_balancing import assign_unlike  # noqa: PLC0415 seldom

    return assign_unlike(group)


def _assign_alike(group: AssignorInput) -> dict[str, Assignment]:
    first = next(iter(group.members.values()))
    if not first.topic_ids:
        return {}
    topic_ids = hash_order(first.topic_ids, uuid_hash, copied_capacity(len(first.topic_ids)))
    free = [
        (topic_id, partition)
        for topic_id in topic_ids
        for partition in range(group.partition_counts[topic_id])
        if partition not in group.owners.get(topic_id, ())
    ]
    total = sum(group.partition_counts[topic_id] for topic_id in topic_ids)
    quota, extra_count = divmod(total, len(group.members))
    kept_partitions: dict[str, dict[bytes, set[int]]] = {}
    open_rooms: list[tuple[str, int]] = []
    for place, (member_id, member) in enumerate(group.members.items()):
        room = quota + (extra_count > 0)
        has_extra = extra_count > 0
        keeping, surplus, room = _keep(member, frozenset(topic_ids), room)
        kept_partitions[member_id] = keeping
        free.extend(surplus)
        if room > 0 and has_extra and len(group.members) - place > extra_count:
            # Leaves the extra partition to another member; the last ones have to take theirs.
            room -= 1
            has_extra = False
        if room > 0:
            open_rooms.append((member_id, room))
        extra_count -= has_extra
    _hand_out(iter(free), open_rooms, kept_partitions)
    return {member_id: frozen(partitions) for member_id, partitions in kept_partitions.items()}


def _keep(
    member: MemberInput, topic_ids: frozenset[bytes], room: int
) -> tuple[dict[bytes, set[int]], list[tuple[bytes, int]], int]:
    """Return the partitions that a member keeps, its surplus, and how many more it may get."""
    kept_partitions: dict[bytes, set[int]] = {}
    surplus: list[tuple[bytes, int]] = []
    old = member.assignment
    for topic_id in hash_order(tuple(old), uuid_hash, grown_capacity(len(old))):
        if topic_id not in topic_ids:
            continue
        for partition in walk_partitions(old[topic_id]):
            if room > 0:
                kept_partitions.setdefault(topic_id, set()).add(partition)
                room -= 1
            else:
                surplus.append((topic_id, partition))
    return kept_partitions, surplus, room


def _hand_out(
    free: Iterator[tuple[bytes, int]],
    open_rooms: list[tuple[str, int]],
    kept_partitions: dict[str, dict[bytes, set[int]]],
) -> None:
    for member_id, room in open_rooms:
        for _, (topic_id, partition) in zip(range(room), free, strict=False):
            kept_partitions[member_id].setdefault(topic_id, set()).add(partition)
