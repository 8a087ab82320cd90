"""The sink is killed at random moments: afterwards every record is there exactly once, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.pipeline import topics
from tests.pipeline.batch_moments import BATCH_OPEN, WRITTEN, TopicMoments
from tests.pipeline.committed import records
from tests.pipeline.copying import copy
from tests.pipeline.killing import BATCH_ROWS, KILLS, TIMEOUT, Ends, Job, finish, kill_anywhere

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.broker import Minibroker

PARTITIONS = 3
ROWS_A_KILL = 600


@pytest.mark.java
@pytest.mark.slow
@TIMEOUT
def test_the_sink_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path
) -> None:
    broker = new_broker()
    topics.create(broker.address, "source", PARTITIONS)
    topics.create(broker.address, "target", PARTITIONS)
    expected: list[list[bytes]] = [[] for _ in range(PARTITIONS)]

    def produce(kill: int) -> None:
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5})
        for number in range(ROWS_A_KILL):
            value = b"%d-%d" % (kill, number)
            expected[number % PARTITIONS].append(value)
            producer.produce("source", value, partition=number % PARTITIONS)
        assert producer.flush(180) == 0

    places = ("source", "target", str(tmp_path / "checkpoint"))
    job = Job(["tests.pipeline.copying", broker.address, *places], tmp_path / "job.log")
    ends = Ends(broker.address, "target", PARTITIONS)
    try:
        killed = kill_anywhere(
            job,
            broker,
            ends,
            TopicMoments(tmp_path / "checkpoint", broker, PARTITIONS),
            steps=2 * BATCH_ROWS,
            kinds=("broker", "worker"),
            moments=(BATCH_OPEN, WRITTEN),
            on_try=produce,
        )
        job.kill_driver()
        finish(lambda: copy(spark, broker.address, *places, follows=False))
    finally:
        job.close()
        ends.close()

    copies = records(broker.address, "target")
    assert {number: [record.value for record in part] for number, part in copies.items()} == dict(
        enumerate(expected)
    ), (killed, job.starts)
    assert len(killed) == KILLS
