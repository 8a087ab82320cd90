"""What a step of a consumer group goes by and what it leaves to be done; nothing is done here.

A step is a function of `heartbeat`, `leaving`, `classic_members`, `migration` or `regexes`. It
reads the group and the cluster's topics and leaves records, timers and more in its `Step`; the
group is not touched. `membership.py` appends the records, replays them and does the rest. A step
that raises KafkaError wants nothing recorded, but its timers stand.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.groups.classic.group import ClassicGroup
    from minibroker.groups.consumer.topics import Topics
    from minibroker.groups.group import GroupRecord

UPGRADE: Final = "upgrade"
DOWNGRADE: Final = "downgrade"
BIDIRECTIONAL: Final = "bidirectional"
DISABLED: Final = "disabled"
"""Values of `group.consumer.migration.policy`."""


class Settings(NamedTuple):
    """The keys that one group goes by: the broker's, and its own over them."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    """So long after a target was computed the next one waits."""
    max_size: int
    assignors: tuple[str, ...]
    """Names that members may ask for; the first one is the default."""
    migration_policy: str
    regex_refresh_interval_ms: int
    classic_max_size: int

    @property
    def may_upgrade(self) -> bool:
        """A classic group becomes a consumer group when such a member comes."""
        return self.migration_policy in {UPGRADE, BIDIRECTIONAL}

    @property
    def may_downgrade(self) -> bool:
        """A consumer group becomes classic when only classic members are left."""
        return self.migration_policy in {DOWNGRADE, BIDIRECTIONAL}


class TimerKind(Enum):
    """What may be waited for, each per member."""

    SESSION = "session"
    """The next heartbeat."""
    REBALANCE = "rebalance"
    """Partitions are given up; only while the member stays at its epoch."""
    JOIN = "join"
    """A classic member joins again."""
    SYNC = "sync"
    """A classic member asks for its share."""


class StartTimer(NamedTuple):
    """Fence the member in `delay_ms`; a timer of this kind that runs already is moved."""

    kind: TimerKind
    member_id: str
    delay_ms: int
    only_if_absent: bool = False
    """One that runs already is left alone."""
    member_epoch: int | None = None
    """The member is fenced only if it is still at this epoch."""


class StopTimer(NamedTuple):
    """Forget this timer."""

    kind: TimerKind
    member_id: str


class Downgrade(NamedTuple):
    """The group becomes this classic group; the records are not replayed."""

    group: ClassicGroup
    rebalance_reason: str | None
    """Why a rebalance begins at once; None: it does not."""


class Step:
    """One step under way: what it may look at, and what it wants done."""

    __slots__ = (
        "checked_topics_version",
        "downgrade",
        "new_member_id",
        "now_ms",
        "records",
        "regexes",
        "settings",
        "timers",
        "topics",
        "upgraded",
    )

    def __init__(
        self, now_ms: int, settings: Settings, topics: Topics, new_member_id: Callable[[], str]
    ) -> None:
        self.now_ms = now_ms
        """Wall clock, milliseconds since the epoch."""
        self.settings = settings
        self.topics = topics
        self.new_member_id = new_member_id
        self.records: list[GroupRecord] = []
        """To append as one batch, then to replay."""
        self.timers: list[StartTimer | StopTimer] = []
        self.checked_topics_version: int | None = None
        """The group's topics were compared with this version of the cluster's."""
        self.regexes: tuple[str, ...] = ()
        """Patterns to look up, off the loop."""
        self.upgraded: ClassicGroup | None = None
        """The classic group that this one replaces: who waits in it is told to join again."""
        self.downgrade: Downgrade | None = None

    def start_timer(
        self,
        kind: TimerKind,
        member_id: str,
        delay_ms: int,
        *,
        only_if_absent: bool = False,
        member_epoch: int | None = None,
    ) -> None:
        """See `StartTimer`."""
        self.timers.append(StartTimer(kind, member_id, delay_ms, only_if_absent, member_epoch))

    def stop_timer(self, kind: TimerKind, member_id: str) -> None:
        """See `StopTimer`."""
        self.timers.append(StopTimer(kind, member_id))

    def stop_timers(self, member_id: str) -> None:
        """The member is gone."""
        self.timers.extend(StopTimer(kind, member_id) for kind in TimerKind)
