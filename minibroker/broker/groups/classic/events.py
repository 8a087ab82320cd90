"""Input and output of the steps of a classic group: values only.

A step is a function of `joining`, `syncing`, `sessions` or `rebalance`. It is given the group, what
happened and a `Step`; it changes the group and leaves in the step what has to be done: answers,
timers, a record to store. `membership.py` does it. So the whole state machine runs without a
socket, a clock or a log, and its transcripts can be read (tests/scenario).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.groups.steps import Step as GroupStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.groups.member_requests import (
        JoinAnswer,
        JoinWaiter,
        SyncAnswer,
        SyncWaiter,
    )
    from minibroker.broker.groups.steps import ClassicSettings
    from minibroker.kafka.error_codes import ErrorCode
    from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataValue

    StoreDone = Callable[["Step", ErrorCode | None], None]

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""So long a new member may wait in its first join; Kafka's classicGroupNewMemberJoinTimeoutMs."""


class GiveAnswer(NamedTuple):
    """Give a waiting member its answer, which `Step` has paired with the right kind of waiter."""

    waiter: Callable[[Any], None]
    answer: JoinAnswer | SyncAnswer


class Store(NamedTuple):
    """Append this state of the group, then make the step `done` (None: it is written)."""

    value: GroupMetadataValue
    done: StoreDone


class Step(GroupStep):
    """One step of a classic group under way: timers first, then the answers, then the records."""

    __slots__ = ("answers", "new_member_id", "settings", "stores")

    def __init__(
        self, now_ms: int, settings: ClassicSettings, new_member_id: Callable[[str], str]
    ) -> None:
        super().__init__(now_ms)
        self.settings = settings
        self.new_member_id = new_member_id
        """From the client's id, or its instance id, to an id that nobody has."""
        self.answers: list[GiveAnswer] = []
        self.stores: list[Store] = []

    def answer_join(self, waiter: JoinWaiter, answer: JoinAnswer) -> None:
        """Answer a JoinGroup request."""
        self.answers.append(GiveAnswer(waiter, answer))

    def answer_sync(self, waiter: SyncWaiter, answer: SyncAnswer) -> None:
        """Answer a SyncGroup request."""
        self.answers.append(GiveAnswer(waiter, answer))

    def store(self, value: GroupMetadataValue, done: StoreDone) -> None:
        """Append a record; `done` is the step that follows when it is visible, or refused."""
        self.stores.append(Store(value, done))
