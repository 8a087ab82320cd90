"""Groups as a person reads them: a list, and one with its members and its lag."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.cli.errors import CommandError
from minibroker.cli.quantities import counted
from minibroker.cli.text_table import table_lines, value_text
from minibroker.client import admin, groups
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.group_details import DEAD, GroupDetails, group_details
from minibroker.kafka.ids import LATEST_TIMESTAMP, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.client.client import Client
    from minibroker.client.groups import GroupOffset

TIMEOUT_S: Final = 30.0


class GroupSummary(NamedTuple):
    """A group in the list."""

    name: str
    state: str
    members: int
    lag: int | None
    """Records behind, of all partitions; None: an end is not known."""


class ReadPartition(NamedTuple):
    """A partition of a group."""

    place: TopicPartition
    committed: int | None
    """None: the group has it, and has committed nothing."""
    end: int | None
    """None: the partition is gone, or has no leader now."""
    member: str
    """The client id of its reader, empty for none."""

    @property
    def lag(self) -> int | None:
        """Return the records that are not read; None where an offset is not known."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


class GroupDescription(NamedTuple):
    """A group with everything."""

    details: GroupDetails
    partitions: list[ReadPartition]


class OffsetMove(NamedTuple):
    """A partition of a group that goes on elsewhere."""

    place: TopicPartition
    old_offset: int | None
    """None: the group has no offset there."""
    after: int


def summaries_of(client: Client) -> list[GroupSummary]:
    """Return the groups of the cluster, sorted. Raises KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    deadline = time.monotonic() + TIMEOUT_S
    summaries = []
    for each in sorted(groups.list_groups(client, deadline)):
        view = _view(client, CoordinatorClient(client, each.name), deadline)
        lags = [part.lag for part in view.partitions if part.committed is not None]
        known_lags = [lag for lag in lags if lag is not None]
        summaries.append(
            GroupSummary(
                each.name,
                view.details.state,
                len(view.details.members),
                sum(known_lags) if len(known_lags) == len(lags) else None,
            )
        )
    return summaries


def list_lines(rows: Sequence[GroupSummary]) -> list[str]:
    """Return the lines of the list."""
    if not rows:
        return ["there are no groups: a consumer makes one when it joins or commits\n"]
    return table_lines(
        ("group", "state", "members", "lag"),
        [(row.name, row.state, row.members, value_text(row.lag)) for row in rows],
        words=("state",),
    )


def described(client: Client, name: str) -> GroupDescription:
    """Return a group with its members and lag.

    Raises CommandError if there is none; KafkaError, OSError, ProtocolError, ConfigError.
    """
    view = _view(client, CoordinatorClient(client, name), time.monotonic() + TIMEOUT_S)
    if view.details.state == DEAD and not view.partitions:
        raise CommandError(
            f"there is no group {name}: minibroker groups lists those that there are"
        )
    return view


def lags_of(
    client: Client, coordinator: CoordinatorClient, details: GroupDetails, deadline: float
) -> list[ReadPartition]:
    """Return the partitions of a group, those with an offset or with a reader.

    Raises KafkaError, OSError, ProtocolError, ConfigError.
    """
    readers = {place: member.client_id for member in details.members for place in member.partitions}
    committed = {
        TopicPartition(each.topic, each.partition): each.offset
        for each in committed_offsets(client, coordinator, deadline)
    }
    parts = sorted(readers.keys() | committed.keys())
    ends = admin.list_offsets(
        client, dict.fromkeys(parts, LATEST_TIMESTAMP), is_committed=False
    ).offsets
    return [
        ReadPartition(place, committed.get(place), ends.get(place), readers.get(place, ""))
        for place in parts
    ]


def committed_offsets(
    client: Client, coordinator: CoordinatorClient, deadline: float
) -> list[GroupOffset]:
    """Return the committed offsets of a group. Raises KafkaError, OSError, ProtocolError,
    ConfigError.

    A broker before Kafka 0.10.2 does not tell which ones there are, so it is asked about every
    partition.
    """
    try:
        return groups.committed_offsets(coordinator, deadline)
    except BrokerRefusedError:  # if it is the login, the next call raises it, too
        places = [
            TopicPartition(name, partition.number)
            for name, topic in admin.describe(client).topics.items()
            for partition in topic.partitions
        ]
        return groups.committed_offsets(coordinator, deadline, places)


def _view(client: Client, coordinator: CoordinatorClient, deadline: float) -> GroupDescription:
    details = group_details(coordinator, deadline)
    return GroupDescription(details, lags_of(client, coordinator, details, deadline))


def lines_of(view: GroupDescription) -> list[str]:
    """Return the lines of a group."""
    details = view.details
    kind = f", assigned by {details.assignor}" if details.assignor else ""
    count = len(details.members)
    members = counted(count, "member") if count else "no members"
    lines = [f"{details.name}: {details.state}, {members}, protocol {details.protocol}{kind}\n"]
    if details.members:
        lines += table_lines(
            ("member", "client id", "host", "partitions"),
            [
                (
                    member.instance_id or member.member_id,
                    member.client_id,
                    member.host,
                    _places(member.partitions),
                )
                for member in details.members
            ],
            left_columns=4,
        )
    if view.partitions:
        lines += ["\n"] if details.members else []
        lines += table_lines(
            ("topic", "partition", "committed", "end", "lag", "client id"),
            [
                (
                    part.place.topic,
                    part.place.partition,
                    value_text(part.committed),
                    value_text(part.end),
                    value_text(part.lag),
                    part.member or "-",
                )
                for part in view.partitions
            ],
            words=("client id",),
        )
    return lines


def fields_of(view: GroupDescription) -> dict[str, Any]:
    """Return a group as JSON."""
    details = view.details
    return {
        "name": details.name,
        "state": details.state,
        "protocol": details.protocol,
        "assignor": details.assignor or None,
        "stable": details.is_stable,
        "members": [
            {
                "id": member.member_id,
                "client_id": member.client_id,
                "host": member.host,
                "instance_id": member.instance_id,
                "partitions": [list(place) for place in member.partitions],
            }
            for member in details.members
        ],
        "partitions": [
            {
                "topic": part.place.topic,
                "partition": part.place.partition,
                "committed": part.committed,
                "end": part.end,
                "lag": part.lag,
                "client_id": part.member or None,
            }
            for part in view.partitions
        ],
    }


def move_lines(moves: Iterable[OffsetMove]) -> list[str]:
    """Return the lines of a reset."""
    return table_lines(
        ("topic", "partition", "before", "after"),
        [
            (move.place.topic, move.place.partition, value_text(move.old_offset), move.after)
            for move in moves
        ],
    )


def move_fields(move: OffsetMove) -> Mapping[str, Any]:
    """Return a move as JSON."""
    topic, partition = move.place
    return {"topic": topic, "partition": partition, "before": move.old_offset, "after": move.after}


def _places(partitions: Iterable[TopicPartition]) -> str:
    """Return `orders: 0,1; users: 2`."""
    numbers: dict[str, list[str]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(str(partition))
    return (
        "; ".join(f"{topic}: {','.join(indexes)}" for topic, indexes in numbers.items()) or "none"
    )
