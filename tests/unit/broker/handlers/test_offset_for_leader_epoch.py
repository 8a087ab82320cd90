"""OffsetForLeaderEpoch: the current epoch. Ends of epochs are in tests/compat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


async def ask(
    client: RawClient,
    epoch: int,
    version: int = 2,
    *,
    name: str = "t",
    index: int = 0,
    current: int = -1,
) -> Any:
    part = OffsetForLeaderPartition(
        partition=index, leader_epoch=epoch, current_leader_epoch=current
    )
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=name, partitions=[part])]
    )
    return (await client.call(request, version)).topics[0].partitions[0]


async def test_the_current_epoch_is_checked(running: InProcessBroker, client: RawClient) -> None:
    assert (await ask(client, 0, current=4)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    partition = running.partitions.get("t", 0)
    partition.take_role(partition.role._replace(epoch=5))
    assert (await ask(client, 0, current=4)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await ask(client, 0, current=5)).error_code == 0
