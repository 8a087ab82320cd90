"""Blocks of producer ids: two minibroker processes and one Apache Kafka 3.9.1 share one ZooKeeper.

Each hands out 10,000 producer ids at the same time. One of the minibroker processes is killed with
SIGKILL twice on the way, and started again. No id may appear twice.
"""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.peers import KafkaPeer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import ZooKeeper

IDS_EACH = 10_000
PIPELINE = 50
INIT_PRODUCER_ID = 22
COORDINATOR_LOAD_IN_PROGRESS = 14

_DRAWER = """
import asyncio, sys
from minibroker.broker.cluster.producer_ids import ProducerIds
from minibroker.broker.cluster.zookeeper import ZooKeeperTree

async def main() -> None:
    connect, broker_id, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tree = ZooKeeperTree(connect, session_timeout_ms=10_000)
    await tree.open()
    ids = ProducerIds(tree, broker_id)
    for number in range(count):
        drawn = ids.next()
        print(drawn if isinstance(drawn, int) else await drawn, flush=number % 100 == 99)
        if number % 100 == 99:
            await asyncio.sleep(0)  # as a broker reads its sockets between requests
    await ids.close()
    await tree.close()

asyncio.run(main())
"""


async def draw_in_process(
    connect: str, broker_id: int, count: int, kill_at: int | None
) -> list[int]:
    """Return ids that a minibroker process reported; SIGKILL it after `kill_at` of them."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _DRAWER, connect, str(broker_id), str(count),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    drawn: list[int] = []
    async for line in process.stdout:
        if line.endswith(b"\n"):
            drawn.append(int(line))
        if len(drawn) == kill_at:
            os.kill(process.pid, signal.SIGKILL)
    code = await process.wait()
    assert code == (0 if kill_at is None else -signal.SIGKILL)
    return drawn


async def draw_with_kills(connect: str, broker_id: int) -> list[int]:
    """Return IDS_EACH ids of one broker id whose process is killed after 2,500 ids, two times."""
    drawn: list[int] = []
    for _ in range(2):
        drawn += await draw_in_process(connect, broker_id, 100 * IDS_EACH, 2_500)
    drawn += await draw_in_process(connect, broker_id, max(IDS_EACH - len(drawn), 1), None)
    return drawn


async def draw_from_kafka(port: int) -> list[int]:
    """Return IDS_EACH ids from a Kafka broker: InitProducerId v0, PIPELINE in flight."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    header = struct.pack(">hhih4s", INIT_PRODUCER_ID, 0, 0, 4, b"test")
    request = header + struct.pack(">hi", -1, 60_000)  # no transactional id
    frame = struct.pack(">i", len(request)) + request
    drawn: list[int] = []
    while len(drawn) < IDS_EACH:
        writer.write(frame * PIPELINE)
        for _ in range(PIPELINE):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            answer = await reader.readexactly(size)
            _, _, error, producer_id, epoch = struct.unpack(">iihqh", answer)
            if error == 0:
                assert epoch == 0
                drawn.append(producer_id)
            else:
                assert error == COORDINATOR_LOAD_IN_PROGRESS
    writer.close()
    await writer.wait_closed()
    return drawn


@pytest.mark.java
@pytest.mark.slow
async def test_no_id_twice_over_three_brokers_and_two_kills(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    connect = f"{zookeeper.connect}/producer-ids"
    kafka = KafkaPeer("3.9.1", tmp_path / "kafka", zookeeper=connect)
    await asyncio.to_thread(kafka.start)
    try:
        killed, steady, kafkas = await asyncio.gather(
            draw_with_kills(connect, 1),
            draw_in_process(connect, 2, IDS_EACH, None),
            draw_from_kafka(kafka.port),
        )
    finally:
        await asyncio.to_thread(kafka.kill)
    assert min(len(killed), len(steady), len(kafkas)) >= IDS_EACH
    everything = killed + steady + kafkas
    assert len(set(everything)) == len(everything)
    # They did share: each one's ids come from blocks between those of the others.
    assert len({producer_id // 1000 for producer_id in everything}) >= 30
