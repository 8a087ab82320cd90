"""One group in full, as JSON in pieces: members with their partitions, offsets with their lag."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.groups.classic.group import ClassicGroup, topics_of
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.group import CLASSIC
from minibroker.control.bodies import line_of
from minibroker.control.group_shapes import GroupDetail, MemberDetail, OffsetDetail
from minibroker.control.shapes import PlaceView
from minibroker.control.views import lag_parts
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.rig.group_views import members_of
from minibroker.rig.inspector import led_partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.broker.app import Broker
    from minibroker.broker.groups.group import Group
    from minibroker.broker.groups.offsets import CommittedOffset
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.rig.group_views import GroupMember

SUBSCRIPTION_MAX: Final = 100
"""Topics of a member's subscription that are shown."""
_EMPTY_LISTS: Final = '[],"offsets":[]}'


def coordinator_of(brokers: Sequence[Broker], group_id: str) -> tuple[Broker, GroupShard]:
    """Return the broker that coordinates a group, and the group's shard. Raises KafkaError where
    none of these brokers does, and where there is no such group.
    """
    failure = KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r:.300}")
    for broker in brokers:
        if OFFSETS_TOPIC not in broker.cluster.image.topics:
            continue
        try:
            shard = broker.services.groups.shard(group_id)
        except KafkaError as error:
            # The coordinator may be loading; that others are not the coordinator says less.
            is_news = error.code is not ErrorCode.NOT_COORDINATOR
            if is_news or failure.code is ErrorCode.GROUP_ID_NOT_FOUND:
                failure = error
            continue
        if group_id not in shard.groups and not shard.offsets.of_group(group_id):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r:.300}")
        return broker, shard
    raise failure


def group_in_full(
    brokers: Sequence[Broker], broker: Broker, shard: GroupShard, group_id: str
) -> Iterator[str]:
    """Yield a group as JSON. An empty piece is a chance to pause."""
    group = shard.groups.get(group_id)
    members: list[GroupMember] = []
    if group is not None:
        members = members_of(group, broker.services.groups.consumer.topics)
    yield ""
    lag = 0
    for part in lag_parts(brokers, shard, group_id):
        lag += part
        yield ""
    kind = group.type_name if group is not None else CLASSIC
    head = GroupDetail(
        group=group_id,
        kind=kind,
        broker_id=broker.config.broker_id,
        state=group.state_name if group is not None else "Empty",
        protocol_type=group.protocol_type if group is not None else None,
        assignor=_assignor(group),
        generation=_generation(group),
        lag=lag if lag >= 0 else None,
        members=[],
        offsets=[],
    )
    yield line_of(head).removesuffix(_EMPTY_LISTS) + "["
    owners: dict[tuple[str, int], str] = {}
    for number, member in enumerate(members):
        owners.update(dict.fromkeys(member.partitions, member.member_id))
        yield (", " if number else "") + line_of(_member(group, member))
    yield '],"offsets":['
    separator = ""
    for topic, partitions in sorted(shard.offsets.of_group(group_id).items()):
        for index, committed in sorted(partitions.items()):
            yield separator + _offset(brokers, topic, index, committed, owners.get((topic, index)))
            separator = ", "
    yield "]}\n"


def _assignor(group: Group | None) -> str | None:
    if isinstance(group, ConsumerGroup):
        return next(iter(group.assignor_counts), None)
    return group.protocol_name if isinstance(group, ClassicGroup) else None


def _generation(group: Group | None) -> int:
    if isinstance(group, ConsumerGroup):
        return group.epoch
    return group.generation_id if isinstance(group, ClassicGroup) else 0


def _member(group: Any, member: GroupMember) -> MemberDetail:
    record = group.members[member.member_id]
    is_consumer = isinstance(group, ConsumerGroup)
    subscription = _patterns(record) if is_consumer else _topics(group, record)
    return MemberDetail(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=record.client_host,
        epoch=record.member_epoch if is_consumer else None,
        subscription=subscription,
        partitions=[PlaceView(topic=topic, partition=index) for topic, index in member.partitions],
    )


def _topics(group: ClassicGroup, member: Any) -> list[str]:
    """Return the topics that a member of the classic protocol reads; none of other protocols."""
    metadata = member.metadata_of(group.protocol_name)
    if not group.uses_consumer_protocol or not metadata:
        return []
    try:
        return sorted(islice(topics_of(metadata), SUBSCRIPTION_MAX))
    except ProtocolError:  # Kafka takes any bytes of a member, so this has no list of topics
        return []


def _patterns(member: Any) -> list[str]:
    topics = sorted(islice(member.topic_names, SUBSCRIPTION_MAX))
    return [*topics, f"/{member.topic_regex}/"] if member.topic_regex else topics


def _offset(
    brokers: Sequence[Broker],
    topic: str,
    index: int,
    committed: CommittedOffset,
    member_id: str | None,
) -> str:
    partition = led_partition(brokers, topic, index)
    start = end = -1
    lag = None
    if partition is not None:
        start, end = partition.log_start_offset, partition.high_watermark
        lag = max(0, end - committed.offset)
    return line_of(
        OffsetDetail(
            topic=topic,
            partition=index,
            offset=committed.offset,
            metadata=committed.metadata,
            committed_ms=committed.commit_timestamp_ms,
            log_start_offset=start,
            end_offset=end,
            lag=lag,
            member_id=member_id,
        )
    )
