"""Groups that are deleted, and whose offsets are reset or deleted, as by an admin client."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.slices import TimeSlice
from minibroker.control.group_shapes import ResetOffset
from minibroker.control.messages import HttpError
from minibroker.control.records import all_partitions, moment_ms, resident
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.api_keys import DELETE_GROUPS, OFFSET_COMMIT, OFFSET_DELETE
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.broker.groups.offsets import CommittedOffset
    from minibroker.broker.partitions.partition import Partition
    from minibroker.control.group_shapes import OffsetReset, OffsetsQuery
    from minibroker.rig.inner_client import InnerClient
    from minibroker.rig.nodes import Nodes

COMMITTED_AT_ONCE: Final = 100
"""Offsets of one request: more would hold the loop for too long."""
_BY_NAME: Final = 9
"""The last version of OffsetCommit that names topics."""
_STATES: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: "it has members: stop its consumers first",
    ErrorCode.NON_EMPTY_GROUP: "it has members: stop its consumers first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "its members read the topic: stop its consumers first",
}


async def delete_group(client: InnerClient, group_id: str) -> None:
    """Delete a group with its offsets. Raises KafkaError."""
    response = await client.ask(DELETE_GROUPS, groups_names=[group_id])
    (result,) = response.results
    _check(result.error_code, group_id)


async def delete_offsets(
    client: InnerClient, group_id: str, query: OffsetsQuery, partitions: Iterable[int]
) -> None:
    """Delete committed offsets of a topic. Raises KafkaError."""
    topic = OffsetDeleteRequestTopic(
        name=query.topic,
        partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in partitions],
    )
    response = await client.ask(OFFSET_DELETE, group_id=group_id, topics=[topic])
    _check(response.error_code, group_id)
    for result in response.topics:
        for partition in result.partitions:
            _check(partition.error_code, group_id)


def _check(code: int, group_id: str) -> None:
    """Raise KafkaError for an error code that is not 0, with what to do about it."""
    if code:
        error = ErrorCode(code)
        state = _STATES.get(error)
        raise KafkaError(error, f"group {group_id!r:.300}: {state}" if state else None)


async def planned_offsets(
    nodes: Nodes, reset: OffsetReset, offsets: Mapping[str, Mapping[int, CommittedOffset]]
) -> list[ResetOffset]:
    """Return the offsets that a reset sets, in place of those that the group has. Raises
    HttpError.
    """
    now_ms = nodes.all[0].clock.now_ms()
    time_ms = moment_ms("time", _field(reset, "time"), now_ms) if reset.to == "time" else 0
    if reset.partition is not None and reset.topic is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "field 'partition' needs 'topic'")
    places = []
    turn = TimeSlice()
    for topic in sorted(offsets) if reset.topic is None else [reset.topic]:
        committed = offsets.get(topic, {})
        for partition in await all_partitions(nodes, topic, reset.partition):
            old = committed.get(partition.index)
            if reset.topic is None and old is None:
                continue
            old_offset = None if old is None else old.offset
            new_offset = await _place(reset, partition, old_offset, time_ms)
            start, end = partition.log_start_offset, partition.high_watermark
            places.append(
                ResetOffset(
                    topic=topic,
                    partition=partition.index,
                    old_offset=old_offset,
                    new_offset=min(max(new_offset, start), end),
                )
            )
            if turn.is_over:
                await turn.pause()
    return places


async def _place(
    reset: OffsetReset, partition: Partition, old_offset: int | None, time_ms: int
) -> int:
    """Return the new offset of a partition; it may be outside of the partition."""
    if reset.to == "earliest":
        return partition.log_start_offset
    if reset.to == "latest":
        return partition.high_watermark
    if reset.to == "offset":
        return int(_field(reset, "offset"))
    if reset.to == "shift":
        start = partition.log_start_offset if old_offset is None else old_offset
        return start + int(_field(reset, "shift"))
    hit = await resident(
        lambda is_resident: partition.offset_for_timestamp(time_ms, resident_only=is_resident)
    )
    return partition.high_watermark if hit is None else hit.offset


def _field(reset: OffsetReset, name: str) -> Any:
    value = getattr(reset, name)
    if value is None:
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"field {name!r} is missing, as 'to' is {reset.to!r}"
        )
    return value


async def commit_offsets(client: InnerClient, group_id: str, places: list[ResetOffset]) -> None:
    """Commit offsets for a group without members. Raises KafkaError."""
    for start in range(0, len(places), COMMITTED_AT_ONCE):
        await _commit(client, group_id, places[start : start + COMMITTED_AT_ONCE])
        await asyncio.sleep(0)


async def _commit(client: InnerClient, group_id: str, places: list[ResetOffset]) -> None:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=place.partition, committed_offset=place.new_offset
            )
        )
    response = await client.ask(
        OFFSET_COMMIT,
        _BY_NAME,
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
    for topic in response.topics:
        for result in topic.partitions:
            _check(result.error_code, group_id)


def check_some(places: list[ResetOffset], group_id: str) -> None:
    """Raise HttpError(404) for a reset of no offset."""
    if not places:
        raise HttpError(
            HTTPStatus.NOT_FOUND,
            f"group {group_id!r:.300} has no offset: name a topic to give it some",
        )
