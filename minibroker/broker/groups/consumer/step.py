"""Input and output of the steps of a consumer group: values only.

A step is a function of `heartbeat`, `leaving`, `classic_members`, `migration` or `regexes`. It
reads the group and the cluster's topics and leaves records, timers and more in its `Step`; the
group is not touched. `membership.py` appends the records, replays them and does the rest. A step
that raises KafkaError wants nothing recorded, but its timers stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.groups.steps import Step as GroupStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.groups.classic.group import ClassicGroup
    from minibroker.broker.groups.consumer.topics import ImageTopics
    from minibroker.broker.groups.group import GroupRecord
    from minibroker.broker.groups.steps import ClassicSettings

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
    classic: ClassicSettings
    """For members of the classic protocol, and for what the group is when it becomes classic."""

    @property
    def may_upgrade(self) -> bool:
        """Return whether a classic group becomes a consumer group when such a member comes."""
        return self.migration_policy in {UPGRADE, BIDIRECTIONAL}

    @property
    def may_downgrade(self) -> bool:
        """Return whether a consumer group becomes classic when only classic members are left."""
        return self.migration_policy in {DOWNGRADE, BIDIRECTIONAL}


class Downgrade(NamedTuple):
    """The group becomes this classic group; the records are not replayed."""

    group: ClassicGroup
    rebalance_reason: str | None
    """Why a rebalance begins at once; None: it does not."""


class Step(GroupStep):
    """One step under way: what it may look at, and what it wants done."""

    __slots__ = (
        "checked_topics_version",
        "downgrade",
        "new_member_id",
        "records",
        "regexes",
        "replaced_group",
        "settings",
        "topics",
    )

    def __init__(
        self, now_ms: int, settings: Settings, topics: ImageTopics, new_member_id: Callable[[], str]
    ) -> None:
        super().__init__(now_ms)
        self.settings = settings
        self.topics = topics
        self.new_member_id = new_member_id
        self.records: list[GroupRecord] = []
        """To append as one batch, then to replay."""
        self.checked_topics_version: int | None = None
        """The group's topics were compared with this version of the cluster's."""
        self.regexes: tuple[str, ...] = ()
        """Patterns to look up, off the loop."""
        self.replaced_group: ClassicGroup | None = None
        """The classic group that this one replaces: who waits in it is told to join again."""
        self.downgrade: Downgrade | None = None
