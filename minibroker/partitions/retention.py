"""When retention looks at the logs: `log.retention.check.interval.ms`, and not for nothing.

A check goes through the logs a few at a time. What it needs of files that nobody has opened yet is
read by the worker (`storage.retention.survey`); the decision and the renames, short and bounded,
are made on the loop, to which the logs belong; bytes are removed by the worker. Between two steps
the loop serves clients (KAFKA-4614).

The timer runs only while something is there that could expire: a broker without records, or whose
topics keep everything, has none. Whatever may change that calls `note_change`.

Compacted logs are the cleaner's, their deletion too (`PartitionLog.delete_old_segments` is called
by it): one of the two looks at a log, as in Kafka.

Source: Kafka LogManager.cleanupLogs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from minibroker.errors import StorageError
from minibroker.partitions.log_check import LogCheck
from minibroker.storage import retention

if TYPE_CHECKING:
    from minibroker.storage.partition_log import PartitionLog
    from minibroker.storage.retention import Found

logger = logging.getLogger(__name__)

LOGS_AT_ONCE: Final = 64
"""So many logs are looked at in one step: a few hundred µs where nothing is to be done."""


class RetentionCheck(LogCheck):
    """Belongs to the loop's thread."""

    __slots__ = ()

    def note_change(self) -> None:
        """Something was appended or configured, or a log starts later: there may be work."""
        if self._timer is None and self._left is None:
            broker = self._dynamic.broker
            if self._has_checked:
                delay_ms = broker.log_retention_check_interval_ms
            else:
                delay_ms = broker.integer("log.initial.task.delay.ms")
            self._timer = self._timers.after(delay_ms, self._begin)
        elif self._left is not None:
            self._is_needed_again = True

    @property
    def is_armed(self) -> bool:
        """Will there be a check, or is one running?"""
        return self._timer is not None or self._left is not None

    def close(self) -> None:
        """Look at nothing any more: the logs are about to be closed."""
        self._left = None
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        self._timer = None
        self._has_checked = True
        self._is_needed_again = False
        self._left = deque(self._logs.logs)
        self._step()

    def _step(self) -> None:
        """The next few logs: first what is to be read, then the decision."""
        left = self._left
        if left is None:
            return
        if not left:
            self._left = None
            if self._is_needed_again:
                self.note_change()
            return
        logs = []
        for _ in range(min(LOGS_AT_ONCE, len(left))):
            log = self._logs.logs.get(left.popleft())
            if log is not None and not log.config.compact:
                logs.append(log)
        cold = [
            (retention.unsurveyed(list(log.segments), log.config), log.config.retention_ms)
            for log in logs
        ]
        if any(segments for segments, _ in cold):
            loop = asyncio.get_running_loop()
            now_ms = self._clock.now_ms()
            files = self._logs.disk.files

            def read() -> None:
                found: list[Found] = []
                for segments, retention_ms in cold:
                    found += retention.survey(files, segments, now_ms - retention_ms)
                loop.call_soon_threadsafe(self._surveyed, logs, found)

            self._run_later(read)
        else:
            self._delete(logs)

    def _surveyed(self, logs: list[PartitionLog], found: list[Found]) -> None:
        if self._left is None:
            return
        for one in found:
            one.segment.note_survey(one.size_bytes, one.max_timestamp, one.offset)
        self._delete(logs)

    def _delete(self, logs: list[PartitionLog]) -> None:
        left = self._left
        if left is None:
            return
        now_ms = self._clock.now_ms()
        for log in logs:
            if self._logs.logs.get(log.name) is not log:
                continue  # deleted, or its directory failed, while files were read
            try:
                if log.delete_old_segments(self._logs.high_watermark_of(log), now_ms):
                    left.append(log.name)  # there may be more than one step takes
                elif not self._is_needed_again:
                    self._is_needed_again = log.may_expire()
            except StorageError as error:
                logger.error("%s", error)
                self._on_error(error)
        self._timers.after(0, self._step)
