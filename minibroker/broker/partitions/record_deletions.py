"""The DeleteRecords requests that wait until all live replicas of a partition have deleted too.

A leader has them beside the acks=all answers (`replicas`). Each follower takes the leader's log
start offset with a Fetch answer, and tells its own with its next Fetch. A partition with one
replica has none of this.

Source: Kafka DelayedDeleteRecords.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from asyncio import TimerHandle

INVALID_LOW_WATERMARK: Final = -1


class DeletionResult(Protocol):
    """The part of an answer for one partition; no error until one is known."""

    error_code: int
    low_watermark: int


class _WaitingDeletion:
    """One partition of a DeleteRecords request."""

    __slots__ = ("future", "offset", "result", "timer")

    def __init__(
        self, offset: int, result: DeletionResult, future: asyncio.Future[None], timer: TimerHandle
    ) -> None:
        self.offset = offset
        self.result = result
        self.future = future
        self.timer = timer


class RecordDeletions:
    """The waiting deletions of one partition. Owned by the loop."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[_WaitingDeletion] = []

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def wait(self, offset: int, result: DeletionResult, timeout_ms: int) -> asyncio.Future[None]:
        """Return what is done when the low watermark has reached `offset`; `result` has it then.

        After `timeout_ms` it is done, too: the error is REQUEST_TIMED_OUT then, and the followers
        delete later.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, self._time_out, future)
        self._waiting.append(_WaitingDeletion(offset, result, future, timer))
        return future

    def complete(self, low_watermark: int) -> None:
        """Answer those whose offset the low watermark has reached."""
        for waiting in [found for found in self._waiting if found.offset <= low_watermark]:
            waiting.result.low_watermark = low_watermark
            self._end(waiting)

    def refuse(self, code: ErrorCode) -> None:
        """Answer all with this error: this broker leads no more, or stops."""
        for waiting in list(self._waiting):
            waiting.result.error_code = int(code)
            waiting.result.low_watermark = INVALID_LOW_WATERMARK
            self._end(waiting)

    def _time_out(self, future: asyncio.Future[None]) -> None:
        waiting = next(waiting for waiting in self._waiting if waiting.future is future)
        waiting.result.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
        self._end(waiting)

    def _end(self, waiting: _WaitingDeletion) -> None:
        self._waiting.remove(waiting)
        waiting.timer.cancel()
        if not waiting.future.done():  # the client may have hung up
            waiting.future.set_result(None)
