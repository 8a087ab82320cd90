"""Incremental fetch sessions (KIP-227): what a consumer fetches is remembered between requests.

`handlers/fetch` asks for a `FetchContext` per request; the context says which partitions to read
and which of the results to send. Sessions live in one bounded cache.

| request (session id, epoch) | context                                                            |
|-----------------------------|--------------------------------------------------------------------|
| any, epoch -1               | sessionless; a session of that id ends                             |
| any, epoch 0                | full; a session of that id ends, a new one begins if there is room |
| id, epoch as expected       | incremental                                                        |
| id unknown / other epoch    | error FETCH_SESSION_ID_NOT_FOUND / INVALID_FETCH_SESSION_EPOCH     |

Source: KIP-227, KIP-516; Kafka's FetchSession and FetchManager.
"""

from __future__ import annotations

from collections import OrderedDict
from random import randint
from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from minibroker.clock import Clock

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
EVICTION_MS: Final = 120_000
"""A session may give way when it was silent this long, or when it is this old and smaller."""

PartitionKey = tuple[str | bytes, int]
"""Topic name (Fetch ≤ 12) or sixteen bytes of topic id (13+), and partition index."""


def next_epoch(epoch: int) -> int:
    """1, 2, …, 2³¹-1, 1 …: an epoch of 0 would start a new session."""
    return 1 if epoch >= EPOCH_MAX else epoch + 1


class FetchPartition:
    """One partition of a fetch: what is asked, and what the client was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "topic",
        "topic_id",
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
    ) -> None:
        self.topic = topic
        """None while the topic id is unknown here."""
        self.topic_id = topic_id
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.high_watermark = -1
        self.log_start_offset = -1

    def update(self, asked: FetchPartition) -> None:
        """Take over what a later request asks for the same partition."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def remember(self, result: PartitionResult) -> bool:
        """Note what the client is told; True when it has to be told (something changed)."""
        changed = result.size_bytes > 0 or result.has_diverging_epoch
        if self.high_watermark != result.high_watermark:
            changed = True
            self.high_watermark = result.high_watermark
        if self.log_start_offset != result.log_start_offset:
            changed = True
            self.log_start_offset = result.log_start_offset
        if result.error_code:
            # So that the partition is sent again when the error is gone.
            self.high_watermark = -1
            changed = True
        return changed


class PartitionResult:
    """What a read of one partition gave, reduced to what sessions look at."""

    __slots__ = (
        "error_code",
        "has_diverging_epoch",
        "high_watermark",
        "log_start_offset",
        "size_bytes",
    )

    def __init__(
        self,
        error_code: int,
        high_watermark: int,
        log_start_offset: int,
        size_bytes: int,
        *,
        has_diverging_epoch: bool = False,
    ) -> None:
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.size_bytes = size_bytes
        self.has_diverging_epoch = has_diverging_epoch


class FetchSession:
    """What one consumer fetches, in the order in which partitions get their turn."""

    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        partitions: OrderedDict[PartitionKey, FetchPartition],
        now_ms: int,
        *,
        uses_topic_ids: bool,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)


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

    def select(self, results: Iterable[tuple[PartitionKey, PartitionResult]]) -> list[bool]:
        """Whether each result (in order) belongs into the answer; remembers what is sent."""
        for key, result in results:
            self.partitions[key].remember(result)
        return [True] * len(self.partitions)

    def refusal(self) -> int:
        """An error that came up while this fetch waited; 0: none."""
        return 0

    def session_id(self) -> int:
        """The id for the answer; begins the session of a full fetch."""
        return self._begin_session() if self._begin_session is not None else NO_SESSION


class IncrementalFetchContext(FetchContext):
    """A fetch of a session: all its partitions, but only the results that changed."""

    __slots__ = ("_epoch", "_session")

    is_incremental = True

    def __init__(self, session: FetchSession) -> None:
        super().__init__(session.partitions, None)
        self._session = session
        self._epoch = session.epoch

    def refusal(self) -> int:
        """Its client went on without it (on another connection): what this fetch would note as
        told, nobody reads."""
        if self._session.epoch != self._epoch:
            return int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        return 0

    def select(self, results: Iterable[tuple[PartitionKey, PartitionResult]]) -> list[bool]:
        """Only what changed; a partition that gave records goes to the end of the queue."""
        partitions = self._session.partitions
        selected = []
        for key, result in results:
            partition = partitions.get(key)
            if partition is None:  # forgotten while this fetch waited
                selected.append(False)
                continue
            selected.append(partition.remember(result))
            if result.size_bytes > 0:
                partitions.move_to_end(key)
        return selected

    def session_id(self) -> int:
        return self._session.id


class ErrorFetchContext(FetchContext):
    """A fetch whose session cannot be used: the answer is an error and nothing else."""

    __slots__ = ("error_code",)

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(OrderedDict(), None)
        self.error_code = int(error_code)


class FetchSessionCache:
    """All sessions, at most `slots_max` (`max.incremental.fetch.session.cache.slots`)."""

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
        asked: OrderedDict[PartitionKey, FetchPartition],
        forgotten: Iterable[PartitionKey],
        *,
        uses_topic_ids: bool,
    ) -> FetchContext:
        """The context of one Fetch request (see the table at the top of this module)."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            if epoch == FINAL_EPOCH:
                return FetchContext(asked, None)
            return FetchContext(asked, lambda: self._begin(asked, uses_topic_ids=uses_topic_ids))
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorFetchContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return ErrorFetchContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorFetchContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        for key, partition in asked.items():
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = partition
            else:
                known.update(partition)
        for key in forgotten:
            session.partitions.pop(key, None)
        if not session.partitions:
            del self._sessions[session_id]
            return FetchContext(OrderedDict(), None)
        session.epoch = next_epoch(session.epoch)
        session.last_used_ms = self._clock.now_ms()
        self._sessions.move_to_end(session_id)
        return IncrementalFetchContext(session)

    def _begin(
        self, partitions: OrderedDict[PartitionKey, FetchPartition], *, uses_topic_ids: bool
    ) -> int:
        now_ms = self._clock.now_ms()
        if len(self._sessions) >= self.slots_max and not self._evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = randint(1, EPOCH_MAX)
        while session_id in self._sessions:
            session_id = randint(1, EPOCH_MAX)
        session = FetchSession(session_id, partitions, now_ms, uses_topic_ids=uses_topic_ids)
        self._sessions[session_id] = session
        return session_id

    def _evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of `size` partitions: the stale one, or an old smaller one."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            del self._sessions[oldest.id]
            return True
        # Its age counts when it is used, as in Kafka: one that was never used while old stays.
        settled = [
            session
            for session in self._sessions.values()
            if session.last_used_ms - session.created_ms > EVICTION_MS
        ]
        if not settled:
            return False
        smallest = min(settled, key=lambda s: (len(s.partitions), s.id))
        if size <= len(smallest.partitions):
            return False
        del self._sessions[smallest.id]
        return True
