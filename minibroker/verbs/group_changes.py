"""Groups moved to another place, and deleted; the work behind `groups` and Kafka's scripts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from minibroker.cli.errors import CommandError
from minibroker.client import group_details, groups
from minibroker.client.coordinators import CoordinatorClient
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.verbs import places
from minibroker.verbs.group_views import OffsetMove, committed_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.client.client import Client
    from minibroker.verbs.places import OffsetPlace

TIMEOUT_S: Final = 30.0
_HAS_MEMBERS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


def moves_of(
    client: Client, group: str, place: OffsetPlace, topic: str | None = None
) -> list[OffsetMove]:
    """Return where a group is, and where it would be at a place.

    Args:
        place: in each partition; an offset outside of the log is moved to its next end.
        topic: the topic, all of its partitions; None: those that the group has offsets of.

    Raises CommandError for a group without offsets; KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    coordinator = CoordinatorClient(client, group)
    chosen = None if topic is None else places.partitions_of(client, topic)
    deadline = time.monotonic() + TIMEOUT_S
    committed = {
        TopicPartition(each.topic, each.partition): each.offset
        for each in (
            committed_offsets(client, coordinator, deadline)
            if chosen is None
            else groups.committed_offsets(coordinator, deadline, chosen)
        )
    }
    moved = sorted(committed) if chosen is None else chosen
    if not moved:
        raise CommandError(
            f"group {group} has no offsets: name the topic that it is to read (--topic)"
        )
    bounds = places.bounds_of(client, moved, is_committed=False)
    offsets = places.offsets_at(client, place, bounds, is_committed=False)
    return [OffsetMove(part, committed.get(part), offsets[part]) for part in moved]


def commit(client: Client, group: str, moves: Sequence[OffsetMove]) -> None:
    """Commit the offsets of the moves.

    Raises CommandError for a group that has members; KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    coordinator = CoordinatorClient(client, group)
    offsets = {move.place: move.after for move in moves}
    try:
        groups.commit_offsets(coordinator, offsets, time.monotonic() + TIMEOUT_S)
    except KafkaError as error:
        raise _failure_of(coordinator, error) from None


def delete(client: Client, group: str) -> None:
    """Delete a group with its offsets. Raises CommandError; KafkaError, OSError, ProtocolError,
    ConfigError (also where there is none).
    """
    coordinator = CoordinatorClient(client, group)
    try:
        group_details.delete_group(coordinator, time.monotonic() + TIMEOUT_S)
    except KafkaError as error:
        raise _failure_of(coordinator, error) from None


def _failure_of(coordinator: CoordinatorClient, error: KafkaError) -> Exception:
    """Return the error of a person for one of a coordinator."""
    name = coordinator.name
    if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
        return CommandError(
            f"there is no group {name}: minibroker groups lists those that there are"
        )
    if error.code in _HAS_MEMBERS:
        details = group_details.group_details(coordinator, time.monotonic() + TIMEOUT_S)
        members = ", ".join(f"{each.client_id} ({each.host})" for each in details.members)
        return CommandError(
            f"group {name} has members: stop them before ({members or 'they left'})"
        )
    return error
