"""Incremental fetch sessions (KIP-227): what a consumer fetches is remembered between requests.

`handlers/fetch` asks for a `FetchContext` per request; the context says which partitions to read
and which of the results to send. Sessions live in one bounded cache.

| request (session id, epoch) | context                                                            |
|-----------------------------|--------------------------------------------------------------------|
| any, epoch -1               | sessionless; a session of that id ends                             |
| any, epoch 0                | full; a session of that id ends, a new one begins if there is room |
| id, epoch as expected       | incremental                                                        |
| id unknown / other epoch    | error FETCH_SESSION_ID_NOT_FOUND / INVALID_FETCH_SESSION_EPOCH     |

A session looks only at partitions that have news: those that a request names, those whose last
answer was not all that there was (records, an error, a limit), and those that changed since. Of the
rest a read would give what the client was told: such a partition watches its `Partition` and is
looked at again when that tells of anything. A follower outside of the ISR is always looked at, so
that it joins; of one that watches, each request says that it has everything.

Source: KIP-227, KIP-516; Kafka's FetchSession and FetchManager, which read every partition.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

from minibroker.broker.slices import run_in_slices
from minibroker.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from minibroker.broker.partitions.partition import Partition, Waiter
    from minibroker.clock import Clock
    from minibroker.kafka.protocol.messages.fetch import PartitionData

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
CONSUMER: Final = -1
"""In the place of the id of a broker that follows."""
EPOCH_MAX: Final = 2**31 - 1
EVICTION_MS: Final = 120_000
"""A session may give way when it was silent this long, or when it is this old and smaller."""

PartitionKey = tuple[str | bytes, int]
"""Topic name (Fetch ≤ 12) or sixteen bytes of topic id (13+), and partition index."""

FetchResult: TypeAlias = "tuple[PartitionKey, FetchPartition, PartitionData]"
"""The result of a read of one partition, which is its part of the answer."""


def next_epoch(epoch: int) -> int:
    """1, 2, …, 2³¹-1, 1 …: an epoch of 0 would start a new session."""
    return 1 if epoch >= EPOCH_MAX else epoch + 1


class FetchPartition:
    """One partition of a fetch: what is asked, and what the client was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_start_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "read_to_end_of",
        "session",
        "topic",
        "topic_id",
        "turn",
        "watched",
    )

    def __init__(
        self,
        *,
        topic: str | None,
        topic_id: bytes,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        follower_start_offset: int = -1,
    ) -> None:
        """`follower_start_offset`: where the log of a follower begins, -1 for a consumer."""
        self.topic = topic
        """None while the topic id is unknown here."""
        self.topic_id = topic_id
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.follower_start_offset = follower_start_offset
        self.high_watermark = -1
        self.log_start_offset = -1
        self.read_to_end_of: Partition | None = None
        """The partition, if the last read had nothing left to read in it."""
        self.session: FetchSession | None = None
        self.turn = 0
        """Partitions of a session are read in the order of their turns."""
        self.watched: Partition | None = None
        """Tells of changes, while nothing is new."""

    @property
    def key(self) -> PartitionKey:
        """Return the key of a session for it."""
        session = self.session
        by_id = session is not None and session.uses_topic_ids
        return (self.topic_id if by_id else self.topic or "", self.index)

    def on_progress(self) -> None:
        """Have the session and its waiting fetches look at this partition again (`Waiter`)."""
        for waiter in self._note_news():
            waiter.on_progress()

    def complete(self) -> None:
        """Have the session look at this partition again, and wait no longer (`Waiter`)."""
        for waiter in self._note_news():
            waiter.complete()

    def _note_news(self) -> list[Waiter]:
        session = self.session
        assert session is not None  # only a session's partitions watch
        self.unwatch()
        session.news[self.key] = self
        return list(session.waiters)

    def unwatch(self) -> None:
        """Stop to watch; a follower was at the end of the partition until its last request."""
        partition, self.watched = self.watched, None
        if partition is None:
            return
        partition.unwatch(self)
        session = self.session
        if session is not None and session.follower_id >= 0 and partition.replicas is not None:
            partition.replicas.was_at_end(session.follower_id, session.last_used_ms)

    def update(self, request_part: FetchPartition) -> None:
        """Take over what a later request asks for the same partition."""
        self.fetch_offset = request_part.fetch_offset
        self.max_bytes = request_part.max_bytes
        self.current_leader_epoch = request_part.current_leader_epoch
        self.last_fetched_epoch = request_part.last_fetched_epoch
        self.follower_start_offset = request_part.follower_start_offset

    def remember(self, data: PartitionData) -> bool:
        """Note what the client is told; True when it has to be told (something changed)."""
        changed = (
            bool(data.records)
            or data.diverging_epoch is not None
            or data.preferred_read_replica >= 0
        )
        if self.high_watermark != data.high_watermark:
            changed = True
            self.high_watermark = data.high_watermark
        if self.log_start_offset != data.log_start_offset:
            changed = True
            self.log_start_offset = data.log_start_offset
        if data.error_code:
            # So that the partition is sent again when the error is gone.
            self.high_watermark = -1
            changed = True
        return changed


