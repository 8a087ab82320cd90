"""Offsets of consumers of the 0.8 kind, one node each: OffsetCommit and OffsetFetch version 0.

    /consumers/<group>/offsets/<topic>/<partition>   the offset, as decimal digits

Source: Kafka 3.9 ZkData.ConsumerOffset, KafkaZkClient.setOrCreateConsumerOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.tree import NodeExists, NoNode, check_path
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from minibroker.broker.cluster.tree import Tree


async def set_offset(tree: Tree, group_id: str, topic: str, partition: int, offset: int) -> None:
    """Write one offset, whatever was there.

    Raises CoordinationError, ValueError for a group id that cannot be in a path.
    """
    path = _checked_path(group_id, topic, partition)
    data = str(offset).encode("ascii")
    try:
        await tree.set(path, data)
    except NoNode:
        try:
            await tree.create(path, data, make_parents=True)
        except NodeExists:
            await tree.set(path, data)


async def get_offset(tree: Tree, group_id: str, topic: str, partition: int) -> int | None:
    """Return one offset, None if there is none.

    Raises CoordinationError, ValueError for a group id that cannot be in a path.
    """
    path = _checked_path(group_id, topic, partition)
    try:
        data, _ = await tree.get(path)
    except NoNode:
        return None
    if not data:
        return None
    try:
        return int(data)
    except ValueError as error:
        raise CoordinationError(f"{path} has {data!r}, expected an offset") from error


def _checked_path(group_id: str, topic: str, partition: int) -> str:
    path = paths.consumer_offset(group_id, topic, partition)
    check_path(path)
    return path
