"""The managers of the members of groups: one `Members` for each kind (`kinds`).

The coordinator makes one when the first group or member of a kind is met. Handlers bring it the
requests of members.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from minibroker.broker.groups.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.groups.member_requests import (
        Departure,
        Join,
        JoinWaiter,
        LeaveWaiter,
        Sync,
        SyncWaiter,
    )
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.timers import Timers
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock
    from minibroker.kafka.error_codes import ErrorCode


class Surroundings(NamedTuple):
    """The parts that a manager of members is made with."""

    clock: Clock
    timers: Timers
    config: BrokerConfig
    cluster: Cluster
    worker: Runner
    members: Callable[[str], Any]
    """The `Members` of another kind, by its name."""


class Members(Protocol):
    """Manages the members of one kind of groups; waiters are called at once or later."""

    def join(self, shard: GroupShard, group_id: str, join: Join, waiter: JoinWaiter) -> None:
        """JoinGroup."""

    def sync(self, shard: GroupShard, group_id: str, sync: Sync, waiter: SyncWaiter) -> None:
        """SyncGroup."""

    def heartbeat(
        self,
        shard: GroupShard,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation_id: int,
    ) -> ErrorCode:
        """Heartbeat."""

    def leave(
        self, shard: GroupShard, group_id: str, departures: Sequence[Departure], waiter: LeaveWaiter
    ) -> None:
        """LeaveGroup. Raises KafkaError."""

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """Run the sessions of the partition's groups from now on: the groups are as they were."""

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Send those that wait to the broker that coordinates these groups now."""


def make_members(kind: str, surroundings: Surroundings) -> Members:
    """Make the manager of the members of a kind of groups; loads its module."""
    members: Members = import_module(KINDS[kind].members_module).make_members(surroundings)
    return members
