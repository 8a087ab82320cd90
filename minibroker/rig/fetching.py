"""`Fetching`: the facts that a broker sees of its readers, for the waits of a test (`waits`).

    Fetch          ─► the places from which a connection reads, in each partition
    SyncGroup, ConsumerGroupHeartbeat ─► when a member got its share
    Heartbeat, and these two          ─► the connection of a member, which may close

A Fetch names no group and no member, and most clients send it on another connection than JoinGroup.
So a place is known by the client's id and its address. When a member of such a client gets a share
or leaves, a connection that fetched before may be one that stops: it counts again with its next
Fetch. `FaultInterceptor` reports the requests of a
broker under test; other brokers have no such object.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.handlers.common.group_members import client_host
from minibroker.broker.handlers.reads.fetch_pass import follower_of
from minibroker.broker.partitions.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from minibroker.broker.partitions.partition import LOG_END
from minibroker.broker.server.answers import Answer
from minibroker.broker.server.handling import read_call
from minibroker.kafka.protocol.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.server.answers import AnyAnswer, WaitingRequest
    from minibroker.broker.server.call import Call
    from minibroker.kafka.protocol.messages.fetch import FetchRequest

    TopicAndIndex = tuple[bytes, int]
    """Topic id and partition."""
    GroupAndMember = tuple[str, str]

SHARES_MAX: Final = 10_000
"""Most members whose shares are remembered; of older ones nothing is known."""
MEMBERS_MAX: Final = 1_000
"""Most members of one connection that are known; further ones never count as gone."""
STARTS_MAX: Final = 1_000
"""Most beginnings of reading that are remembered of one place."""
_FIRST_VERSION_WITH_SESSIONS: Final = 7
_FIRST_VERSION_WITH_IDS: Final = 13
_MEMBER_APIS: Final = (SYNC_GROUP, HEARTBEAT, CONSUMER_GROUP_HEARTBEAT)


class ClientName(NamedTuple):
    """The name by which a reader and a member are known to be the same client."""

    client_id: str
    host: str
    """The client's address as groups have it: `/127.0.0.1`."""


class ReadPlace:
    """The place where one connection reads in one partition."""

    __slots__ = ("at_ns", "earlier_ns", "offset", "starts")

    def __init__(self) -> None:
        self.offset = -1
        """Offset of the last Fetch: the client has all records before it."""
        self.earlier_ns = 0
        """When the Fetch before it came."""
        self.at_ns = 0
        """When that came, on the clock of `perf_counter_ns`."""
        self.starts: list[tuple[int, int]] = []
        """(ns, offset) of the first Fetch after each share that somebody got, oldest first."""

    def note(self, now_ns: int, offset: int, share_ns: int) -> None:
        """Note a Fetch. `share_ns`: when somebody last got a share."""
        if not self.starts or self.starts[-1][0] < share_ns:
            self.starts.append((now_ns, offset))
            del self.starts[:-STARTS_MAX]
        self.earlier_ns, self.at_ns, self.offset = self.at_ns, now_ns, offset

    def start_after(self, share_ns: int) -> int:
        """Return the offset of the first Fetch after a moment; the place was fetched since."""
        return next(offset for at_ns, offset in self.starts if at_ns > share_ns)


class FetchingConnection:
    """The partitions that one connection fetches."""

    __slots__ = ("_change_ns", "client", "fetched_ns", "in_session", "places", "unproven")

    def __init__(self, client: ClientName) -> None:
        self.client = client
        self.places: dict[TopicAndIndex, ReadPlace] = {}
        self.in_session: set[TopicAndIndex] = set()
        """Partitions of its fetch session: each Fetch reads them, though it does not name them."""
        self.unproven: set[TopicAndIndex] = set()
        """Those of them that were not fetched twice since a member last changed."""
        self.fetched_ns = 0
        """When the last Fetch came."""
        self._change_ns = 0
        """The change of a member that `unproven` is about."""

    def renew(self, keys: Set[TopicAndIndex], now_ns: int, share_ns: int, change_ns: int) -> None:
        """Note a Fetch for the partitions of the session that it does not name: the first two
        behind a change of a member. Nothing depends on further ones.
        """
        if self._change_ns < change_ns:
            self._change_ns = change_ns
            self.unproven = set(self.in_session)
        for key in list(self.unproven):
            place = self.places[key]
            if key not in keys:
                place.note(now_ns, place.offset, share_ns)
            if place.earlier_ns > change_ns:
                self.unproven.discard(key)

    def begin_session(self) -> None:
        """Note that an earlier fetch session, if there was one, has ended."""
        self.in_session.clear()
        self.unproven.clear()

    def join_session(self, key: TopicAndIndex) -> None:
        """Note that each Fetch reads a partition from now on."""
        self.in_session.add(key)
        self.unproven.add(key)

    def forget(self, key: TopicAndIndex) -> None:
        """Note that a partition is read no more, or that its Fetch was refused."""
        self.places.pop(key, None)
        self.in_session.discard(key)
        self.unproven.discard(key)


