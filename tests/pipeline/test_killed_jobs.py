"""Archive and replay are killed anywhere: afterwards every record is there exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.pipeline import archive
from minibroker.pipeline.archived_files import all_rows
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.pipeline.killing import (
    BATCH_ROWS,
    COMMAND_LINE,
    KILLS,
    SECONDS_A_KILL,
    Ends,
    Job,
    finish,
    kill_anywhere,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.broker import Minibroker

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300 + SECONDS_A_KILL * KILLS),
]

PARTITIONS = 3
FILES_A_BATCH = PARTITIONS
BATCHES_A_KILL = 6


class Work:
    """Values in the topic `source`, unique, and where they went."""

    def __init__(self, broker: Minibroker) -> None:
        self._address = broker.address
        self.written: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        topics.create(broker.address, "source", PARTITIONS)

    def produce(self, number: int, rows: int = BATCHES_A_KILL * BATCH_ROWS) -> None:
        """Some more; `number` is of the call."""
        producer = Producer({"bootstrap.servers": self._address, "linger.ms": 5})
        for row in range(rows):
            value = b"%d-%d" % (number, row)
            self.written[row % PARTITIONS].append(value)
            producer.produce("source", value, b"k", partition=row % PARTITIONS)
        assert producer.flush(60) == 0


def test_archive_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path
) -> None:
    """It follows a topic that grows, and a last run copies the rest."""
    broker = new_broker()
    work = Work(broker)
    directory = tmp_path / "archive"
    command = ["minibroker", "pipeline", "archive", "--topic", "source", "--to", str(directory)]
    command += ["--bootstrap", broker.address, "--batch-rows", str(BATCH_ROWS), *COMMAND_LINE]
    job = Job([*command, "--follow"], tmp_path / "job.log")
    last = Job(command, tmp_path / "job.log")
    try:
        killed = kill_anywhere(
            job,
            broker,
            lambda: len(list(directory.rglob("part-*"))),
            steps=2 * FILES_A_BATCH,
            kinds=("broker", "worker"),
            before=work.produce,
        )
        job.kill_driver()
        last.start()
        finish(last)
    finally:
        job.close()
        last.close()

    rows = all_rows(spark, str(directory), "parquet").orderBy("partition", "offset")
    found: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
    for row in rows.select("partition", "offset", "value").collect():
        found[row.partition].append((row.offset, bytes(row.value)))
    assert found == [list(enumerate(values)) for values in work.written], (killed, job.starts)
    assert sum(killed.values()) == KILLS


def test_replay_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path
) -> None:
    """It has more to write than it can between all kills; a last run writes the rest at once."""
    broker = new_broker()
    work = Work(broker)
    work.produce(0, rows=BATCHES_A_KILL * BATCH_ROWS * (KILLS + 1))
    directory = tmp_path / "archive"
    archive("source", to=directory, bootstrap=broker.address, spark=spark)
    topics.create(broker.address, "target", PARTITIONS)
    command = ["minibroker", "pipeline", "replay", "--from", str(directory), "--to-topic", "target"]
    command += ["--keep-partitions", "--bootstrap", broker.address, *COMMAND_LINE]
    job = Job([*command, "--batch-rows", str(BATCH_ROWS)], tmp_path / "job.log")
    last = Job(command, tmp_path / "job.log")
    ends = Ends(broker.address, "target", PARTITIONS)
    try:
        killed = kill_anywhere(job, broker, ends, steps=BATCH_ROWS, kinds=("driver", "broker"))
        job.kill_driver()
        last.start()
        finish(last)
    finally:
        job.close()
        last.close()
        ends.close()

    found = records(broker.address, "target")
    assert {number: [one.value for one in part] for number, part in found.items()} == dict(
        enumerate(work.written)
    ), (killed, job.starts)
    assert sum(killed.values()) == KILLS
