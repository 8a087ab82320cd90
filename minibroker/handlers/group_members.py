"""What the handlers of group membership share: who manages a group, and answers that come later.

JoinGroup and SyncGroup wait for other members. A `Waiter` is what the group keeps meanwhile: called
with the answer it makes the response; a client whose connection is gone hears nothing, and nothing
of it is kept once the group has gone on.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.groups.group import CONSUMER

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.groups.classic.membership import ClassicMembership
    from minibroker.groups.consumer.membership import ConsumerMembership
    from minibroker.groups.coordinator import GroupCoordinator
    from minibroker.groups.shard import GroupShard
    from minibroker.handlers.context import RequestContext
    from minibroker.partitions.manager import PartitionManager


def manager_of(
    groups: GroupCoordinator, shard: GroupShard, group_id: str
) -> ClassicMembership | ConsumerMembership:
    """Who answers JoinGroup, SyncGroup, Heartbeat and LeaveGroup for this group.

    A consumer group with members looks after those that speak the classic protocol itself (the
    migration of KIP-848); an empty one becomes classic when somebody joins.
    """
    group = shard.groups.get(group_id)
    if group is not None and group.type_name == CONSUMER and not group.is_empty:
        return groups.consumer
    return groups.classic


def client_host(context: RequestContext) -> str:
    """The client's address as Kafka stores and shows it: Java's InetAddress, `/127.0.0.1`."""
    host = context.client_address.rpartition(":")[0].strip("[]")
    if ":" in host:
        from ipaddress import ip_address  # noqa: PLC0415  IPv6 only

        groups = ip_address(host.partition("%")[0]).exploded.split(":")
        host = ":".join(f"{int(group, 16):x}" for group in groups)
    return f"/{host}"


class Waiter:
    """Takes one answer, at once or later; the connection is given the response or its future.

    A later answer comes of what another member, or a timer, had stored: where that has to be synced
    first (`flush.messages`), it leaves after that, as Kafka's do, and is an error if that fails.
    """

    __slots__ = ("_future", "_partitions", "_respond", "_response")

    def __init__(self, respond: Callable[[Any], Any], partitions: PartitionManager) -> None:
        """`respond` makes the response of an answer; the group is stored in `partitions`."""
        self._respond = respond
        self._partitions = partitions
        self._response: Any = None
        self._future: asyncio.Future[Any] | None = None

    def __call__(self, answer: Any) -> None:
        response = self._respond(answer)
        if self._future is None:
            self._response = response
        else:
            self._partitions.when_synced(partial(self._resolve, self._future, response))

    def _resolve(self, future: asyncio.Future[Any], response: Any, is_synced: bool) -> None:
        if future.done():  # cancelled when the connection was closed
            return
        if is_synced:
            future.set_result(response)
        else:
            future.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))

    def outcome(self) -> Any:
        """For the connection: the response if it is there, else a future of it."""
        if self._response is not None:
            return self._response
        self._future = asyncio.get_running_loop().create_future()
        return self._future
