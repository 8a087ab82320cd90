"""Fetches that wait for data (long poll), Kafka's DelayedFetch.

A waiting fetch hangs on each of its partitions and on one timer. Progress on a partition makes it
count what could be sent now; it ends when that is enough, when its time is over, when a partition
goes away, or when the broker stops. It holds no data: at the end everything is read again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.partitions.partition import Partition


class Waiter(Protocol):
    """What hangs on a partition and is told of it."""

    def on_progress(self) -> None:
        """More of the partition can be read."""

    def complete(self) -> None:
        """The partition goes away, has a new leader epoch, or the broker stops."""


class FetchPosition:
    """Where in one partition a waiting fetch stands."""

    __slots__ = ("_end_offset", "_size_bytes", "isolation_level", "max_bytes", "partition")

    def __init__(
        self, partition: Partition, offset: int, max_bytes: int, isolation_level: int
    ) -> None:
        self.partition = partition
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        # Where the readable part ended when the wait began: what came since counts.
        self._end_offset = max(offset, partition.end_offset_for(isolation_level))
        self._size_bytes = partition.bytes_appended
        if self._end_offset < partition.log_end_offset:
            # Behind an open transaction, or what is not synced yet, lies more than was counted:
            # its end is enough to look.
            self._size_bytes -= max_bytes

    def bytes_available(self) -> int:
        """How many bytes could be sent now; 0 while the readable end stays where it was."""
        if self.partition.end_offset_for(self.isolation_level) <= self._end_offset:
            return 0
        return min(self.partition.bytes_appended - self._size_bytes, self.max_bytes)


class DelayedFetch:
    """One waiting fetch; `future` gives what `read_again` returned when the wait was over."""

    __slots__ = ("_bytes_wanted", "_positions", "_read_again", "_timer", "future")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        positions: list[FetchPosition],
        bytes_wanted: int,
        wait_ms_max: int,
        read_again: Callable[[], Any],
    ) -> None:
        """Start to wait for `bytes_wanted` more bytes than were readable, `wait_ms_max` at most."""
        self.future: asyncio.Future[Any] = loop.create_future()
        self._read_again = read_again
        self._positions = positions
        self._bytes_wanted = bytes_wanted
        self._timer = loop.call_later(wait_ms_max / 1000, self.complete)
        for position in positions:
            partition = position.partition
            if partition.waiters is None:
                partition.waiters = set()
            partition.waiters.add(self)
        self.future.add_done_callback(self._forget)

    def on_progress(self) -> None:
        """A partition has more to read: end the wait if all together have enough."""
        available = 0
        for position in self._positions:
            available += position.bytes_available()
        if available >= self._bytes_wanted:
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
        for position in self._positions:
            waiters = position.partition.waiters
            if waiters is not None:
                waiters.discard(self)
