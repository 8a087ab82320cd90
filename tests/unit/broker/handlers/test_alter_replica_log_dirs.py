"""AlterReplicaLogDirs over the wire, seen through DescribeLogDirs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from minibroker.kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.support.in_process import InProcessBroker, RawClient, batch_of
from tests.support.record_requests import asking, first, offsets_in, part, produce

if TYPE_CHECKING:
    from pathlib import Path


def to(path: str, *names: str) -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=[0]) for name in names]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])


async def homes(client: RawClient) -> dict[str, list[str]]:
    """Directory → topics in it, a copy that grows there with a `+`."""
    results = (await client.call(DescribeLogDirsRequest(topics=None), 4)).results
    return {
        result.log_dir: [
            topic.name + "+" * partition.is_future_key
            for topic in result.topics
            for partition in topic.partitions
        ]
        for result in results
    }


@pytest.mark.parametrize("version", range(3))
async def test_a_partition_moves_and_its_readers_do_not_notice(
    tmp_path: Path, version: int
) -> None:
    paths = [str(tmp_path / name) for name in ("a", "b")]
    async with InProcessBroker(tmp_path, {"log.dirs": ",".join(paths)}) as running:
        await running.create_topic("t")
        async with await running.connect() as client:
            await client.call(produce(batch_of(b"before")), 9)
            assert await homes(client) == {paths[0]: ["t"], paths[1]: []}
            answer = await client.call(to(paths[1], "t", "unknown"), version)
            assert {
                topic.topic_name: topic.partitions[0].error_code for topic in answer.results
            } == {"t": 0, "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            async with asyncio.timeout(60):
                while (now := await homes(client)) != {paths[0]: [], paths[1]: ["t"]}:
                    assert now == {paths[0]: ["t"], paths[1]: ["t+"]}
            await client.call(produce(batch_of(b"after")), 9)
            partition = first(await client.call(asking(part()), 11))
            assert offsets_in(partition.records) == [0, 1]
