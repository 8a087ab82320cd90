"""Topics, groups and requests as the control API shows them: JSON, piece by piece.

Lists of partitions and commits may be long; `slices` lets the broker serve between two pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.groups.group import CLASSIC
from minibroker.control.bodies import line_of, opening_of
from minibroker.control.request_feed import last_of
from minibroker.control.shapes import (
    BrokerView,
    ClusterView,
    CommittedView,
    GroupView,
    MemberView,
    NotInSync,
    PartitionView,
    PlaceView,
    TopicView,
)
from minibroker.control.topic_shapes import PartitionDetail, TopicDetail
from minibroker.kafka.ids import topic_id_to_text
from minibroker.rig.inspector import led_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from minibroker.broker.app import Broker
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.control.shapes import RequestsQuery
    from minibroker.rig.group_views import GroupMember
    from minibroker.rig.request_log import RequestLog

_NO_DETAIL: Final = {"last_stable_offset": -1, "log_end_offset": -1, "segments": 0}
UNKNOWN_LAG: Final = -(1 << 80)
"""Less than any sum of lags makes up for."""
_NO_PARTITION: Final = {"log_start_offset": -1, "high_watermark": -1, "size_bytes": 0}


def topics_of(brokers: Sequence[Broker]) -> Iterator[str]:
    """Yield every topic with its partitions, by name, as the first of these brokers knows them.
    Offsets are -1 where none of them leads the partition.
    """
    topics = brokers[0].cluster.image.topics
    images = (topics.get(name) for name in sorted(topics))
    yield from _array(_topic(brokers, topic) for topic in images if topic is not None)
    yield "\n"


def topic_of(brokers: Sequence[Broker], topic: TopicImage) -> Iterator[str]:
    """Yield a topic in full."""
    topic_id = topic_id_to_text(topic.topic_id)
    yield opening_of(
        TopicDetail(name=topic.name, topic_id=topic_id, internal=topic.is_internal, partitions=[])
    )
    yield from _items([_detail(brokers, topic, index)] for index in range(len(topic.partitions)))
    yield "]}\n"


def _detail(brokers: Sequence[Broker], topic: TopicImage, index: int) -> str:
    partition = led_partition(brokers, topic.name, index)
    offsets: dict[str, int] = _NO_PARTITION | _NO_DETAIL
    if partition is not None:
        offsets = {
            "log_start_offset": partition.log_start_offset,
            "last_stable_offset": partition.last_stable_offset,
            "high_watermark": partition.high_watermark,
            "log_end_offset": partition.log_end_offset,
            "size_bytes": partition.log.size_bytes,
            "segments": len(partition.log.segments),
        }
    state = topic.partitions[index]
    return line_of(
        PartitionDetail(
            partition=index,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            replicas=list(state.replicas),
            in_sync=list(state.isr),
            offline=list(state.offline),
            **offsets,
        )
    )


def _topic(brokers: Sequence[Broker], topic: TopicImage) -> Iterator[str]:
    yield opening_of(TopicView(name=topic.name, internal=topic.is_internal, partitions=[]))
    yield from _items([_partition(brokers, topic, index)] for index in range(len(topic.partitions)))
    yield "]}"


def _partition(brokers: Sequence[Broker], topic: TopicImage, index: int) -> str:
    partition = led_partition(brokers, topic.name, index)
    offsets: dict[str, int] = _NO_PARTITION
    if partition is not None:
        offsets = {
            "log_start_offset": partition.log_start_offset,
            "high_watermark": partition.high_watermark,
            "size_bytes": partition.log.size_bytes,
        }
    state = topic.partitions[index]
    return line_of(
        PartitionView(
            partition=index,
            leader=state.leader,
            replicas=list(state.replicas),
            in_sync=list(state.isr),
            **offsets,
        )
    )


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


def shards_of(brokers: Sequence[Broker]) -> dict[str, tuple[Broker, GroupShard]]:
    """Return the id of each group that one of these brokers coordinates → broker and shard."""
    return {
        group_id: (broker, shard)
        for broker in brokers
        if OFFSETS_TOPIC in broker.cluster.image.topics
        for shard in broker.services.groups.active_shards()
        for group_id in (*shard.groups, *shard.offsets.group_ids())
    }


def groups_of(brokers: Sequence[Broker]) -> Iterator[str]:
    """Yield every group that one of these brokers coordinates, with its committed offsets, by
    name.
    """
    shards = shards_of(brokers)
    yield from _array(_group(brokers, group_id, *shards[group_id]) for group_id in sorted(shards))
    yield "\n"


def _group(
    brokers: Sequence[Broker], group_id: str, broker: Broker, shard: GroupShard
) -> Iterator[str]:
    group = shard.groups.get(group_id)
    lag = 0
    for part in lag_parts(brokers, shard, group_id):
        lag += part
        yield ""
    yield opening_of(
        GroupView(
            group=group_id,
            kind=group.type_name if group is not None else CLASSIC,
            broker_id=broker.config.broker_id,
            state=group.state_name if group is not None else "Empty",
            members=group.member_count if group is not None else 0,
            lag=lag if lag >= 0 else None,
            committed=[],
        )
    )
    yield from _items(
        [line_of(CommittedView(topic=topic, partition=partition, offset=committed.offset))]
        for topic, partitions in sorted(shard.offsets.of_group(group_id).items())
        for partition, committed in sorted(partitions.items())
    )
    yield "]}"


def lag_parts(brokers: Sequence[Broker], shard: GroupShard, group_id: str) -> Iterator[int]:
    """Yield the lag of each partition that the group has an offset of. Where none of these brokers
    leads it, `UNKNOWN_LAG`: then the sum is negative.
    """
    for topic, partitions in list(shard.offsets.of_group(group_id).items()):
        for index, committed in list(partitions.items()):
            partition = led_partition(brokers, topic, index)
            if partition is None:
                yield UNKNOWN_LAG
            else:
                yield max(0, partition.high_watermark - committed.offset)


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


def requests_of(logs: Mapping[int | None, RequestLog], query: RequestsQuery) -> Iterator[str]:
    """Yield the last requests of some brokers, oldest first, as a JSON object per line."""
    for view in last_of(logs, query, query.limit):
        yield "" if view is None else line_of(view) + "\n"


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
