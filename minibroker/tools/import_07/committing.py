"""Stored positions of consumers of Kafka 0.7, committed as the offsets of their groups.

    positions ─► the table ─► an offset for each ─► the coordinator of the group

A position at which no message begins is committed so that no record is missed: at the message
around it, at the first one that is there, or at the end. Each of them is noted.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import counted
from minibroker.client import groups
from minibroker.client.coordinators import CoordinatorClient
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.tools.import_07.errors import ImportRefusedError
from minibroker.tools.import_07.table import BEFORE_START, END, INSIDE, MESSAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.client.client import Client
    from minibroker.tools.import_07.consumers import StoredPosition
    from minibroker.tools.import_07.table import PositionTable

TIMEOUT_S: Final = 30.0
_HAS_MEMBERS: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS})
_REASONS: Final = {
    INSIDE: "no message begins there; the group goes on at the one around it",
    BEFORE_START: "that is before the first message; the group goes on at the first one",
}
_BEHIND: Final = "that is behind the last message; the group goes on at the end"


class GroupCommit(NamedTuple):
    """The offsets of a group."""

    group: str
    offsets: dict[TopicPartition, int]


def commits_of(
    table: PositionTable, positions: Iterable[StoredPosition], note: Callable[[str], None]
) -> list[GroupCommit]:
    """Return the offsets of each group, in the order of their names.

    `note` takes a sentence for each position that is no message's, and for each partition that the
    table does not have; 0 there says that nothing was read.
    """
    partitions = {(each.topic, each.broker, each.number): each for each in table.partitions}
    offsets: dict[str, dict[TopicPartition, int]] = {}
    for position in positions:
        partition = partitions.get((position.topic, position.broker, position.number))
        subject = f"group {position.group} has position {position.position} of {position.name}"
        if partition is None:
            if position.position:
                note(f"{subject}, which is not imported: nothing is committed for it")
            continue
        place = table.place_of(partition, position.position)
        if place.kind not in (MESSAGE, END):
            note(f"{subject}: {_REASONS.get(place.kind, _BEHIND)}, offset {place.offset}")
        new_place = TopicPartition(partition.new_topic, partition.new_number)
        offsets.setdefault(position.group, {})[new_place] = place.offset
    return [GroupCommit(group, offsets[group]) for group in sorted(offsets)]


def commit(client: Client, commits: Iterable[GroupCommit], report: Callable[[str], None]) -> None:
    """Commit the offsets of groups, one group after the other; `report` takes a sentence about each
    that is committed.

    Raises ImportRefusedError behind the last group if some were refused, as those with members;
    OSError, ProtocolError, ConfigError.
    """
    refusals = []
    for group, offsets in commits:
        try:
            coordinator = CoordinatorClient(client, group)
            groups.commit_offsets(coordinator, offsets, time.monotonic() + TIMEOUT_S)
        except KafkaError as error:
            has_members = error.code in _HAS_MEMBERS
            refusals.append(f"{group} ({'it has members: stop them' if has_members else error})")
        else:
            report(f"group {group}: {counted(len(offsets), 'partition')} committed")
    if refusals:
        raise ImportRefusedError(
            f"the offsets of {counted(len(refusals), 'group')} are not committed: "
            f"{', '.join(refusals)}. The records and the table are whole: commit again with "
            "--table and without directories"
        )