class Fetching:
    """The readers of one broker, or of a cluster. Belongs to the loop; a `Waiter` of partitions."""

    def __init__(self) -> None:
        self._connections: dict[RequestContext, FetchingConnection] = {}
        """Open connections that fetched."""
        self._synced: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        """(group, member) of the classic protocol → generation and ns of its last SyncGroup."""
        self._shares: OrderedDict[str, dict[TopicAndIndex, int]] = OrderedDict()
        """Member id of the consumer protocol → partition → ns of the answer that gave it."""
        self._members: dict[RequestContext, tuple[ClientName, set[GroupAndMember]]] = {}
        """Open connection → its client, and the members that sent their heartbeats on it."""
        self._closed_members: OrderedDict[GroupAndMember, None] = OrderedDict()
        """Members whose connection was closed since their last heartbeat."""
        self._moved: OrderedDict[str, None] = OrderedDict()
        """Member ids that got more than one share."""
        self._share_ns = 0
        """When somebody last got a share, or asked for it."""
        self._change_ns = 0
        """When a member last got a share or left."""
        self._changed: OrderedDict[ClientName, int] = OrderedDict()
        """Client → when a member of it last got a share or left."""
        self._waiting: set[asyncio.Event] = set()

    # Who waits.

    def watch(self, event: asyncio.Event) -> None:
        """Set this event with every change that a wait may be for, until `unwatch`."""
        self._waiting.add(event)

    def unwatch(self, event: asyncio.Event) -> None:
        """Set it no more."""
        self._waiting.discard(event)

    def on_progress(self) -> None:
        """Wake those who wait; also a partition calls it that has more to read."""
        for event in self._waiting:
            event.set()

    complete = on_progress

    # Requests.

    def note(self, call: Call, outcome: AnyAnswer | WaitingRequest) -> None:
        """Note a request that was handled, answered or not."""
        api_key = call.handler.api_key
        if api_key == FETCH:
            self._note_fetch(call, outcome)
        elif api_key in _MEMBER_APIS:
            self._note_member(call)
        elif api_key == LEAVE_GROUP:
            self._note_change(_client_of(call))

    def _note_member(self, call: Call) -> None:
        """Note a request that keeps a member in its group, or has it leave."""
        request, client = read_call(call), _client_of(call)
        member = (request.group_id, request.member_id)
        self._closed_members.pop(member, None)
        _, members = self._members.setdefault(call.context, (client, set()))
        if len(members) < MEMBERS_MAX:
            members.add(member)
        if call.handler.api_key == SYNC_GROUP:
            self._share_ns = call.started_ns
            if member in self._synced:
                self._note_moved(request.member_id)
            self._synced[member] = (request.generation_id, call.started_ns)
            self._synced.move_to_end(member)
            _shorten(self._synced)
            self._note_change(client)
        elif call.handler.api_key == CONSUMER_GROUP_HEARTBEAT and request.member_epoch < 0:
            self._note_change(client)

    def _note_moved(self, member_id: str) -> None:
        self._moved[member_id] = None
        _shorten(self._moved)

    def _note_change(self, client: ClientName) -> None:
        """Note that a member of a client got a share or left."""
        self._changed[client] = self._change_ns = perf_counter_ns()
        self._changed.move_to_end(client)
        _shorten(self._changed)

    def note_answer(self, call: Call, answer: AnyAnswer | None) -> None:
        """Note an answer as the client gets it."""
        api_key = call.handler.api_key
        if api_key == FETCH:
            return  # its request woke those who wait
        if api_key == CONSUMER_GROUP_HEARTBEAT and isinstance(answer, Answer):
            response: Any = answer.response
            if response.assignment is not None and response.member_id:
                self._note_given(response)
                self._note_change(_client_of(call))
        self.on_progress()

    def _note_given(self, response: Any) -> None:
        now_ns = self._share_ns = perf_counter_ns()
        if response.member_id in self._shares:
            self._note_moved(response.member_id)
        old_shares = self._shares.get(response.member_id, {})
        self._shares[response.member_id] = {
            (topic.topic_id, index): old_shares.get((topic.topic_id, index), now_ns)
            for topic in response.assignment.topic_partitions
            for index in topic.partitions
        }
        self._shares.move_to_end(response.member_id)
        _shorten(self._shares)

    def _note_fetch(self, call: Call, outcome: AnyAnswer | WaitingRequest) -> None:
        request: FetchRequest = read_call(call)
        if follower_of(request) is not None:
            return
        connection = self._connections.get(call.context)
        client = _client_of(call)
        if connection is None or connection.client != client:
            connection = self._connections[call.context] = FetchingConnection(client)
        has_session = call.version >= _FIRST_VERSION_WITH_SESSIONS
        is_whole = not has_session or request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        if is_whole:
            connection.begin_session()
        self._note_places(call, request, connection)
        if has_session:
            for topic in request.forgotten_topics_data:
                topic_id = _id_of(call, topic)
                for index in topic.partitions:
                    connection.forget((topic_id, index))
        for key in _refused(call, outcome):
            connection.forget(key)
        connection.fetched_ns = call.started_ns
        self.on_progress()

    def _note_places(
        self, call: Call, request: FetchRequest, connection: FetchingConnection
    ) -> None:
        """Note the places that a Fetch names, and those of its session."""
        uses_session = call.version >= _FIRST_VERSION_WITH_SESSIONS and (
            request.session_epoch != FINAL_EPOCH
        )
        keys: set[TopicAndIndex] = set()
        for topic in request.topics:
            topic_id = _id_of(call, topic)
            for part in topic.partitions:
                key = (topic_id, part.partition)
                if not _is_in_log(call, topic_id, part.partition, part.fetch_offset):
                    connection.forget(key)
                    continue
                keys.add(key)
                place = connection.places.setdefault(key, ReadPlace())
                place.note(call.started_ns, part.fetch_offset, self._share_ns)
                if uses_session:
                    connection.join_session(key)
        connection.renew(keys, call.started_ns, self._share_ns, self._change_ns)

    def note_closed(self, context: RequestContext) -> None:
        """Forget the places of a connection that is closed; its members are gone."""
        client, members = self._members.pop(context, (None, ()))
        for member in members:
            self._closed_members[member] = None
            _shorten(self._closed_members)
        if client is not None:
            self._note_change(client)
        if self._connections.pop(context, None) is not None or members:
            self.on_progress()

    # Questions.

    def synced_ns(self, group_id: str, member_id: str, generation_id: int) -> int:
        """Return when a member of the classic protocol asked for its share of a generation; 0: that
        was at another broker, or before the start of this one.
        """
        generation, at_ns = self._synced.get((group_id, member_id), (-1, 0))
        return at_ns if generation == generation_id else 0

    def given_ns(self, member_id: str, key: TopicAndIndex) -> int | None:
        """Return when a member of the consumer protocol was given a partition; None: not yet. 0:
        by another broker, or before the start of this one.
        """
        shares = self._shares.get(member_id)
        return 0 if shares is None else shares.get(key)

    def is_gone(self, group_id: str, member_id: str) -> bool:
        """Return whether the connection of a member is closed, and no heartbeat came since: the
        group keeps it until its session ends.
        """
        return (group_id, member_id) in self._closed_members

    def has_moved(self, member_id: str) -> bool:
        """Return whether a member got a share before its present one."""
        return member_id in self._moved

    def places(
        self, client: ClientName, key: TopicAndIndex, since_ns: int, *, is_twice: bool
    ) -> list[ReadPlace]:
        """Return where the connections of a client read a partition, as far as they fetched it
        after a moment, and after the last change of the client's members. `is_twice`: as far as
        they fetched it two times.
        """
        since_ns = max(since_ns, self._changed.get(client, 0))
        return [
            place
            for connection in self._connections.values()
            if connection.client == client
            and (place := connection.places.get(key)) is not None
            and (place.earlier_ns if is_twice else place.at_ns) > since_ns
        ]

    def count_connections(self, client: ClientName) -> int:
        """Return how many connections of a client fetched something after the last change of its
        members.
        """
        since_ns = self._changed.get(client, 0)
        return sum(
            connection.client == client and connection.fetched_ns > since_ns
            for connection in self._connections.values()
        )

    def readers(self, key: TopicAndIndex) -> list[tuple[ClientName, ReadPlace]]:
        """Return who reads a partition, and where."""
        return [
            (connection.client, place)
            for connection in self._connections.values()
            if (place := connection.places.get(key)) is not None
        ]


