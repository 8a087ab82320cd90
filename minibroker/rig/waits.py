"""`Waits`: a test waits until consumers are ready, or have read everything.

No wait asks at intervals: each is woken by requests, by connections that close and by the journal
of the groups (`fetching`), and looks again (`readiness`). `Node.waits` has those of one broker,
`Nodes.waits` those of a cluster. The testing package and the control API call them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.rig.readiness import STABLE, find_group, group_states, has_records
from minibroker.trace.batches import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from minibroker.rig.fetching import ClientName, ReadPlace
    from minibroker.rig.group_views import GroupMember
    from minibroker.rig.readiness import GroupLook, Share, TopicPartition, WatchedNode

T = TypeVar("T")
WAIT_S: Final = 10.0
LISTED_MAX: Final = 8
"""Most groups, members and partitions of one kind in a sentence."""
_SOCKET_TURNS: Final = 3
"""Turns of the loop until connections that clients closed before are closed here, too."""


class _Goal(Generic[T]):
    """The aim of a wait."""

    def __init__(
        self,
        sentence: str,
        look: Callable[[Sequence[WatchedNode]], T | None],
        describe: Callable[[Sequence[WatchedNode]], str],
    ) -> None:
        self.sentence = sentence
        self.look = look
        """Returns the result, None while the goal is not reached."""
        self.describe = describe
        """Returns what there is, for people."""


class Waits:
    """The waits of one broker, or of a cluster in one process. Belongs to the loop."""

    def __init__(self, nodes: Callable[[], Sequence[WatchedNode]]) -> None:
        """`nodes` returns the nodes that run now."""
        self._nodes = nodes

    async def for_group(
        self, group_id: str, members: int | None = None, timeout_s: float = WAIT_S
    ) -> list[GroupMember]:
        """Wait until a group is ready; return its members in the order in which they joined.

        It is Stable with exactly `members` members (None: one or more), each has its share, each
        partition of the topics that they subscribe to has a member, and each member has fetched
        from each of its partitions. A record that is produced then is read, also with
        `auto.offset.reset=latest`. Raises TimeoutError with what there was; ValueError for
        `members` below 1; KafkaError(INVALID_GROUP_ID).
        """
        if members is not None and members < 1:
            raise ValueError(f"members={members}: a group that is ready has one member or more")
        _check_group_id(group_id)

        def look(nodes: Sequence[WatchedNode]) -> list[GroupMember] | None:
            group = find_group(nodes, group_id)
            return group.members if group is not None and _is_ready(group, members) else None

        def describe(nodes: Sequence[WatchedNode]) -> str:
            group = find_group(nodes, group_id)
            return _no_group(nodes) if group is None else _state_of(group)

        count = "" if members is None else f" with {count_of(members, 'member')}"
        goal = _Goal(f"group {group_id!r} is ready{count}", look, describe)
        return await self._until(goal, timeout_s, group_id)

    async def until_read(
        self, group_id: str, *, fetched: bool = False, timeout_s: float = WAIT_S
    ) -> dict[TopicPartition, int]:
        """Wait until a group has read every record; return (topic, partition) → offset that it
        has read to, as far as there is one.

        A record counts as read once the group has committed an offset behind it. With `fetched`,
        once a member has fetched it, committed or not. Looked at are the partitions of the topics
        that the members subscribe to; without members, those with a committed offset. Where
        nothing is committed, the records before the first Fetch of the member do not count. Nor do
        records of transactions that were aborted or are open. Raises TimeoutError with what was
        left; KafkaError(INVALID_GROUP_ID).
        """
        _check_group_id(group_id)

        def look(nodes: Sequence[WatchedNode]) -> dict[TopicPartition, int] | None:
            group = find_group(nodes, group_id)
            if group is None or not (offsets := _offsets_read(group, fetched=fetched)):
                return None
            if unread := _unread(group, offsets):
                for topic, index in unread:  # replicas may get records that nobody can read yet
                    if (partition := group.led(topic, index)) is not None:
                        partition.watch(nodes[0].fetching)
                return None
            return {place: offset for place, offset in offsets.items() if offset is not None}

        def describe(nodes: Sequence[WatchedNode]) -> str:
            group = find_group(nodes, group_id)
            if group is None:
                return _no_group(nodes)
            return _left_sentence(group, _offsets_read(group, fetched=fetched), fetched=fetched)

        goal = _Goal(f"group {group_id!r} has read everything", look, describe)
        return await self._until(goal, timeout_s, group_id)

    async def for_consumer(
        self,
        topic: str,
        *,
        partitions: Iterable[int] | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_S,
    ) -> dict[TopicPartition, int]:
        """Wait until somebody reads each of these partitions (None: all of the topic).

        For consumers without a group, which assign partitions to themselves; members of groups
        count too. `client_id`: only consumers of this `client.id`. Return (topic, partition) →
        offset that is fetched next. A connection counts until it is closed. Raises TimeoutError
        with who reads what.
        """
        indexes = None if partitions is None else sorted(partitions)

        def look(nodes: Sequence[WatchedNode]) -> dict[TopicPartition, int] | None:
            readers = _readers(nodes, topic, indexes)
            offsets = {
                place: max(chosen, key=lambda each: each.at_ns).offset
                for place, of_place in readers.items()
                if (
                    chosen := [
                        at for client, at in of_place if client_id in (None, client.client_id)
                    ]
                )
            }
            return offsets if offsets and len(offsets) == len(readers) else None

        def describe(nodes: Sequence[WatchedNode]) -> str:
            return _readers_sentence(_readers(nodes, topic, indexes))

        subject = "a consumer" if client_id is None else f"a consumer {client_id!r}"
        which = (
            f"topic {topic!r}"
            if indexes is None
            else _joined(f"{topic}-{index}" for index in indexes)
        )
        return await self._until(_Goal(f"{subject} reads {which}", look, describe), timeout_s)

    async def _until(self, goal: _Goal[T], timeout_s: float, group_id: str | None = None) -> T:
        """Return what `goal.look` returns, once it is not None. Raises TimeoutError."""
        event = asyncio.Event()
        watched = {node.fetching for node in self._nodes()}
        for fetching in watched:
            fetching.watch(event)
        try:
            for _ in range(_SOCKET_TURNS):
                await asyncio.sleep(0)
            async with asyncio.timeout(timeout_s):
                while True:
                    event.clear()
                    nodes = self._nodes()
                    if group_id is not None:
                        _follow_journals(nodes, group_id)
                    result = goal.look(nodes)
                    if result is not None:
                        return result
                    await event.wait()
        except TimeoutError:
            nodes = self._nodes()
            state = goal.describe(nodes) if nodes else "no broker runs"
            raise TimeoutError(f"waited {timeout_s:g} s until {goal.sentence}: {state}") from None
        finally:
            for fetching in watched:
                fetching.unwatch(event)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")


def _follow_journals(nodes: Sequence[WatchedNode], group_id: str) -> None:
    """Have the partition that keeps the group wake the waits with each record: a commit within a
    transaction takes effect with a marker, which no request brings.
    """
    for node in nodes:
        if OFFSETS_TOPIC in node.app.cluster.image.topics:
            index = node.app.services.groups.journal.partition_of(group_id)
            partition = node.app.partitions.replica(OFFSETS_TOPIC, index)
            if partition is not None:
                if partition.waiters is None:
                    partition.waiters = {}
                partition.waiters[node.fetching] = None


# Groups.


def _is_ready(group: GroupLook, members: int | None) -> bool:
    if group.state != STABLE or members not in (None, len(group.shares)):
        return False
    if not all(share.is_synced for share in group.shares):
        return False
    if group.subscribed is not None and (not group.partitions() or group.unassigned()):
        return False
    return all(
        group.places_of(share, topic, index)
        for share in group.shares
        for topic, index in share.member.partitions
    )


def _offsets_read(group: GroupLook, *, fetched: bool) -> dict[TopicPartition, int | None]:
    """Return (topic, partition) → offset that the group has read to, None: nothing is known."""
    if fetched:
        return {place: group.fetched_to(*place) for place in group.partitions()}
    return {
        place: group.committed.get(place, group.start_of(*place)) for place in group.partitions()
    }


def _unread(group: GroupLook, offsets: Mapping[TopicPartition, int | None]) -> list[TopicPartition]:
    """Return the partitions with records that the group has not read, also with those that not all
    replicas in sync have: a new leader learns only then how far readers may read.
    """
    return [
        (topic, index)
        for (topic, index), offset in offsets.items()
        if (partition := group.led(topic, index)) is None
        or partition.high_watermark < partition.log_end_offset
        or has_records(partition, 0 if offset is None else offset)
    ]


def _left_sentence(
    group: GroupLook, offsets: Mapping[TopicPartition, int | None], *, fetched: bool
) -> str:
    verb = "fetched" if fetched else "committed"
    parts = []
    for topic, index in _unread(group, offsets):
        partition, offset = group.led(topic, index), offsets[topic, index]
        done = f"nothing is {verb}" if offset is None else f"{verb} up to {offset}"
        if partition is None:
            parts.append(f"{topic}-{index} has no leader")
        else:
            end, visible = partition.log_end_offset, partition.high_watermark
            hint = f" (readers see {visible}: replicas in sync lack the rest)"
            parts.append(f"{topic}-{index} ends at {end}{hint * (visible < end)}, {done}")
    return f"{_joined(parts) or 'it reads no partition'}; {_state_of(group)}"


def _no_group(nodes: Sequence[WatchedNode]) -> str:
    states = [f"{name!r} ({state})" for name, state in sorted(group_states(nodes).items())]
    return "there is no such group" + (f"; there are {_joined(states)}" if states else "")


def _state_of(group: GroupLook) -> str:
    """Return a sentence about a group: state, members, positions."""
    parts = [f"it is {group.state} with {count_of(len(group.shares), 'member')}"]
    parts += [_member_sentence(group, share) for share in group.shares[:LISTED_MAX]]
    if len(group.shares) > LISTED_MAX:
        parts.append(f"{len(group.shares) - LISTED_MAX} more members")
    if group.shares and (unassigned := group.unassigned()):
        parts.append(f"no member has {_joined(f'{topic}-{index}' for topic, index in unassigned)}")
    if missing := group.missing_topics():
        parts.append(f"there is no topic {_joined(missing)}")
    return "; ".join(parts)


def _member_sentence(group: GroupLook, share: Share) -> str:
    name = share.member.instance_id or share.member.member_id
    subject = f"{name} (client {share.client.client_id!r} at {share.client.host})"
    if not share.is_synced:
        return f"{subject} has not asked for its partitions yet"
    if not share.member.partitions:
        return f"{subject} has no partition"
    positions = [
        _position_sentence(group, share, topic, index) for topic, index in share.member.partitions
    ]
    return f"{subject} has {_joined(positions)}"


def _position_sentence(group: GroupLook, share: Share, topic: str, index: int) -> str:
    places = group.places_of(share, topic, index)
    if places:
        return f"{topic}-{index} at {min(place.offset for place in places)}"
    rivals = group.rivals(share, topic, index)
    if rivals:
        others = count_of(rivals, "member")
        return (
            f"{topic}-{index}, which {others} of other groups with this client.id and address"
            " also read: not every one has fetched it"
        )
    return f"{topic}-{index}, not fetched yet"


# Consumers without a group.


def _readers(
    nodes: Sequence[WatchedNode], topic: str, partitions: list[int] | None
) -> dict[TopicPartition, list[tuple[ClientName, ReadPlace]]]:
    """Return (topic, partition) → who reads it, and where; empty without the topic."""
    image = next((node.app.cluster.image.topics.get(topic) for node in nodes), None)
    if image is None:
        return {}
    indexes = range(len(image.partitions)) if partitions is None else partitions
    return {(topic, index): nodes[0].fetching.readers((image.topic_id, index)) for index in indexes}


def _readers_sentence(
    readers: Mapping[TopicPartition, Sequence[tuple[ClientName, ReadPlace]]],
) -> str:
    sentences = []
    for (topic, index), of_place in readers.items():
        names = sorted({f"{client.client_id!r} at {client.host}" for client, _ in of_place})
        sentences.append(f"{topic}-{index} is read by {_joined(names) or 'nobody'}")
    return _joined(sentences) or "there is no such topic"


# Words.


def _joined(items: Iterable[str]) -> str:
    """Return the first items, and how many more there are."""
    texts = list(items)
    more = len(texts) - LISTED_MAX
    return ", ".join(texts[:LISTED_MAX]) + (f" and {more} more" if more > 0 else "")
