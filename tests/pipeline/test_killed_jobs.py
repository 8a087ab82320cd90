"""Jobs are killed at random moments: afterwards every record is there, or counts, exactly once."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from confluent_kafka import Producer
from pyarrow import dataset

from minibroker.pipeline import archive, copy, replay, rollup
from minibroker.pipeline.tables.archived_files import all_rows
from tests.pipeline import topics
from tests.pipeline.batch_moments import (
    BATCH_OPEN,
    MOMENTS,
    PROVISIONAL,
    WRITTEN,
    ArchiveMoments,
    RollupMoments,
    TopicMoments,
    paths_now,
)
from tests.pipeline.committed import commit, offsets, records, rest
from tests.pipeline.killing import (
    BATCH_ROWS,
    COMMAND_LINE,
    KILLS,
    TIMEOUT,
    Ends,
    Job,
    Kill,
    finish,
    kill_anywhere,
)
from tests.pipeline.table_readers import COLUMNS, READERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.broker import Minibroker

pytestmark = [pytest.mark.java, pytest.mark.slow, TIMEOUT]

PARTITIONS = 3
FILES_A_BATCH = PARTITIONS
BATCHES_A_KILL = 6
MASKS = ["", "value=hash, key=hash"] if KILLS > 2 else [""]
"""Masks of a replay: none, and with more kills than usual also a hash of all."""
FILES_OF_A_ROLLUP = 40
MINUTES_A_RUN = 48
NEW_MINUTES_A_RUN = 40
"""New minutes of a run; the other minutes were there before, and their windows grow."""
RECORDS_A_MINUTE = 10
BAD_OF_A_MINUTE = 3
"""The number of the record of each minute that is no JSON."""
OPEN_MINUTES = 11
"""Minutes that are open in the end: the watermark is ten minutes behind the last one."""
NOON_MS = 1_795_262_400_000


class Work:
    """Unique values in the topic `source`, and their destination."""

    def __init__(self, broker: Minibroker) -> None:
        self._address = broker.address
        self.written: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        topics.create(broker.address, "source", PARTITIONS)

    def produce(self, number: int, rows: int = BATCHES_A_KILL * BATCH_ROWS) -> None:
        """Produce more values; `number` is the number of the call."""
        producer = Producer({"bootstrap.servers": self._address, "linger.ms": 5})
        for row in range(rows):
            value = b"%d-%d" % (number, row)
            self.written[row % PARTITIONS].append(value)
            producer.produce("source", value, b"k", partition=row % PARTITIONS)
        assert producer.flush(180) == 0


@pytest.mark.parametrize("file_format", READERS)
def test_archive_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path, file_format: str
) -> None:
    """No reader sees a record twice, at any moment; in the end each reader sees every record."""
    broker = new_broker()
    work = Work(broker)
    directory = tmp_path / "archive"

    def look_and_produce(number: int) -> None:
        for reader in READERS[file_format] if number else ():
            rows = reader(directory)
            assert len(set(rows)) == len(rows), (reader, number)
        work.produce(number)

    killed = kill_archive(spark, broker, directory, file_format, look_and_produce)
    expected = [
        ("source", partition, offset, value)
        for partition, values in enumerate(work.written)
        for offset, value in enumerate(values)
    ]
    for reader in READERS[file_format]:
        assert reader(directory) == expected, (reader, killed)
    rows = all_rows(spark, str(directory), file_format).select(*COLUMNS).collect()
    assert sorted(tuple(row) for row in rows) == expected, killed
    assert len(killed) == KILLS


def kill_archive(
    spark: SparkSession,
    broker: Minibroker,
    directory: Path,
    file_format: str,
    on_try: Callable[[int], None],
) -> list[Kill]:
    """Kill an archive that follows a growing topic, then let a last run end; return the kills."""
    command = ["minibroker", "pipeline", "archive", "--topic", "source", "--to", str(directory)]
    command += ["--format", file_format, "--batch-rows", str(BATCH_ROWS)]
    command += ["--bootstrap", broker.address, *COMMAND_LINE]
    job = Job([*command, "--follow", "--every", "1ms"], directory.parent / "job.log")
    try:
        killed = kill_anywhere(
            job,
            broker,
            lambda: len(list(paths_now(directory, "**/*.parquet"))),
            ArchiveMoments(directory, file_format),
            steps=2 * FILES_A_BATCH,
            kinds=("broker", "worker"),
            on_try=on_try,
        )
        job.kill_driver()
        common: dict[str, Any] = {"bootstrap": broker.address, "spark": spark}
        finish(lambda: archive("source", to=directory, format=file_format, **common))
    finally:
        job.close()
    return killed


@pytest.mark.parametrize("mask", MASKS)
def test_replay_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path, mask: str
) -> None:
    """The job has too much to write between the kills; a last run writes the rest at once.

    Masked, all runs have the secret of the first one, and a repeated batch has the same rows.
    """
    broker = new_broker()
    work = Work(broker)
    work.produce(0, rows=BATCHES_A_KILL * BATCH_ROWS * (KILLS + 1))
    directory = tmp_path / "archive"
    place = directory / "_minibroker" / "replays" / "target"
    archive("source", to=directory, bootstrap=broker.address, spark=spark)
    topics.create(broker.address, "target", PARTITIONS)
    command = ["minibroker", "pipeline", "replay", "--from", str(directory), "--to-topic", "target"]
    command += ["--keep-partitions", "--bootstrap", broker.address, *COMMAND_LINE]
    command += ["--mask", mask] if mask else []
    job = Job([*command, "--batch-rows", str(BATCH_ROWS)], tmp_path / "job.log")
    common: dict[str, Any] = {"bootstrap": broker.address, "spark": spark}
    common |= {"keep_partitions": True, "mask": mask or ()}
    ends = Ends(broker.address, "target", PARTITIONS)
    try:
        killed = kill_anywhere(
            job,
            broker,
            ends,
            TopicMoments(place / "checkpoint", broker, PARTITIONS),
            steps=BATCH_ROWS,
            kinds=("driver", "broker"),
            moments=(BATCH_OPEN, WRITTEN),
        )
        job.kill_driver()
        finish(lambda: replay(directory, to_topic="target", **common))
    finally:
        job.close()
        ends.close()

    copies = records(broker.address, "target")
    secret = place / "_minibroker" / "mask-secret"
    expected = {
        number: [hashed(value, secret.read_bytes()) if mask else value for value in values]
        for number, values in enumerate(work.written)
    }
    assert {number: [record.value for record in part] for number, part in copies.items()} == (
        expected
    ), (killed, job.starts)
    assert len(killed) == KILLS


def hashed(value: bytes, secret: bytes) -> bytes:
    """Return the hash of a whole value, as `--mask value=hash` writes it."""
    return hmac.new(secret, value, hashlib.sha256).hexdigest().encode()


def test_copy_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path
) -> None:
    """The copy follows a growing topic; offsets of a group are translated exactly in the end."""
    broker = new_broker()
    work = Work(broker)
    command = ["minibroker", "pipeline", "copy", "--topic", "source", "--to-topic", "target"]
    command += ["--checkpoint", str(tmp_path / "copy"), "--groups", "readers"]
    command += ["--bootstrap", broker.address, *COMMAND_LINE]
    job = Job([*command, "--batch-rows", str(BATCH_ROWS), "--follow"], tmp_path / "job.log")
    common: dict[str, Any] = {"bootstrap": broker.address, "spark": spark}
    common |= {"checkpoint": tmp_path / "copy", "groups": "readers"}
    topics.create(broker.address, "target", PARTITIONS)
    ends = Ends(broker.address, "target", PARTITIONS)
    maps = tmp_path / "copy" / "_minibroker" / "offset-map"
    try:
        killed = kill_anywhere(
            job,
            broker,
            ends,
            TopicMoments(tmp_path / "copy" / "checkpoint", broker, PARTITIONS, maps),
            steps=BATCH_ROWS,
            kinds=("driver", "worker", "broker"),
            on_try=work.produce,
        )
        job.kill_driver()
        reader = {number: len(values) // 2 for number, values in enumerate(work.written)}
        commit(broker.address, "readers", "source", reader)
        finish(lambda: copy("source", to_topic="target", **common))
    finally:
        job.close()
        ends.close()

    copies = records(broker.address, "target")
    assert {number: [record.value for record in part] for number, part in copies.items()} == dict(
        enumerate(work.written)
    ), (killed, job.starts)
    moved = offsets(broker.address, "readers")
    for number, offset in reader.items():
        copied_offset = moved["target", number][0]
        assert (
            rest(broker.address, "target", number, copied_offset) == work.written[number][offset:]
        )
    assert len(killed) == KILLS


def test_rollup_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path
) -> None:
    """Each run ends by itself if it is not killed: with final rows, provisional rows, or between.

    Progress is the number of files that the runs have made, of any kind.
    """
    broker = new_broker()
    minutes = Minutes(broker)
    directory, bad = tmp_path / "windows", tmp_path / "bad"
    command = ["minibroker", "pipeline", "rollup", "--topic", "source", "--to", str(directory)]
    command += ["--window", "1m", "--schema", "minute INT", "--agg", "count(*) AS records"]
    command += ["--by", "minute", "--dead-letters", str(bad)]
    command += ["--bootstrap", broker.address, *COMMAND_LINE]
    job = Job([*command, "--batch-rows", str(BATCH_ROWS)], tmp_path / "job.log")
    names: set[str] = set()

    def files_made() -> int:
        names.update(files_in(directory))
        return len(names)

    try:
        killed = kill_anywhere(
            job,
            broker,
            files_made,
            RollupMoments(directory),
            steps=FILES_OF_A_ROLLUP,
            kinds=("driver", "worker"),
            on_try=minutes.produce,
            moments=(*MOMENTS, PROVISIONAL),
            ends=True,
        )
        job.kill_driver()
        common: dict[str, Any] = {"bootstrap": broker.address, "spark": spark, "by": "minute"}
        common |= {"agg": "count(*) AS records", "schema": "minute INT", "dead_letters": bad}
        finish(lambda: rollup("source", window="1m", to=directory, **common))
    finally:
        job.close()

    assert len(killed) == KILLS
    counts = sorted(minutes.good.items())
    rows = spark.read.parquet(str(directory)).collect()
    assert sorted((row.minute, row.records) for row in rows) == counts, killed
    files = f"'{directory}/date=*/*.parquet'"
    assert sorted(duckdb.sql(f"SELECT minute, records FROM {files}").fetchall()) == counts, killed
    columns = dataset.dataset(directory, partitioning="hive").to_table()
    pairs = zip(columns["minute"].to_pylist(), columns["records"].to_pylist(), strict=True)
    assert sorted(pairs) == counts, killed
    by_name = (directory / "_minibroker" / "provisional.list").read_text().splitlines()
    provisional_names = [
        str(path.relative_to(directory)) for path in directory.glob("date=*/provisional-*")
    ]
    assert sorted(provisional_names) == sorted(by_name)
    provisional = dataset.dataset([str(directory / name) for name in provisional_names]).to_table()
    assert set(provisional["minute"].to_pylist()) == set(sorted(minutes.good)[-OPEN_MINUTES:])
    letters = [row.value for row in spark.read.json(str(bad)).collect()]
    assert sorted(letters) == sorted(minutes.bad), killed
    lines = [
        line for file in bad.glob("topic=*/date=*/*.json") for line in file.read_text().splitlines()
    ]
    assert sorted(json.loads(line)["value"] for line in lines) == sorted(minutes.bad), killed


class Minutes:
    """Records of `source` in the order of their time, some of them bad."""

    def __init__(self, broker: Minibroker) -> None:
        self._address = broker.address
        self.good: Counter[int] = Counter()
        """Minute → number of its good records."""
        self.bad: list[str] = []
        topics.create(broker.address, "source", PARTITIONS, topics.FOR_EVER)

    def produce(self, number: int) -> None:
        """Produce the minutes of a run; `number` is the number of the call."""
        client = topics.producer(self._address)
        first = number * NEW_MINUTES_A_RUN
        for row in range(MINUTES_A_RUN * RECORDS_A_MINUTE):
            minute = first + row // RECORDS_A_MINUTE
            value = json.dumps({"minute": minute})
            if row % RECORDS_A_MINUTE == BAD_OF_A_MINUTE:
                value = f"bad {number}-{row}"
                self.bad.append(value)
            else:
                self.good[minute] += 1
            at_ms = NOON_MS + minute * 60_000
            client.produce("source", value, partition=row % PARTITIONS, timestamp=at_ms)
        assert client.flush(180) == 0


def files_in(directory: Path) -> set[str]:
    """Return all files, of any kind; they come and go."""
    return {f"{path}/{name}" for path, _, names in os.walk(directory) for name in names}
