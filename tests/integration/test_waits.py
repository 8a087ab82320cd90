"""A consumer that starts with `auto.offset.reset=latest` reads what is written after the wait.

`make waits` has 1,000 runs of each client; the suite has fewer.
"""

from __future__ import annotations

import os
import queue
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Broker
from tests.support.latest_readers import readers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.latest_readers import Start

RUNS = int(os.environ.get("MINIBROKER_WAITS", "20"))
PARTITIONS = 4
LANES = 6
WAIT_S = 60.0
HEARTBEATS = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
}
CLIENTS = [
    "librdkafka",
    "librdkafka/consumer",
    "aiokafka",
    "kafka-python",
    pytest.param("java", marks=pytest.mark.java),
    pytest.param("java/consumer", marks=pytest.mark.java),
]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics=[f"orders:{PARTITIONS}"], config=HEARTBEATS) as broker:
        yield broker


def read_once(broker: Broker, start: Start, run: int) -> None:
    """Start one or two members, and write a record to each partition after the wait: all are read.

    Every fourth run has static members.
    """
    group, count, is_static = f"group-{run}", 1 + run % 2, run % 4 == 3
    values: queue.SimpleQueue[str] = queue.SimpleQueue()
    ends = [
        start(group, values, f"instance-{number}" if is_static else None) for number in range(count)
    ]
    broker.wait_for_group(group, members=count, timeout_s=WAIT_S)
    partition_of = {f"{run}-{index}": index for index in range(PARTITIONS)}
    for value, index in partition_of.items():
        broker.produce("orders", value, partition=index)
    missing = set(partition_of)
    try:
        while missing:
            missing.discard(values.get(timeout=WAIT_S))  # those of other runs come, too
    except queue.Empty:
        pytest.fail(
            f"run {run}: {sorted(missing)} were not read by {broker.members(group)}, committed"
            f" {broker.committed(group)}\n{broker.report(0, 8)}"
        )
    for index in range(PARTITIONS):
        broker.produce("orders", f"end {group}", partition=index)
    for end in ends:
        end()


@pytest.mark.timeout(0 if RUNS > 100 else 300)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_record_behind_the_wait_is_read(broker: Broker, client: str) -> None:
    """Several runs at a time: their members have one client.id and read the same partitions."""
    with readers(client, broker.bootstrap, "orders") as start, ThreadPoolExecutor(LANES) as lanes:
        for _ in lanes.map(lambda run: read_once(broker, start, run), range(RUNS)):
            pass
