"""Topics, groups and requests as the control API shows them: JSON, piece by piece.

Lists of partitions and commits may be long; `slices` lets the broker serve between two pieces.
"""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.control.messages import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.broker.app import Broker
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.rig.node import Node

REQUESTS_SHOWN: Final = 100
_NO_PARTITION: Final = {"log_start_offset": -1, "high_watermark": -1, "size_bytes": 0}


def topics_of(broker: Broker) -> Iterator[str]:
    """Yield every topic with its partitions, by name; offsets are -1 if another broker leads."""
    topics = broker.cluster.image.topics
    images = (topics.get(name) for name in sorted(topics))
    yield from _array(_topic(broker, topic) for topic in images if topic is not None)
    yield "\n"


def _topic(broker: Broker, topic: TopicImage) -> Iterator[str]:
    yield f'{{"name": {dumps(topic.name)}, "internal": {dumps(topic.is_internal)}, "partitions": '
    yield from _array([_partition(broker, topic, index)] for index in range(len(topic.partitions)))
    yield "}"


def _partition(broker: Broker, topic: TopicImage, index: int) -> str:
    partition = broker.partitions.find(topic.name, index)
    offsets: dict[str, int] = _NO_PARTITION
    if partition is not None:
        offsets = {
            "log_start_offset": partition.log_start_offset,
            "high_watermark": partition.high_watermark,
            "size_bytes": partition.log.size_bytes,
        }
    return dumps({"partition": index, "leader": topic.partitions[index].leader, **offsets})


def cluster_of(broker: Broker) -> dict[str, Any]:
    """Return the cluster as this broker knows it, and the partitions that lack a replica."""
    image = broker.cluster.image
    return {
        "broker": broker.config.broker_id,
        "controller": image.controller_id,
        "controller_epoch": image.controller_epoch,
        "metadata_age_ms": broker.cluster.requests.metadata_age_ms(),
        "brokers": [
            {"id": info.id, "address": "{}:{}".format(*info.endpoints[0][1:3])}
            for _, info in sorted(image.brokers.items())
            if info.endpoints
        ],
        "not_in_sync": [
            {"topic": name, "partition": index, "in_sync": sorted(partition.isr)}
            for name, topic in sorted(image.topics.items())
            for index, partition in enumerate(topic.partitions)
            if set(partition.isr) != set(partition.replicas)
        ],
    }


def groups_of(broker: Broker) -> Iterator[str]:
    """Yield every group of this coordinator with its committed offsets, by name."""
    is_used = OFFSETS_TOPIC in broker.cluster.image.topics
    shards = {
        group_id: shard
        for shard in (broker.services.groups.active_shards() if is_used else ())
        for group_id in (*shard.groups, *shard.offsets.group_ids())
    }
    yield from _array(_group(shards[group_id], group_id) for group_id in sorted(shards))
    yield "\n"


def _group(shard: GroupShard, group_id: str) -> Iterator[str]:
    group = shard.groups.get(group_id)
    state = group.state_name if group is not None else "Empty"
    members = group.member_count if group is not None else 0
    yield f'{{"group": {dumps(group_id)}, "state": {dumps(state)}, "members": {members}, '
    yield '"committed": '
    yield from _array(
        [dumps({"topic": topic, "partition": partition, "offset": committed.offset})]
        for topic, partitions in sorted(shard.offsets.of_group(group_id).items())
        for partition, committed in sorted(partitions.items())
    )
    yield "}"


def _array(items: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a JSON array of items that come in pieces themselves."""
    yield "["
    for number, item in enumerate(items):
        if number:
            yield ", "
        yield from item
    yield "]"


def requests_of(node: Node, query: dict[str, str]) -> Iterator[str]:
    """Yield the last requests, oldest first, as a JSON object per line. Raises HttpError(400).
    `limit` is the most that are shown; `api` and `client_id` select requests.
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
        request
        for request in reversed(node.seen)
        if query.get("api") in (None, request.api)
        and query.get("client_id") in (None, request.client_id)
    )
    last = list(islice(fitting, int(limit)))[::-1]
    return (dumps(request._asdict()) + "\n" for request in last)
