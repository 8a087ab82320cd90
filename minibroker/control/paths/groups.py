"""Paths of groups."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.control import shapes, views
from minibroker.control.bodies import answer
from minibroker.control.group_details import coordinator_of, group_in_full
from minibroker.control.group_shapes import (
    GroupDetail,
    GroupName,
    OffsetReset,
    OffsetsQuery,
    ResetOffset,
)
from minibroker.control.messages import HttpError, Response, in_time
from minibroker.control.operations import NOT_RUNNING, OF_WAITS, ControlOperation, list_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.app import Broker
    from minibroker.broker.groups.offsets import CommittedOffset
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope
    from minibroker.rig.inner_client import InnerClient

LOADED_S: Final = 10.0
"""Longest wait until a new group has a coordinator."""
RETRY_S: Final = 0.05
_PASSING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors for which a client asks again."""


async def groups(scope: ControlScope, _: ControlCall) -> Response:
    """Return the groups."""
    return Response(HTTPStatus.OK, await scope.slices.join(views.groups_of(scope.brokers)))


async def wait_until_ready(scope: ControlScope, call: ControlCall) -> Response:
    """Wait until a group is ready."""
    query: shapes.ReadyQuery = call.query
    waits = scope.nodes.waits.for_group(call.part, query.members, query.timeout_ms / 1000)
    members = await scope.waiting.result(call.request, waits)
    return answer([views.member_of(member) for member in members])


async def wait_until_read(scope: ControlScope, call: ControlCall) -> Response:
    """Wait until a group has read everything."""
    query: shapes.ReadQuery = call.query
    waits = scope.nodes.waits.until_read(
        call.part, fetched=query.fetched, timeout_s=query.timeout_ms / 1000
    )
    return answer(views.offsets_of(await scope.waiting.result(call.request, waits)))


async def show_group(scope: ControlScope, call: ControlCall) -> Response:
    """Return a group in full."""
    brokers = scope.brokers
    broker, shard = coordinator_of(brokers, call.part)
    pieces = group_in_full(brokers, broker, shard, call.part)
    return Response(HTTPStatus.OK, await scope.slices.join(pieces))


async def delete_group(scope: ControlScope, call: ControlCall) -> Response:
    """Delete a group."""
    from minibroker.control import group_changes  # noqa: PLC0415  messages that few starts need

    broker, _ = coordinator_of(scope.brokers, call.part)
    await group_changes.delete_group(scope.client(broker), call.part)
    return answer(GroupName(group=call.part))


async def reset_offsets(scope: ControlScope, call: ControlCall) -> Response:
    """Reset offsets of a group, which need not exist yet."""
    from minibroker.control import group_changes  # noqa: PLC0415  as above

    reset: OffsetReset = call.body
    until_s = monotonic() + LOADED_S
    while True:
        try:
            client, offsets = await _coordinator(scope, call.part)
            places = await group_changes.planned_offsets(scope.nodes, reset, offsets)
            group_changes.check_some(places, call.part)
            if not reset.dry_run:
                await group_changes.commit_offsets(client, call.part, places)
            return answer(places)
        except KafkaError as error:
            if error.code not in _PASSING or monotonic() >= until_s:
                raise
        await asyncio.sleep(RETRY_S)  # as a client does: the topic of offsets is new


async def _coordinator(
    scope: ControlScope, group_id: str
) -> tuple[InnerClient, Mapping[str, Mapping[int, CommittedOffset]]]:
    """Return a client of the group's coordinator, and the offsets of the group; none of a group
    that does not exist yet.
    """
    from minibroker.kafka.protocol.api_keys import FIND_COORDINATOR  # noqa: PLC0415  as above

    try:
        broker, shard = coordinator_of(scope.brokers, group_id)
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        await scope.client().ask(FIND_COORDINATOR, coordinator_keys=[group_id])  # makes its topic
        return scope.client(await _when_loaded(scope, group_id)), {}
    return scope.client(broker), shard.offsets.of_group(group_id)


async def _when_loaded(scope: ControlScope, group_id: str) -> Broker:
    """Return the broker that coordinates a new group. Raises HttpError(504)."""

    def brokers() -> list[Broker]:
        return [broker for broker in scope.brokers if _coordinates(broker, group_id)]

    await in_time(
        scope.nodes.until(lambda: bool(brokers()), "the group has a coordinator", LOADED_S)
    )
    return brokers()[0]


def _coordinates(broker: Broker, group_id: str) -> bool:
    if OFFSETS_TOPIC not in broker.cluster.image.topics:
        return False
    try:
        broker.services.groups.shard(group_id)
    except KafkaError:
        return False
    return True


async def delete_offsets(scope: ControlScope, call: ControlCall) -> Response:
    """Delete offsets of a group."""
    from minibroker.control import group_changes  # noqa: PLC0415  as above

    query: OffsetsQuery = call.query
    broker, shard = coordinator_of(scope.brokers, call.part)
    offsets = shard.offsets.of_group(call.part).get(query.topic, {})
    indexes = [index for index in sorted(offsets) if query.partition in (None, index)]
    if not indexes:
        raise HttpError(HTTPStatus.NOT_FOUND, f"group {call.part!r:.300} has no such offset")
    deleted = [(query.topic, index, offsets[index].offset) for index in indexes]
    await group_changes.delete_offsets(scope.client(broker), call.part, query, indexes)
    return answer(
        [
            shapes.CommittedView(topic=topic, partition=index, offset=offset)
            for topic, index, offset in deleted
        ]
    )


OPERATIONS: Final = (
    ControlOperation(
        "groups",
        "GET",
        "/groups",
        "Groups of this coordinator, with their committed offsets",
        groups,
        list_of(shapes.GroupView),
        failures=NOT_RUNNING,
    ),
    ControlOperation(
        "wait_until_ready",
        "GET",
        "/groups/{group}/ready",
        "Wait until a group is stable, each member has its partitions and has fetched from them",
        wait_until_ready,
        list_of(shapes.MemberView),
        query=shapes.ReadyQuery,
        failures=OF_WAITS,
    ),
    ControlOperation(
        "wait_until_read",
        "GET",
        "/groups/{group}/read",
        "Wait until a group has read every record of its topics",
        wait_until_read,
        list_of(shapes.CommittedView),
        query=shapes.ReadQuery,
        failures=OF_WAITS,
    ),
    ControlOperation(
        "show_group",
        "GET",
        "/groups/{group}",
        "One group with its members, their partitions, and the lag of each offset",
        show_group,
        GroupDetail,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
    ControlOperation(
        "delete_group",
        "DELETE",
        "/groups/{group}",
        "Delete a group without members, with its offsets",
        delete_group,
        GroupName,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
    ControlOperation(
        "reset_offsets",
        "POST",
        "/groups/{group}/offsets",
        "Set the offsets of a group without members",
        reset_offsets,
        list_of(ResetOffset),
        body=OffsetReset,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            *NOT_RUNNING,
            HTTPStatus.GATEWAY_TIMEOUT,
        ),
    ),
    ControlOperation(
        "delete_offsets",
        "DELETE",
        "/groups/{group}/offsets",
        "Forget offsets of a group",
        delete_offsets,
        list_of(shapes.CommittedView),
        query=OffsetsQuery,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
)
