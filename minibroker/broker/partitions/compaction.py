"""When the cleaner looks at the logs: some time after an append, and not for nothing.

The cleaner itself (`storage.compaction`) is loaded when the first compacted log has something to
look at: most brokers on a desk have none.

Source: Kafka LogCleaner.doWork.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.broker.partitions.log_check import LogCheck
from minibroker.broker.slices import run_in_slices

if TYPE_CHECKING:
    from minibroker.broker.storage.compaction.cleaner import LogCleaner


class CompactionCheck(LogCheck):
    """Belongs to the loop's thread; ends with `close`."""

    cleaner: LogCleaner | None = None
    """None while no log was compacted."""

    def note_change(self) -> None:
        """Note that something was appended or configured: there may be work."""
        if self._timer is None:
            broker = self._dynamic.broker
            delay_ms = broker.log_cleaner_backoff_ms
            if broker.log_cleaner_idle_ms:
                delay_ms = min(delay_ms, broker.log_cleaner_idle_ms)
            self._timer = self._timers.after(delay_ms, self._look)

    def _look(self) -> None:
        self._timer = None
        if self.cleaner is None:
            if not any(log.config.compact for log in self._logs.logs.values()):
                return
            self.cleaner = self._make_cleaner()
        self.cleaner.look()

    def _make_cleaner(self) -> LogCleaner:
        # Not before it is needed: see the docstring.
        from minibroker.broker.storage.compaction.cleaner import LogCleaner  # noqa: PLC0415
        from minibroker.broker.storage.compaction.cleaner_settings import (  # noqa: PLC0415
            cleaner_settings,
        )

        return LogCleaner(
            self._logs,
            clock=self._clock,
            settings=lambda: cleaner_settings(self._dynamic.broker),
            run_after=self._timers.after,
            call_soon=asyncio.get_running_loop().call_soon_threadsafe,
            run_in_slices=run_in_slices,
            on_failure=self._on_error,
        )

    def close(self) -> None:
        """End a round that runs; the logs are about to be closed."""
        super().close()
        if self.cleaner is not None:
            self.cleaner.close()
