"""How far the members of a group are: shares, first positions, records that are left to read.

`waits` asks again with every change. All of it is read from the brokers' own state, and from what
they saw of their readers (`fetching`).

A member that is ready has a position in each of its partitions: a Fetch of its client came after
it got its share, and its offset was in the log. From then on it reads whatever is produced, also
with `auto.offset.reset=latest`. A member that had another share before has to fetch twice:
librdkafka may still ask for the end once more, on account of that share, and the answer moves its
position. That question waits behind the first Fetch, so it is answered before the second one.

A Fetch does not say whose it is. So two members of the same client id and address that read one
partition, in two groups, are ready when two connections read it.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.kafka.errors import KafkaError
from minibroker.rig.fetching import ClientName
from minibroker.rig.group_views import GroupMember, members_of
from minibroker.rig.topic_records import records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.broker.app import Broker
    from minibroker.broker.groups.group import Group
    from minibroker.broker.partitions.partition import Partition
    from minibroker.rig.fetching import Fetching, ReadPlace, TopicAndIndex

    TopicPartition = tuple[str, int]

STABLE = "Stable"


class WatchedNode(Protocol):
    """A node as a look reads it: the broker, and the requests of its readers."""

    app: Broker
    fetching: Fetching


class Share(NamedTuple):
    """One member with the partitions that it has, or is about to get."""

    member: GroupMember
    client: ClientName
    is_synced: bool
    """False: it has not asked for its share of this generation yet."""
    since_ns: dict[TopicAndIndex, int | None]
    """Partition → when the member got it, None: it was not told yet."""


class GroupLook:
    """One group at this moment, of the nodes of its cluster."""

    def __init__(self, nodes: Sequence[WatchedNode], node: WatchedNode, group: Group) -> None:
        """Take `node`, which coordinates the group."""
        self._nodes = nodes
        self._image = node.app.cluster.image
        self._fetching = node.fetching
        self.group_id = group.group_id
        self.state = group.state_name
        self.shares = _shares_of(node, group)
        self.subscribed = _subscribed_by(group)
        """Topics of the members, None: they use a protocol of their own, or there are none."""
        offsets = node.app.services.groups.shard(group.group_id).offsets.of_group(group.group_id)
        self.committed: dict[TopicPartition, int] = {
            (topic, index): commit.offset
            for topic, commits in offsets.items()
            for index, commit in commits.items()
        }

    @property
    def members(self) -> list[GroupMember]:
        """Return the members, in the order in which they joined."""
        return [share.member for share in self.shares]

    def unassigned(self) -> list[TopicPartition]:
        """Return the partitions of subscribed topics that no member has."""
        assigned = {place for member in self.members for place in member.partitions}
        return [place for place in self.partitions() if place not in assigned]

    def missing_topics(self) -> list[str]:
        """Return the subscribed topics that do not exist."""
        return sorted(name for name in self.subscribed or () if name not in self._image.topics)

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that the group reads: those of subscribed topics. Where those are
        not known, the partitions with a committed offset.
        """
        if self.subscribed is None:
            return sorted(self.committed)
        topics = self._image.topics
        return [
            (name, index)
            for name in sorted(self.subscribed)
            if name in topics
            for index in range(len(topics[name].partitions))
        ]

    # Positions.

    def places_of(self, share: Share, topic: str, index: int) -> list[ReadPlace]:
        """Return the places where a member may read one of its partitions; none: it does not yet.

        They are several where members of other groups cannot be told from it.
        """
        key = (self._image.topics[topic].topic_id, index)
        since_ns = share.since_ns[key]
        if since_ns is None:
            return []
        has_moved = self._fetching.has_moved(share.member.member_id)
        places = self._fetching.places(share.client, key, since_ns, is_twice=has_moved)
        if len(places) <= self.rivals(share, topic, index):
            return []
        connections = self._fetching.count_connections(share.client)
        return places if connections >= self._readers[share.client] else []

    def rivals(self, share: Share, topic: str, index: int) -> int:
        """Return how many members of other groups look like this one and have the partition."""
        return self._rivals[share.client, (self._image.topics[topic].topic_id, index)]

    @cached_property
    def _rivals(self) -> Counter[tuple[ClientName, TopicAndIndex]]:
        """Return (client, partition) → members of other groups that have it, and are not gone."""
        return Counter(
            (share.client, key)
            for group_id, share in self._live_shares
            if group_id != self.group_id
            for key in share.since_ns
        )

    @cached_property
    def _readers(self) -> Counter[ClientName]:
        """Return client → members of any group that have a partition.

        A member that lost a partition may fetch it for a while: librdkafka does where the partition
        was revoked while its offset was looked up. So each one needs a connection of its own.
        """
        return Counter(share.client for _, share in self._live_shares if share.member.partitions)

    @cached_property
    def _live_shares(self) -> list[tuple[str, Share]]:
        """Return (group, share) of the members of all groups, without those that are gone."""
        return [
            (group.group_id, share)
            for node in self._nodes
            for group in _active_groups(node)
            for share in _shares_of(node, group)
            if not self._fetching.is_gone(group.group_id, share.member.member_id)
        ]

    def start_of(self, topic: str, index: int) -> int | None:
        """Return the offset at which the member began that has a partition, None: not seen yet."""
        for share in self.shares:
            if (topic, index) in share.member.partitions:
                since_ns = share.since_ns[self._image.topics[topic].topic_id, index] or 0
                places = self.places_of(share, topic, index)
                return min((place.start_after(since_ns) for place in places), default=None)
        return None

    def fetched_to(self, topic: str, index: int) -> int | None:
        """Return the offset that the member asks for next, None: no member has the partition, or
        its Fetch is not seen yet.
        """
        for share in self.shares:
            if (topic, index) in share.member.partitions:
                places = self.places_of(share, topic, index)
                return min((place.offset for place in places), default=None)
        return None

    def led(self, topic: str, index: int) -> Partition | None:
        """Return a partition at its leader, None while it has none."""
        for node in self._nodes:
            partition = node.app.partitions.replica(topic, index)
            if partition is not None and partition.is_leader:
                return partition
        return None


