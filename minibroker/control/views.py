"""Topics, groups and requests as the control API shows them: JSON, piece by piece.

Lists of partitions and commits may be long; `slices` lets the broker serve between two pieces.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.control.bodies import line_of, opening_of
from minibroker.control.shapes import (
    BrokerView,
    ClusterView,
    CommittedView,
    GroupView,
    MemberView,
    NotInSync,
    PartitionView,
    PlaceView,
    RequestView,
    TopicView,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minibroker.broker.app import Broker
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.control.shapes import RequestsQuery
    from minibroker.rig.group_views import GroupMember
    from minibroker.rig.node import Node

_NO_PARTITION: Final = {"log_start_offset": -1, "high_watermark": -1, "size_bytes": 0}


def topics_of(broker: Broker) -> Iterator[str]:
    """Yield every topic with its partitions, by name; offsets are -1 if another broker leads."""
    topics = broker.cluster.image.topics
    images = (topics.get(name) for name in sorted(topics))
    yield from _array(_topic(broker, topic) for topic in images if topic is not None)
    yield "\n"


def _topic(broker: Broker, topic: TopicImage) -> Iterator[str]:
    yield opening_of(TopicView(name=topic.name, internal=topic.is_internal, partitions=[]))
    yield from _items([_partition(broker, topic, index)] for index in range(len(topic.partitions)))
    yield "]}"


def _partition(broker: Broker, topic: TopicImage, index: int) -> str:
    partition = broker.partitions.find(topic.name, index)
    offsets: dict[str, int] = _NO_PARTITION
    if partition is not None:
        offsets = {
            "log_start_offset": partition.log_start_offset,
            "high_watermark": partition.high_watermark,
            "size_bytes": partition.log.size_bytes,
        }
    leader = topic.partitions[index].leader
    return line_of(PartitionView(partition=index, leader=leader, **offsets))


def cluster_of(broker: Broker) -> ClusterView:
    """Return the cluster as this broker knows it, and the partitions that lack a replica."""
    image = broker.cluster.image
    return ClusterView(
        broker=broker.config.broker_id,
        controller=image.controller_id,
        controller_epoch=image.controller_epoch,
        metadata_age_ms=broker.cluster.requests.metadata_age_ms(),
        brokers=[
            BrokerView(id=info.id, address="{}:{}".format(*info.endpoints[0][1:3]))
            for _, info in sorted(image.brokers.items())
            if info.endpoints
        ],
        not_in_sync=[
            NotInSync(topic=name, partition=index, in_sync=sorted(partition.isr))
            for name, topic in sorted(image.topics.items())
            for index, partition in enumerate(topic.partitions)
            if set(partition.isr) != set(partition.replicas)
        ],
    )


def groups_of(broker: Broker) -> Iterator[str]:
    """Yield every group of this coordinator with its committed offsets, by name."""
    is_used = OFFSETS_TOPIC in broker.cluster.image.topics
    shards = {
        group_id: shard
        for shard in (broker.services.groups.active_shards() if is_used else ())
        for group_id in (*shard.groups, *shard.offsets.group_ids())
    }
    yield from _array(_group(shards[group_id], group_id) for group_id in sorted(shards))
    yield "\n"


def _group(shard: GroupShard, group_id: str) -> Iterator[str]:
    group = shard.groups.get(group_id)
    state = group.state_name if group is not None else "Empty"
    members = group.member_count if group is not None else 0
    yield opening_of(GroupView(group=group_id, state=state, members=members, committed=[]))
    yield from _items(
        [line_of(CommittedView(topic=topic, partition=partition, offset=committed.offset))]
        for topic, partitions in sorted(shard.offsets.of_group(group_id).items())
        for partition, committed in sorted(partitions.items())
    )
    yield "]}"


def _array(items: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a JSON array of items that come in pieces themselves."""
    yield "["
    yield from _items(items)
    yield "]"


def _items(items: Iterable[Iterable[str]]) -> Iterator[str]:
    for number, item in enumerate(items):
        if number:
            yield ", "
        yield from item


def requests_of(node: Node, query: RequestsQuery) -> Iterator[str]:
    """Yield the last requests, oldest first, as a JSON object per line."""
    fitting = (
        request
        for request in reversed(node.request_log)
        if query.api in (None, request.api) and query.client_id in (None, request.client_id)
    )
    last = list(islice(fitting, query.limit))[::-1]
    return (line_of(RequestView(**request._asdict())) + "\n" for request in last)


def member_of(member: GroupMember) -> MemberView:
    """Return a member of a group with its partitions."""
    places = [PlaceView(topic=topic, partition=partition) for topic, partition in member.partitions]
    return MemberView(
        member_id=member.member_id,
        client_id=member.client_id,
        instance_id=member.instance_id,
        partitions=places,
    )


def offsets_of(offsets: Mapping[tuple[str, int], int]) -> list[CommittedView]:
    """Return (topic, partition) → offset as a list."""
    return [
        CommittedView(topic=topic, partition=partition, offset=offset)
        for (topic, partition), offset in sorted(offsets.items())
    ]
