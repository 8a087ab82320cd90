"""What has to be done some time after an append: checkpoints, and forgetting silent producers.

No clock ticks in an idle broker: `note_change`, called at every commit, arms what is not armed. The
producers are looked at on the loop (their state belongs to it), in one pass over the logs whose
state is loaded; checkpoints are written by the worker.

Source: Kafka LogManager (checkpointLogRecoveryOffsets), ProducerStateManager
(removeExpiredProducers).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.clock import Clock
    from minibroker.config.dynamic import DynamicConfig
    from minibroker.storage.log_manager import LogManager


class Housekeeping:
    """Belongs to the loop's thread; `close` before the logs are closed."""

    __slots__ = (
        "_checkpoint_timer",
        "_clock",
        "_dynamic",
        "_expiry_timer",
        "_logs",
        "_run_later",
    )

    def __init__(
        self,
        *,
        logs: LogManager,
        dynamic: DynamicConfig,
        clock: Clock,
        run_later: Callable[[Callable[[], None]], None],
    ) -> None:
        """`run_later` gives blocking work to the worker."""
        self._logs = logs
        self._dynamic = dynamic
        self._clock = clock
        self._run_later = run_later
        self._checkpoint_timer: asyncio.TimerHandle | None = None
        self._expiry_timer: asyncio.TimerHandle | None = None

    def note_change(self) -> None:
        """Something was appended: the next checkpoint and the next look at producers are due."""
        if self._checkpoint_timer is None:
            interval_ms = self._dynamic.broker.log_flush_offset_checkpoint_interval_ms
            self._checkpoint_timer = _call_later(interval_ms, self._checkpoint)
        if self._expiry_timer is None:
            interval_ms = self._dynamic.broker.producer_id_expiration_check_interval_ms
            self._expiry_timer = _call_later(interval_ms, self._remove_expired_producers)

    def close(self) -> None:
        """Do nothing any more."""
        for timer in (self._checkpoint_timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()

    def _checkpoint(self) -> None:
        self._checkpoint_timer = None
        self._run_later(self._logs.checkpoint_now)

    def _remove_expired_producers(self) -> None:
        """`producer.id.expiration.ms`; looks again while there is anybody left to expire."""
        self._expiry_timer = None
        expiration_ms = self._dynamic.broker.producer_id_expiration_ms
        if self._logs.remove_expired_producers(self._clock.now_ms(), expiration_ms):
            interval_ms = self._dynamic.broker.producer_id_expiration_check_interval_ms
            self._expiry_timer = _call_later(interval_ms, self._remove_expired_producers)


def _call_later(delay_ms: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)