def find_group(nodes: Sequence[WatchedNode], group_id: str) -> GroupLook | None:
    """Return a group at its coordinator, None: there is none, or it is being loaded.

    Raises KafkaError(INVALID_GROUP_ID).
    """
    for node in nodes:
        if OFFSETS_TOPIC not in node.app.cluster.image.topics:
            continue
        try:
            group = node.app.services.groups.find(group_id)
        except KafkaError:  # another node coordinates it
            continue
        if group is not None:
            return GroupLook(nodes, node, group)
    return None


def group_states(nodes: Sequence[WatchedNode]) -> dict[str, str]:
    """Return group id → state of all groups of these nodes."""
    return {
        group.group_id: group.state_name
        for node in nodes
        if OFFSETS_TOPIC in node.app.cluster.image.topics
        for shard in node.app.services.groups.active_shards()
        for group in shard.groups.values()
    }


def has_records(partition: Partition, offset: int) -> bool:
    """Return whether a reader of committed records gets one at or behind an offset.

    Markers of transactions and what compaction removed are no records. Raises KafkaError.
    """
    offset = max(offset, partition.log_start_offset)
    if offset >= partition.high_watermark:
        return False
    return any(True for _ in records_of(partition, "read_committed", offset))


def _active_groups(node: WatchedNode) -> Iterator[Group]:
    if OFFSETS_TOPIC in node.app.cluster.image.topics:
        for shard in node.app.services.groups.active_shards():
            yield from (group for group in shard.groups.values() if not group.is_empty)


def _subscribed_by(group: Group) -> frozenset[str] | None:
    if isinstance(group, ClassicGroup):
        return group.subscribed_topics if group.members else None
    assert isinstance(group, ConsumerGroup)
    return frozenset(group.subscriptions) if group.members else None


def _shares_of(node: WatchedNode, group: Group) -> list[Share]:
    """Return the members of a group with their partitions, in the order in which they joined."""
    topics = node.app.services.groups.consumer.topics
    views = members_of(group, topics)
    keys = [
        [(topic_id, index) for topic, index in view.partitions if (topic_id := topics.id_of(topic))]
        for view in views
    ]
    if isinstance(group, ClassicGroup):
        return [
            _classic_share(node, group, view, keys_of_member, group.generation_id)
            for view, keys_of_member in zip(views, keys, strict=True)
        ]
    assert isinstance(group, ConsumerGroup)
    shares = []
    for view, keys_of_member in zip(views, keys, strict=True):
        member = group.members[view.member_id]
        if member.is_classic:
            shares.append(_classic_share(node, group, view, keys_of_member, member.member_epoch))
            continue
        client = ClientName(member.client_id, member.client_host)
        ns_by_partition = {
            key: node.fetching.given_ns(member.member_id, key) for key in keys_of_member
        }
        shares.append(Share(view, client, True, ns_by_partition))
    return shares


def _classic_share(
    node: WatchedNode,
    group: ClassicGroup | ConsumerGroup,
    view: GroupMember,
    keys: list[TopicAndIndex],
    generation_id: int,
) -> Share:
    """Return the share of a member that sends JoinGroup and SyncGroup."""
    member = group.members[view.member_id]
    synced_ns = node.fetching.synced_ns(group.group_id, view.member_id, generation_id)
    is_synced = not isinstance(group, ClassicGroup) or view.member_id not in group.pending_sync
    client = ClientName(member.client_id, member.client_host)
    return Share(view, client, is_synced, dict.fromkeys(keys, synced_ns))
