"""Fetches that wait for data (long poll), Kafka's DelayedFetch.

A waiting fetch hangs on each of its partitions and on one timer. Progress on a partition makes it
count, in the loop's next turn, what could be sent then: progress comes inside the commit of a
producer, whose answer leaves first. It ends when that is enough, when its time is over, when a
partition goes away or has a new leader epoch, or when the broker stops. It holds no data: at the
end everything is read again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from minibroker.broker.partitions.partition import Partition


class FetchPosition:
    """The position of a waiting fetch in one partition.

    It counts what could be sent: bytes of the files, from the position to the end of reading.
    """

    __slots__ = (
        "_end",
        "_end_offset",
        "_is_held",
        "_start",
        "isolation_level",
        "max_bytes",
        "offset",
        "partition",
    )

    def __init__(
        self,
        partition: Partition,
        offset: int,
        max_bytes: int,
        isolation_level: int,
        *,
        is_held: Callable[[], bool] | None = None,
    ) -> None:
        """`offset` is in the log. `is_held`: whether a throttled follower gets nothing now.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        self._is_held = is_held
        self.partition = partition
        self.offset = offset
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self._start = partition.position_of(offset)
        # An end before the log's stays where it is while a transaction is open: looked up once.
        self._end_offset = offset
        self._end = self._start

    def bytes_available(self) -> int | None:
        """Return how many bytes could be sent now, as Kafka counts them; None: answer at once.

        At once where reading ends in a later segment than the fetch begins (what one segment has
        left is all that an answer can hold), and where it ends before the offset. Raises
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        end_offset = self.partition.end_offset_for(self.isolation_level)
        if end_offset == self.offset:
            return 0
        if end_offset < self.offset:
            return None
        if self._is_held is not None and self._is_held():
            return 0
        if end_offset != self._end_offset:
            self._end = self.partition.position_of(end_offset)
            self._end_offset = end_offset
        base_offset, start = self._start
        end_base_offset, end = self._end
        if base_offset < end_base_offset:
            return None
        return min(end - start, self.max_bytes)


def has_enough(positions: Sequence[FetchPosition], bytes_min: int) -> bool:
    """Return whether a fetch that waits for `bytes_min` bytes in these places has to be answered.

    True also where the disk refuses to tell: reading again says what is wrong. Source: Kafka
    DelayedFetch.tryComplete.
    """
    available = 0
    for position in positions:
        try:
            size = position.bytes_available()
        except KafkaError:
            return True
        if size is None:
            return True
        available += size
    return available >= bytes_min


class DelayedFetch:
    """One waiting fetch; `future` gives what `read_again` returned when the wait was over.

    Owned by the loop.
    """

    __slots__ = (
        "_bytes_min",
        "_find_more",
        "_is_marked",
        "_leave",
        "_loop",
        "_positions",
        "_read_again",
        "_timer",
        "future",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        positions: list[FetchPosition],
        bytes_min: int,
        wait_ms_max: int,
        read_again: Callable[[], Any],
    ) -> None:
        """Start to wait until these places have `bytes_min` bytes, `wait_ms_max` at most."""
        self.future: asyncio.Future[Any] = loop.create_future()
        self._loop = loop
        self._is_marked = False
        """Was there progress that is not looked at?"""
        self._read_again = read_again
        """Constant, as are `_loop`, `_bytes_min` and `_timer`."""
        self._positions = positions
        """Grows by what has news in the session."""
        self._find_more: Callable[[], list[FetchPosition]] | None = None
        """Returns what has news in the session; None: there is no session."""
        self._leave: Callable[[DelayedFetch], None]
        """Set with it; leaves the session."""
        self._bytes_min = bytes_min
        self._timer = loop.call_later(wait_ms_max / 1000, self.complete)
        self._hang_on(positions)
        self.future.add_done_callback(self._forget)

    def follow(
        self,
        find_more: Callable[[], list[FetchPosition]],
        leave: Callable[[DelayedFetch], None],
    ) -> None:
        """Wait for what else has news in a session, too.

        `find_more` returns the places that have come since; it may raise KafkaError. `leave` is
        called when the wait is over.
        """
        self._find_more = find_more
        self._leave = leave

    def _hang_on(self, positions: Iterable[FetchPosition]) -> None:
        for position in positions:
            partition = position.partition
            if partition.waiters is None:
                partition.waiters = {}
            partition.waiters[self] = None

    def on_progress(self) -> None:
        """Look at a partition that has more to read when the loop has its next turn.

        Several partitions of one commit are looked at once, and the answers of this turn leave
        before.
        """
        if not self._is_marked:
            self._is_marked = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """End the wait if all places together have enough."""
        self._is_marked = False
        if self.future.done():
            return
        if self._find_more is not None:
            try:
                more = self._find_more()
            except KafkaError:
                self.complete()  # reading again says what is wrong
                return
            self._hang_on(more)
            self._positions += more
        if has_enough(self._positions, self._bytes_min):
            self.complete()

    def complete(self) -> None:
        """End the wait now."""
        future = self.future
        if future.done():
            return
        try:
            response = self._read_again()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(response)

    def _forget(self, _future: asyncio.Future[Any]) -> None:
        self._timer.cancel()
        if self._find_more is not None:
            self._leave(self)
        for position in self._positions:
            waiters = position.partition.waiters
            if waiters is not None:
                waiters.pop(self, None)
