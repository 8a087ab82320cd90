"""Topics, groups and requests as the control API shows them: plain values for JSON.

Long lists are gathered in slices, between which the broker serves.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from minibroker.control.http import HttpError

if TYPE_CHECKING:
    from minibroker.app import Broker
    from minibroker.cluster.image import TopicImage
    from minibroker.groups.shard import GroupShard
    from minibroker.testing.node import Node

SLICE: Final = 200
REQUESTS_SHOWN: Final = 100
_NO_PARTITION: Final = {"log_start_offset": -1, "high_watermark": -1, "size_bytes": 0}


async def topics_of(broker: Broker) -> list[dict[str, Any]]:
    """Every topic with its partitions, by name; offsets are -1 where another broker leads."""
    shown = []
    count = 0
    for topic in sorted(broker.cluster.image.topics.values(), key=lambda one: one.name):
        shown.append(_topic(broker, topic))
        count += len(topic.partitions)
        if count >= SLICE:
            count = 0
            await asyncio.sleep(0)
    return shown


def _topic(broker: Broker, topic: TopicImage) -> dict[str, Any]:
    partitions = []
    for index, state in enumerate(topic.partitions):
        partition = broker.partitions.find(topic.name, index)
        offsets: dict[str, int] = _NO_PARTITION
        if partition is not None:
            offsets = {
                "log_start_offset": partition.log_start_offset,
                "high_watermark": partition.high_watermark,
                "size_bytes": partition.log.size_bytes,
            }
        partitions.append({"partition": index, "leader": state.leader, **offsets})
    return {"name": topic.name, "internal": topic.is_internal, "partitions": partitions}


async def groups_of(broker: Broker) -> list[dict[str, Any]]:
    """Every group coordinated here with what it committed, by name."""
    shown = []
    for shard in broker.services.groups.active_shards():
        for index, group_id in enumerate(sorted({*shard.groups, *shard.offsets.group_ids()})):
            shown.append(_group(shard, group_id))
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
    return sorted(shown, key=lambda one: one["group"])


def _group(shard: GroupShard, group_id: str) -> dict[str, Any]:
    group = shard.groups.get(group_id)
    committed = [
        {"topic": topic, "partition": partition, "offset": one.offset}
        for topic, partitions in sorted(shard.offsets.of_group(group_id).items())
        for partition, one in sorted(partitions.items())
    ]
    return {
        "group": group_id,
        "state": group.state_name if group is not None else "Empty",
        "members": group.member_count if group is not None else 0,
        "committed": committed,
    }


def requests_of(node: Node, query: dict[str, str]) -> bytes:
    """The last requests, oldest first, a JSON object per line. Raises HttpError(400).

    `limit`: so many at most; `api` and `client_id`: only these.
    """
    unknown = sorted(set(query) - {"limit", "api", "client_id"})
    if unknown:
        raise HttpError(
            HTTPStatus.BAD_REQUEST,
            f"query {unknown[0]!r} is not known; expected limit, api or client_id",
        )
    limit = query.get("limit", str(REQUESTS_SHOWN))
    if not (limit.isdecimal() and len(limit) < 10):
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"query 'limit' is {limit!r}, expected a number from 0 up"
        )
    fitting = (
        one
        for one in reversed(node.seen)
        if query.get("api") in (None, one.api) and query.get("client_id") in (None, one.client_id)
    )
    last = list(islice(fitting, int(limit)))[::-1]
    return b"".join(json.dumps(one._asdict()).encode() + b"\n" for one in last)