class FetchSession:
    """The partitions that one consumer fetches, in the order of their turns."""

    __slots__ = (
        "_next_turn",
        "acl_changes",
        "created_ms",
        "epoch",
        "follower_id",
        "id",
        "isolation_level",
        "last_used_ms",
        "news",
        "partitions",
        "uses_topic_ids",
        "waiters",
    )

    def __init__(
        self,
        session_id: int,
        partitions: Mapping[PartitionKey, FetchPartition],
        now_ms: int,
        *,
        uses_topic_ids: bool,
        isolation_level: int,
        follower_id: int = CONSUMER,
    ) -> None:
        self.id = session_id
        """Constant, as are `uses_topic_ids`, `created_ms` and `follower_id`."""
        self.follower_id = follower_id
        """The broker that follows, or CONSUMER."""
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms
        self.isolation_level = isolation_level
        """Isolation level of the last request; another level reads to another end."""
        self.acl_changes = 0
        """Changes of ACLs before the last request; each may forbid a partition or allow it."""
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[PartitionKey, FetchPartition] = {}
        self.news: dict[PartitionKey, FetchPartition] = {}
        """Partitions to look at; the others watch."""
        self.waiters: dict[Waiter, None] = {}
        """Fetches of this session that wait, told of partitions that have news again."""
        self._next_turn = 0
        for key, partition in partitions.items():
            self._add(key, partition)

    def _add(self, key: PartitionKey, partition: FetchPartition) -> None:
        partition.session = self
        self.partitions[key] = self.news[key] = partition
        self.move_to_end(partition)

    def ask(self, key: PartitionKey, request_part: FetchPartition) -> None:
        """Take in a partition that a request names."""
        place = self.partitions.get(key)
        if place is None:
            self._add(key, request_part)
            return
        place.update(request_part)
        place.unwatch()
        if self.follower_id != CONSUMER:
            # It may have dropped the last answer, because its role or its log changed meanwhile.
            # Where no record comes any more, nothing else would tell it the high watermark.
            place.high_watermark = -1
        self.news[key] = place

    def forget(self, key: PartitionKey) -> None:
        """Let go of a partition, if there is one of this key."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.news.pop(key, None)
            partition.unwatch()

    def move_to_end(self, partition: FetchPartition) -> None:
        """Give a partition its turn behind all others."""
        partition.turn = self._next_turn
        self._next_turn += 1

    def settle(self, key: PartitionKey, partition: FetchPartition) -> None:
        """Look at a partition no more until it changes, if all of it was read and told."""
        replica = partition.read_to_end_of
        if replica is not None:
            self.news.pop(key, None)
            partition.watched = replica
            replica.watch(partition)

    def look_at_everything(self) -> None:
        """Read all partitions with the next request."""
        for key, partition in self.partitions.items():
            partition.unwatch()
            self.news[key] = partition

    def closing(self) -> Iterator[None]:
        """End the session in steps: afterwards nothing is watched any more."""
        for partition in self.partitions.values():
            partition.unwatch()
            yield


class FetchContext:
    """Sessionless and full fetches: all of the request's partitions, all of the results."""

    __slots__ = ("_begin_session", "partitions")

    def __init__(
        self,
        partitions: OrderedDict[PartitionKey, FetchPartition],
        begin_session: Callable[[], int] | None,
    ) -> None:
        self.partitions = partitions
        self._begin_session = begin_session

    error_code: int = 0
    is_incremental = False

    def __iter__(self) -> Iterator[tuple[PartitionKey, FetchPartition]]:
        return iter(list(self.partitions.items()))

    def select(self, results: Sequence[FetchResult]) -> list[bool]:
        """Return whether each result (in order) belongs into the answer; remember the sent ones for
        the session that begins.
        """
        if self._begin_session is not None:
            for key, _, data in results:
                self.partitions[key].remember(data)
        return [True] * len(results)

    def refusal(self) -> int:
        """Return an error that came up while this fetch waited; 0: none."""
        return 0

    @property
    def has_settled(self) -> bool:
        """Return whether there are partitions that need no reading, because nothing is new."""
        return False

    def session_id(self) -> int:
        """Return the id for the answer; this begins the session of a full fetch."""
        return self._begin_session() if self._begin_session is not None else NO_SESSION


