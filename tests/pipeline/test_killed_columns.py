"""Archives of columns are killed at random moments: records, dead letters and rows are there once.

Only `make pipeline-fire` runs them; a default run has the parts: `test_decoded_writer`,
`test_mirror_table` and `test_decoded_archive`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline import archive
from tests.pipeline import topics
from tests.pipeline.batch_moments import ArchiveMoments, paths_now
from tests.pipeline.committed import records
from tests.pipeline.encoded_values import avro, record
from tests.pipeline.killing import (
    BATCH_ROWS,
    COMMAND_LINE,
    KILLS,
    TIMEOUT,
    Job,
    finish,
    kill_anywhere,
)
from tests.pipeline.table_readers import TABLES
from tests.support.processes import free_port
from tests.support.registry_calls import OpenRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.broker import Minibroker

pytestmark = [pytest.mark.java, pytest.mark.slow, TIMEOUT]

BATCHES_A_KILL = 6
BAD_EVERY = 7
"""One value of so many is no JSON."""
IDS = 50
FILES_A_BATCH = 3


class Values:
    """Values in partition 0 of `source`: rows as JSON, and some that are none."""

    def __init__(self, broker: Minibroker) -> None:
        self._address = broker.address
        self.good: list[tuple[int, dict[str, Any]]] = []
        """(offset, row) of each good value."""
        self.bad: list[bytes] = []
        self._next = 0
        for name in ("source", "dead"):
            topics.create(broker.address, name)

    def produce(self, number: int) -> None:
        """Produce more values; `number` is the number of the call."""
        client = topics.producer(self._address)
        for _ in range(BATCHES_A_KILL * BATCH_ROWS):
            offset, self._next = self._next, self._next + 1
            row = {"id": offset % IDS, "name": f"{number}-{offset}"}
            value = json.dumps(row).encode()
            if offset % BAD_EVERY == 0:
                value = b"no JSON %d" % offset
                self.bad.append(value)
            else:
                self.good.append((offset, row))
            client.produce("source", value, b"k", partition=0)
        assert client.flush(topics.SECONDS) == 0


def check_columns_killed_anywhere(
    spark: SparkSession,
    new_broker: Callable[..., Minibroker],
    tmp_path: Path,
    file_format: str,
    place: str,
) -> None:
    """No reader sees a record twice, at any moment; dead letters and rows are complete, once."""
    broker = new_broker()
    values = Values(broker)
    directory, dead = tmp_path / "archive", tmp_path / "dead"
    is_of_rows = place == "rows"
    command = ["minibroker", "pipeline", "archive", "--topic", "source", "--to", str(directory)]
    command += ["--format", file_format, "--schema", "id BIGINT, name STRING"]
    command += ["--dead-letters", "dead" if place == "topic" else f"{dead}/"]
    command += ["--upsert-by", "id"] if is_of_rows else []
    command += ["--batch-rows", str(BATCH_ROWS), "--bootstrap", broker.address, *COMMAND_LINE]
    job = Job([*command, "--follow", "--every", "1ms"], tmp_path / "job.log")
    common: dict[str, Any] = {"bootstrap": broker.address, "spark": spark, "format": file_format}
    common |= {"schema": "id BIGINT, name STRING", "upsert_by": "id" if is_of_rows else ()}
    common |= {"dead_letters": "dead" if place == "topic" else f"{dead}/"}

    def look_and_produce(number: int) -> None:
        # A table of rows is made with its first commit.
        is_there = any(directory.glob("_delta_log/*.json")) or any(directory.glob("metadata/v*"))
        for reader in TABLES[file_format] if number and (is_there or not is_of_rows) else ():
            keys = [row[0] for row in reader(directory, "id" if is_of_rows else "offset")]
            assert len(set(keys)) == len(keys), (reader, number)
        values.produce(number)

    try:
        killed = kill_anywhere(
            job,
            broker,
            lambda: len(list(paths_now(directory, "**/*.parquet"))),
            ArchiveMoments(directory, file_format),
            steps=2 * FILES_A_BATCH,
            kinds=("broker", "worker"),
            on_try=look_and_produce,
        )
        job.kill_driver()
        finish(lambda: archive("source", to=directory, **common))
    finally:
        job.close()

    if is_of_rows:
        rows = {row["id"]: row["name"] for _, row in values.good}
        for reader in TABLES[file_format]:
            assert dict(reader(directory, "id", "name")) == rows, (reader, killed)
    else:
        for reader in TABLES[file_format]:
            assert reader(directory, "offset", "value") == values.good, (reader, killed)
    letters = records(broker.address, "dead")[0] if place == "topic" else []
    bad_values = [letter.value for letter in letters] if place == "topic" else sorted(lines(dead))
    assert bad_values == (values.bad if place == "topic" else sorted(values.bad)), killed
    assert len(killed) == KILLS


def lines(directory: Path) -> Iterable[bytes]:
    """Yield the values of the dead letters in a directory."""
    for file in directory.glob("topic=*/date=*/*.json"):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)["value"].encode()


if KILLS > 2:
    test_columns_killed_anywhere = pytest.mark.parametrize(
        ("file_format", "place"),
        [
            ("iceberg", "topic"),
            ("delta", "directory"),
            ("parquet", "topic"),
            ("iceberg", "rows"),
            ("delta", "rows"),
        ],
    )(check_columns_killed_anywhere)


def check_registry_killed_anywhere(
    spark: SparkSession, new_broker: Callable[..., Minibroker], tmp_path: Path
) -> None:
    """The registry dies with its broker: a value from before is decoded by the same id."""
    address = f"127.0.0.1:{free_port()}"
    broker = new_broker(arguments=["--registry", address])
    registry = OpenRegistry(f"http://{address}")
    schema = record(id="long")
    encode = None
    for number in range(2):
        encode = encode or avro(schema, registry.register("source-value", schema))
        client = topics.producer(broker.address)
        client.produce("source", encode({"id": number}))
        assert client.flush(topics.SECONDS) == 0
        options = {"to": tmp_path / "archive", "bootstrap": broker.address, "spark": spark}
        archive("source", format="delta", schema_registry=registry.url, **options)
        broker.kill()
        broker.start()
    for reader in TABLES["delta"]:
        assert reader(tmp_path / "archive", "offset", "value") == [(0, {"id": 0}), (1, {"id": 1})]


if KILLS > 2:
    test_registry_killed_anywhere = check_registry_killed_anywhere