def _client_of(call: Call) -> ClientName:
    return ClientName(call.client_id or "", client_host(call.context))


def _id_of(call: Call, topic: Any) -> bytes:
    """Return the id of a topic of a Fetch; an unknown name has none (empty)."""
    if call.version >= _FIRST_VERSION_WITH_IDS:
        topic_id: bytes = topic.topic_id
        return topic_id
    image = call.context.services.cluster.image.topics.get(topic.topic)
    return image.topic_id if image is not None else b""


def _is_in_log(call: Call, topic_id: bytes, index: int, offset: int) -> bool:
    """Return whether a partition is here and has this offset, or ends there."""
    services = call.context.services
    topic = services.cluster.image.topic_by_id.get(topic_id)
    partition = services.partitions.replica(topic.name, index) if topic is not None else None
    if partition is None or not partition.has_log:
        return False
    return partition.log_start_offset <= offset <= partition.end_offset_for(LOG_END)


def _refused(call: Call, outcome: AnyAnswer | WaitingRequest) -> Iterable[TopicAndIndex]:
    """Yield the partitions that an answer has an error for."""
    if isinstance(outcome, Answer):
        for topic in outcome.response.responses:
            for partition in topic.partitions:
                if partition.error_code:
                    yield _id_of(call, topic), partition.partition_index


def _shorten(remembered: OrderedDict[Any, Any]) -> None:
    while len(remembered) > SHARES_MAX:
        remembered.popitem(last=False)
