"""The base of the periodic looks at the logs (`retention`, `flushing`, `compaction`).

Such a check belongs to the loop's thread. It goes through the logs a few at a time, leaves what
blocks to the worker, and is armed by what may give it work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.timers import Timer, Timers
    from minibroker.clock import Clock
    from minibroker.kafka.errors import StorageError
    from minibroker.kafka.ids import TopicPartition


class LogCheck:
    """Ends with its timers."""

    __slots__ = (
        "_clock",
        "_dynamic",
        "_has_checked",
        "_is_needed_again",
        "_left",
        "_logs",
        "_on_error",
        "_timer",
        "_timers",
    )

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
        self._logs = logs
        self._dynamic = dynamic
        self._clock = clock
        self._timers = timers
        self._on_error = on_error
        self._timer: Timer | None = None
        self._left: deque[TopicPartition] | None = None
        """Logs that the running check has not come to; None: no check runs."""
        self._has_checked = False
        """Was there a check since the start?"""
        self._is_needed_again = False
        """Will there be something to do after the running check?"""

    def close(self) -> None:
        """Look at nothing any more: the logs are about to be closed."""
        self._left = None
        if self._timer is not None:
            self._timer.cancel()
