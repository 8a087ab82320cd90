"""Conditions of a cluster that are waited for; the work behind `wait`.

A condition is a function that asks the brokers once: it returns None if it holds, and else a
sentence about what is there.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from minibroker.cli.errors import CommandError
from minibroker.client import admin
from minibroker.client.client import Client
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.group_details import DEAD, group_details
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.verbs.group_views import lags_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAUSE_S: Final = 0.1
ANSWER_S: Final = 5.0
"""Longest wait for one answer: a broker that starts may accept and be silent."""


def impatient(client: Client, timeout_s: float) -> Client:
    """Return a client of the same cluster that does not wait long for one answer."""
    settings = client.settings
    shortest = min(settings.timeout_s, ANSWER_S, max(timeout_s, PAUSE_S))
    return Client(settings._replace(timeout_s=shortest))


def wait_for(
    conditions: Sequence[Callable[[], str | None]],
    timeout_s: float,
    on_missing: Callable[[str], None],
) -> None:
    """Wait until all conditions hold at once.

    Args:
        conditions: functions of this module.
        timeout_s: longest wait, in seconds.
        on_missing: takes the sentence of the first one that does not hold, again and again.

    Raises CommandError with the sentence when the time is over; BrokerRefusedError (a login that is
    refused), ConfigError.
    """
    deadline = time.monotonic() + timeout_s
    while (missing := next(filter(None, map(_lack_of, conditions)), None)) is not None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise CommandError(f"after {timeout_s:g} s {missing}")
        on_missing(missing)
        threading.Event().wait(min(PAUSE_S, left_s))


def _lack_of(condition: Callable[[], str | None]) -> str | None:
    """Return the sentence of a condition; a failure of the brokers is one, too."""
    try:
        return condition()
    except BrokerRefusedError:
        raise
    except OSError as error:
        return error.strerror or str(error)
    except (KafkaError, ProtocolError) as error:
        return f"a broker answers with an error: {error}"


def broker_answers(client: Client) -> Callable[[], str | None]:
    """Return the condition that a broker answers, and that the cluster has one."""

    def condition() -> str | None:
        return None if client.brokers() else "the cluster has no broker"

    return condition


def topic_is_there(client: Client, name: str, partitions: int) -> Callable[[], str | None]:
    """Return the condition that a topic has so many partitions, or more, each with a leader."""

    def condition() -> str | None:
        topic = admin.describe(client, [name]).topics[name]
        if not topic.partitions:
            return f"there is no topic {name} ({topic.error.name})"
        if topic.partition_count < partitions:
            return f"topic {name} has {topic.partition_count} partitions, expected {partitions}"
        leaderless = [part.number for part in topic.partitions if part.leader < 0]
        return f"topic {name} has no leader of partitions {leaderless}" if leaderless else None

    return condition


def group_is_stable(client: Client, name: str, members: int) -> Callable[[], str | None]:
    """Return the condition that a group has so many members, or more, and is stable."""
    coordinator = CoordinatorClient(client, name)

    def condition() -> str | None:
        details = group_details(coordinator, time.monotonic())
        if details.is_stable and len(details.members) >= members:
            return None
        if details.state == DEAD:
            return f"there is no group {name}"
        having = ", ".join(
            f"{member.client_id} ({len(member.partitions)} partitions)"
            for member in details.members
        )
        return (
            f"group {name} is {details.state} with {len(details.members)} of {members} members"
            f"{': ' if having else ''}{having}"
        )

    return condition


def group_has_read(client: Client, name: str, most: int) -> Callable[[], str | None]:
    """Return the condition that the offsets of a group are at most so many records behind.

    A partition that a member has, and that has no committed offset, counts as not read.
    """
    coordinator = CoordinatorClient(client, name)

    def condition() -> str | None:
        deadline = time.monotonic()
        details = group_details(coordinator, deadline)
        parts = lags_of(client, coordinator, details, deadline)
        if not parts:
            if details.state == DEAD:
                return f"there is no group {name}"
            return f"group {name} ({details.state}) has no offsets and no partitions"
        missing = [
            f"{part.place} {'nothing committed' if part.lag is None else part.lag}"
            for part in parts
            if part.lag is None and part.end != 0
        ]
        lag = sum(part.lag or 0 for part in parts)
        if lag <= most and not missing:
            return None
        behind = [f"{part.place} {part.lag}" for part in parts if part.lag]
        return (
            f"group {name} ({details.state}) is {lag} records behind: "
            f"{', '.join((*behind, *missing)[:10])}"
        )

    return condition
