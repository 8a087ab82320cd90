"""Common code of the handlers of group membership: the manager of a group, and later answers.

JoinGroup and SyncGroup wait for other members. An `AnswerWaiter` is what the group keeps meanwhile:
called with the answer it makes the response; a client whose connection is gone hears nothing, and
nothing of it is kept once the group has gone on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.features import GROUP_VERSION
from minibroker.broker.groups.group import CLASSIC, CONSUMER
from minibroker.broker.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.groups.coordinator import GroupCoordinator
    from minibroker.broker.groups.member_requests import MayDescribe
    from minibroker.broker.groups.members import Members
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.handlers.common.context import RequestContext


def manager_of(groups: GroupCoordinator, shard: GroupShard, group_id: str) -> Members:
    """Return the manager that answers JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
    group = shard.groups.get(group_id)
    return groups.members(CLASSIC if group is None else group.serving_kind)


def serves_consumer_protocol(context: RequestContext) -> bool:
    """Return whether consumer groups (KIP-848) are served, by feature level and by setting."""
    return CONSUMER in context.services.groups.protocols and bool(
        context.services.features.level(GROUP_VERSION)
    )


def client_host(context: RequestContext) -> str:
    """Return the client's address as Kafka stores and shows it: Java's InetAddress,
    `/127.0.0.1`.
    """
    return f"/{context.host}"


def topic_filter(context: RequestContext) -> MayDescribe | None:
    """Return whether the client of the request in hand may describe a topic, None without an
    authorizer. It may be asked when the request is answered, and knows the ACLs of that moment.
    """
    authorizer = context.services.authorizer
    if authorizer is None:
        return None
    principal, host, api_key = context.principal, context.host, context.api_key
    return lambda name: authorizer.allows(
        principal, host, Operation.DESCRIBE, ResourceType.TOPIC, name, api_key, is_filter=True
    )


class AnswerWaiter:
    """Takes one answer, at once or later; the connection is given the response or its future."""

    __slots__ = ("_future", "_respond", "_response")

    def __init__(self, respond: Callable[[Any], Any]) -> None:
        """`respond` makes the response of an answer."""
        self._respond = respond
        self._response: Any = None
        self._future: asyncio.Future[Any] | None = None

    def __call__(self, answer: Any) -> None:
        response = self._respond(answer)
        if self._future is None:
            self._response = response
        elif not self._future.done():  # cancelled when the connection was closed
            self._future.set_result(response)

    def outcome(self) -> Any:
        """Return the response for the connection if it is there, else a future of it."""
        if self._response is not None:
            return self._response
        self._future = asyncio.get_running_loop().create_future()
        return self._future
