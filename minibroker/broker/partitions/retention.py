"""When retention looks at the logs: `log.retention.check.interval.ms`, and not for nothing.

A check goes through the logs a few at a time. What it needs of files that nobody has opened yet is
read by the directory's worker (`storage.survey`), while the check goes on with the other
logs; the decision and the renames, short and bounded, are made on the loop, to which the logs
belong; bytes are removed by the worker. Between two steps the loop serves clients (KAFKA-4614).

A check waits for no disk: a log whose files are still being read when its check ends is decided
when they have been read, and until then later checks leave its directory out. So a disk that hangs
stops the retention of its own logs only.

The timer runs only while something is there that could expire: a broker without records, or whose
topics keep everything, has none. Whatever may change that calls `note_change`.

Compacted logs are the cleaner's, their deletion too (it calls `storage.retention` itself): one of
the two looks at a log, as in Kafka.

Source: Kafka LogManager.cleanupLogs.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.partitions.log_check import LogCheck
from minibroker.broker.storage import retention
from minibroker.broker.storage.log_reads import survey
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.log_reads import SegmentSurvey
    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.broker.storage.segment import Segment
    from minibroker.broker.timers import Timers
    from minibroker.clock import Clock

logger = logging.getLogger(__name__)

LOGS_AT_ONCE: Final = 64
"""Logs in one step: a few hundred µs if no segment is due."""


class _Cold(NamedTuple):
    """A log whose files have to be read before the decision."""

    log: PartitionLog
    segments: list[Segment]
    retention_ms: int


class RetentionCheck(LogCheck):
    """The check of the logs' retention. Belongs to the loop's thread."""

    __slots__ = ("_busy", "_is_closed", "_surveys")

    def __init__(
        self,
        *,
        logs: LogManager,
        dynamic: DynamicConfig,
        clock: Clock,
        timers: Timers,
        on_error: Callable[[StorageError], None],
    ) -> None:
        """`on_error` is told what a disk refused."""
        super().__init__(logs=logs, dynamic=dynamic, clock=clock, timers=timers, on_error=on_error)
        self._surveys: Counter[str] = Counter()
        """Log directory → reads that its worker has not ended."""
        self._busy: frozenset[str] = frozenset()
        """Directories with reads of an earlier check: the running one leaves them out."""
        self._is_closed = False

    def note_change(self) -> None:
        """Note that something was appended or configured, or a log starts later: there may be
        work.
        """
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
        """Return whether there will be a check, or one is running."""
        return self._timer is not None or self._left is not None

    def _begin(self) -> None:
        self._timer = None
        self._has_checked = True
        self._is_needed_again = False
        self._busy = frozenset(self._surveys)
        self._left = deque(self._logs.logs)
        self._step()

    def close(self) -> None:
        """Use nothing more that workers read: the logs are about to be closed."""
        super().close()
        self._is_closed = True

    def _step(self) -> None:
        """Look at the next few logs. Those whose files have to be read first are decided later."""
        left = self._left
        if left is None:
            return
        if not left:
            self._end()
            return
        warm: list[PartitionLog] = []
        cold: dict[str, list[_Cold]] = defaultdict(list)
        for _ in range(min(LOGS_AT_ONCE, len(left))):
            log = self._logs.logs.get(left.popleft())
            if log is None or log.config.compact:
                continue
            if log.log_directory in self._busy:
                self._is_needed_again = True
                continue
            segments = retention.unsurveyed(list(log.segments), log.config)
            if segments:
                cold[log.log_directory].append(_Cold(log, segments, log.config.retention_ms))
            else:
                warm.append(log)
        for path, logs in cold.items():
            self._survey(path, logs)
        self._delete(warm)
        self._timers.after(0, self._step)

    def _end(self) -> None:
        """End the check. What workers still read is decided when they are done."""
        self._left = None
        if self._is_needed_again:
            self.note_change()

    def _survey(self, path: str, cold: list[_Cold]) -> None:
        """Have the worker of this directory read what is not known, then decide."""
        disk = self._logs.disk.of(path)
        now_ms = self._clock.now_ms()
        found: list[SegmentSurvey] = []
        failures: list[tuple[PartitionLog, Exception]] = []

        def read() -> None:
            for log, segments, retention_ms in cold:
                try:
                    found.extend(survey(disk.files, segments, now_ms - retention_ms))
                except Exception as error:  # the other logs are looked at all the same
                    failures.append((log, error))

        self._surveys[path] += 1
        logs = [candidate.log for candidate in cold]
        disk.run_then(read, partial(self._surveyed, path, logs, found, failures))

    def _surveyed(
        self,
        path: str,
        logs: list[PartitionLog],
        found: list[SegmentSurvey],
        failures: list[tuple[PartitionLog, Exception]],
    ) -> None:
        """Decide about logs whose files were read, but for those that could not be."""
        self._surveys[path] -= 1
        self._surveys += Counter()  # forgets those at zero
        if self._is_closed:
            return
        if self._left is None:
            self._left = deque()
        for log, error in failures:
            logs.remove(log)
            self._is_needed_again = True
            logger.error("retention cannot read %s: %s", log.name, error)
            if isinstance(error, OSError):
                self._on_error(log.place.failed("read", error))
        for result in found:
            result.segment.note_survey(result.size_bytes, result.max_timestamp, result.offset)
        self._delete(logs)
        self._timers.after(0, self._step)

    def _delete(self, logs: list[PartitionLog]) -> None:
        left = self._left
        if left is None:
            return
        now_ms = self._clock.now_ms()
        for log in logs:
            if self._logs.logs.get(log.name) is not log:
                continue  # deleted, or its directory failed, while files were read
            try:
                if retention.delete_old_segments(log, self._logs.high_watermark_of(log), now_ms):
                    left.append(log.name)  # there may be more than one step takes
                elif not self._is_needed_again:
                    self._is_needed_again = retention.may_expire(log)
            except StorageError as error:
                logger.error("%s", error)
                self._on_error(error)
            except Exception:  # a bug of ours costs this log, until the next check
                logger.exception("retention of %s failed", log.name)
                self._is_needed_again = True
