"""Input and output of the server-side assignors, and the table of them.

An assignor is a pure function of an `AssignorInput`. Its result has an entry for every member that
gets anything; partitions are ascending tuples, so that two assignments compare with `==`. The racks
of members and replicas are not looked at, as in Kafka 4.4.

Source: Kafka 4.4, org.apache.kafka.coordinator.group.assignor; KIP-848.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.groups.consumer.java_order import copied_capacity, hash_order, int_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Assignment = dict[bytes, tuple[int, ...]]
    """Topic id → partitions, ascending; topics without a partition are left out."""

NOTHING: Final[Assignment] = {}
"""No partition at all; never changed."""


class MemberInput(NamedTuple):
    """One member as an assignor sees it."""

    instance_id: str | None
    topic_ids: tuple[bytes, ...]
    """Existing topics that it subscribes to, in the order in which Java walks their names."""
    assignment: Assignment
    """Its target so far."""


class AssignorInput(NamedTuple):
    """The group as an assignor sees it."""

    members: Mapping[str, MemberInput]
    """By member id, in the order in which the assignor shall walk them."""
    is_homogeneous: bool
    """All members subscribed to the same topics."""
    partition_counts: Mapping[bytes, int]
    """Topic id → number of partitions, for every topic that a member subscribes to."""
    owners: Mapping[bytes, Mapping[int, str]]
    """Topic id → partition → the member whose target it is."""


if TYPE_CHECKING:
    Assignor = Callable[[AssignorInput], dict[str, Assignment]]

ASSIGNORS: Final = {"uniform": "uniform_assignor", "range": "range_assignor"}
"""Name, as members and `group.consumer.assignors` use it → module of this package."""


def load_assignor(name: str) -> Assignor:
    """Return the assignor of this name of `ASSIGNORS`."""
    assign: Assignor = import_module(f"minibroker.broker.groups.consumer.{ASSIGNORS[name]}").assign
    return assign


def walk_partitions(partitions: tuple[int, ...]) -> list[int]:
    """Partitions in the order of a HashSet that was copied from them."""
    return hash_order(partitions, int_hash, copied_capacity(len(partitions)))


def frozen(assignment: Mapping[bytes, set[int]]) -> Assignment:
    """Return an assignment as assignors return it: sorted, without empty topics."""
    return {
        topic_id: tuple(sorted(partitions))
        for topic_id, partitions in assignment.items()
        if partitions
    }
