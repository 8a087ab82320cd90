"""The surroundings of a group's membership, without a broker: timers, a journal, a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import MetadataImage
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.groups.group import GroupRecord
    from tests.support.in_process import ManualClock


class ManualTimer:
    """A call of `ManualTimers`; `cancel` removes it."""

    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualTimers:
    """`Timers` without a loop: `run` makes the due calls."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.timers: list[ManualTimer] = []

    def after(self, delay_ms: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self.clock.ms + round(delay_ms), callback)
        self.timers.append(timer)
        return timer

    def run_until(self, end_ms: int) -> None:
        """Move the clock from call to call."""
        while True:
            due = [t for t in self.timers if t.callback is not None and t.at_ms <= end_ms]
            if not due:
                break
            timer = min(due, key=lambda call: call.at_ms)
            self.timers.remove(timer)
            self.clock.ms = max(self.clock.ms, timer.at_ms)
            callback, timer.callback = timer.callback, None
            assert callback is not None
            callback()
        self.clock.ms = end_ms
        self.timers = [timer for timer in self.timers if timer.callback is not None]


class ListRuntime:
    """`CoordinatorRuntime` that keeps the records of one partition; all are visible at once."""

    def __init__(self) -> None:
        self.records: list[GroupRecord] = []
        self.is_failing = False
        self.journal = self

    def write(
        self,
        index: int,
        records: Sequence[GroupRecord],
        *,
        replay: Callable[[int], None],
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
        required_acks: int = -1,
    ) -> None:
        if self.is_failing:
            self.is_failing = False
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the log refuses")
        offset = len(self.records)
        self.records += records
        replay(offset)
        then()

    def when_visible(
        self,
        index: int,
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
    ) -> None:
        then()


class ListCluster:
    """The part of `Cluster` that memberships use."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.group_config: dict[str, str] = {}

    def config_of(self, entity_type: str, entity_name: str) -> dict[str, str]:
        return self.group_config if entity_type == "groups" else {}