class IncrementalFetchContext(FetchContext):
    """A fetch of a session: its partitions that have news, and only the results that changed."""

    __slots__ = ("_epoch", "_looked", "_session")

    is_incremental = True

    def __init__(self, session: FetchSession) -> None:
        super().__init__(OrderedDict(), None)
        self._session = session
        self._epoch = session.epoch
        self._looked: set[PartitionKey] = set()
        """The offset that was read to, or is waited for."""

    def __iter__(self) -> Iterator[tuple[PartitionKey, FetchPartition]]:
        news = sorted(self._session.news.items(), key=lambda item: item[1].turn)
        self._looked = {key for key, _ in news}
        return iter(news)

    def refusal(self) -> int:
        """Return an error if the client went on without this fetch (on another connection): nobody
        reads its answer.
        """
        if self._session.epoch != self._epoch:
            return int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        return 0

    @property
    def has_settled(self) -> bool:
        session = self._session
        return len(session.news) < len(session.partitions)

    def more(self) -> list[FetchPartition]:
        """Return the partitions that have news since this fetch looked."""
        places = [
            (key, partition)
            for key, partition in self._session.news.items()
            if key not in self._looked
        ]
        self._looked.update(key for key, _ in places)
        return [partition for _, partition in places]

    def hang(self, waiter: Waiter) -> None:
        """Tell `waiter` when there is `more`."""
        self._session.waiters[waiter] = None

    def leave(self, waiter: Waiter) -> None:
        """Tell it no more."""
        self._session.waiters.pop(waiter, None)

    def select(self, results: Sequence[FetchResult]) -> list[bool]:
        """Return whether each result belongs into the answer: only what changed does. A partition
        that gave records goes to the end of the queue.
        """
        session = self._session
        selected = []
        for key, _, data in results:
            partition = session.partitions.get(key)
            if partition is None:  # forgotten while this fetch waited
                selected.append(False)
                continue
            selected.append(partition.remember(data))
            if data.records:
                session.move_to_end(partition)
            elif not data.error_code and data.diverging_epoch is None:
                session.settle(key, partition)
        return selected

    def session_id(self) -> int:
        return self._session.id


class ErrorFetchContext(FetchContext):
    """A fetch whose session cannot be used: the answer is an error and nothing else."""

    __slots__ = ("error_code",)

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(OrderedDict(), None)
        self.error_code = int(error_code)


def _random_id() -> int:
    """Return a number from 1 to EPOCH_MAX. The module `random` is slow to import."""
    return 1 + int.from_bytes(os.urandom(8), "big") % EPOCH_MAX


class FetchSessionCache:
    """All sessions, at most `slots_max` (`max.incremental.fetch.session.cache.slots`).

    Owned by the loop, as are its sessions and their partitions.
    """

    __slots__ = ("_clock", "_sessions", "slots_max")

    def __init__(self, slots_max: int, clock: Clock) -> None:
        self.slots_max = slots_max
        self._clock = clock
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """Least recently used first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def context(
        self,
        session_id: int,
        epoch: int,
        places: OrderedDict[PartitionKey, FetchPartition],
        forgotten: Iterable[PartitionKey],
        *,
        uses_topic_ids: bool,
        isolation_level: int,
        follower_id: int = CONSUMER,
        acl_changes: int = 0,
    ) -> FetchContext:
        """Return the context of one Fetch request (see the table at the top of this module).

        `acl_changes`: the number of changes of ACLs so far. After one a session looks at all.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(session_id)
            if epoch == FINAL_EPOCH:
                return FetchContext(places, None)
            return FetchContext(
                places,
                lambda: self._begin(
                    places,
                    uses_topic_ids=uses_topic_ids,
                    isolation_level=isolation_level,
                    follower_id=follower_id,
                ),
            )
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorFetchContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return ErrorFetchContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorFetchContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        for key, partition in places.items():
            session.ask(key, partition)
        for key in forgotten:
            session.forget(key)
        if not session.partitions:
            self._end(session_id)
            return FetchContext(OrderedDict(), None)
        if (session.isolation_level, session.acl_changes) != (isolation_level, acl_changes):
            session.isolation_level = isolation_level
            session.acl_changes = acl_changes
            session.look_at_everything()
        session.epoch = next_epoch(session.epoch)
        session.last_used_ms = self._clock.now_ms()
        self._sessions.move_to_end(session_id)
        return IncrementalFetchContext(session)

    def _end(self, session_id: int) -> None:
        """End a session, if there is one of this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            run_in_slices(session.closing())

    def _begin(
        self,
        partitions: OrderedDict[PartitionKey, FetchPartition],
        *,
        uses_topic_ids: bool,
        isolation_level: int,
        follower_id: int,
    ) -> int:
        now_ms = self._clock.now_ms()
        if len(self._sessions) >= self.slots_max and not self._evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = _random_id()
        while session_id in self._sessions:
            session_id = _random_id()
        self._sessions[session_id] = FetchSession(
            session_id,
            partitions,
            now_ms,
            uses_topic_ids=uses_topic_ids,
            isolation_level=isolation_level,
            follower_id=follower_id,
        )
        return session_id

    def _evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of `size` partitions: the stale one, or an old smaller one."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            self._end(oldest.id)
            return True
        # Its age counts when it is used, as in Kafka: one that was never used while old stays.
        idle_sessions = [
            session
            for session in self._sessions.values()
            if session.last_used_ms - session.created_ms > EVICTION_MS
        ]
        if not idle_sessions:
            return False
        smallest = min(idle_sessions, key=lambda s: (len(s.partitions), s.id))
        if size <= len(smallest.partitions):
            return False
        self._end(smallest.id)
        return True
