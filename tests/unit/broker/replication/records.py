"""Records of topic `t` on a pair of brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.partitions.partition import LOG_END
from tests.support.in_process import batch_of
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import Claim

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition
    from tests.unit.broker.replication.conftest import Pair


def append(pair: Pair, *values: bytes, broker_id: int = 0) -> None:
    leader = pair.by_id[broker_id].partitions
    leader.get("t", 0).append(memoryview(batch_of(*values)), 1, pair.clock.now_ms(), Claim())
    leader.commit()


def content(partition: Partition) -> bytes:
    start = partition.log_start_offset
    content = partition.read(start, 1 << 20, isolation_level=LOG_END)
    return bytes(content.records)


async def until_equal(pair: Pair) -> None:
    """Wait until both replicas have the same bytes and the same high watermark."""
    await eventually(
        lambda: (
            pair.on(0).high_watermark == pair.on(1).high_watermark == pair.on(0).log_end_offset
            and content(pair.on(0)) == content(pair.on(1))
        )
    )
