"""The README's section about the pipeline, typed from an empty directory, on a new broker.

The commands run unchanged and in order, then the examples in Python on a new broker. They run in
the session of these tests, which saves starts of Spark. The test checks the files, records and rows
that they leave.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import dataset

from minibroker.cli.program import run_words
from minibroker.testing import Broker
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.pipeline.table_readers import READERS
from tests.support import readme
from tests.support.peers import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

NOON_MS = 1_795_262_400_000
RECORDS = 40
BROKER = "127.0.0.1:9092"
TEST_BROKER = "127.0.0.1:9093"
STORY = "Production traffic in a test broker"
DAY_MS = 86_400_000
SECTIONS = ("Pipeline", "In Python", "In jobs of your own")
SECTION = [block for block in readme.blocks() if block.section in SECTIONS]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the address of a new broker with the topic `orders` alone, in an empty working
    directory.

    It has an order for each minute, by turns in two partitions; the third one is empty.
    """
    monkeypatch.chdir(tmp_path)
    with Broker(config=ONE_NODE) as broker:
        topics.create(broker.bootstrap, "orders", 3, topics.FOR_EVER)
        client = topics.producer(broker.bootstrap)
        for number in range(RECORDS):
            value = json.dumps({"country": ("at", "ch")[number % 2], "amount": 1.0}).encode()
            at_ms = NOON_MS + number * 60_000
            client.produce("orders", value, partition=number % 2, timestamp=at_ms)
        assert client.flush(topics.SECONDS) == 0
        yield broker.bootstrap


def typed(command: str, address: str, out: io.StringIO | None = None) -> str:
    """Run `minibroker pipeline …` and return its output; it ends well and without a complaint.

    Spark runs already, in another directory, so the paths are absolute. `maintain` asks no broker.
    """
    program, pipeline, *words = shlex.split(command.replace("./", f"{Path.cwd()}/"))
    assert (program, pipeline) == ("minibroker", "pipeline")
    out, errors = out or io.StringIO(), io.StringIO()
    broker = [] if words[0] == "maintain" else ["--bootstrap", address]
    code = run_words(["pipeline", *words, *broker], out, errors)
    complaints = [line for line in errors.getvalue().splitlines() if ": asking " not in line]
    assert (code, complaints) == (0, []), command
    return out.getvalue()


class Terminal(io.StringIO):
    """A terminal for the output."""

    def isatty(self) -> bool:
        return True


def lines_left(terminal: str) -> list[str]:
    """Return the lines on the terminal after progress has been overwritten."""
    return [line.rpartition("\x1b[K")[2] for line in terminal.splitlines()]


def revenue(spark: SparkSession, directory: Path) -> tuple[int, float, int]:
    """Return windows, revenue, orders: the same for Spark, by its lists, and for Arrow, by the
    files.
    """
    rows = spark.read.parquet(str(directory))
    names = ["window_start", "window_end", "country", "revenue", "orders", "date"]
    assert rows.columns == names
    by_arrow = dataset.dataset(directory, format="parquet", partitioning="hive").to_table()
    results = [rows.toArrow().to_pylist(), by_arrow.to_pylist()]
    sums = [
        (
            len(windows),
            sum(row["revenue"] for row in windows),
            sum(row["orders"] for row in windows),
        )
        for windows in results
    ]
    assert sums[0] == sums[1]
    return sums[0]


def test_its_commands_leave_the_promised_files(
    spark: SparkSession, orders: str, tmp_path: Path
) -> None:
    install, archive, table, maintain, replay, rollup, inspect, lag, compare, copy = (
        readme.commands(SECTION)
    )
    assert readme.reason_not_to_run(install)

    starting, batch = map(json.loads, typed(archive, orders).splitlines())
    assert starting["starting"] == "archive"
    assert (batch["rows"], batch["lag"]) == (RECORDS, 0)
    assert spark.read.parquet(str(tmp_path / "archive")).count() == RECORDS

    _, batch = map(json.loads, typed(table, orders).splitlines())
    assert batch["rows"] == RECORDS
    assert json.loads(typed(maintain, orders))["expired_versions"] == 0
    for reader in READERS["iceberg"]:
        assert len(reader(tmp_path / "orders-table")) == RECORDS

    plan = typed(f"{replay} --dry-run", orders)
    assert "topic orders-copy (which is made, with 3 partitions)" in plan
    assert "of 500,000 records or 512.0 MiB at most\n" in plan
    _, first, *_ = map(json.loads, typed(replay, orders).splitlines())
    assert first == {"created_topic": "orders-copy", "partitions": 3, "retention.ms": "-1"}
    assert records(orders, "orders-copy") == records(orders, "orders")

    *_, sentence, windows, provisional, final = lines_left(typed(rollup, orders, Terminal()))
    assert re.fullmatch(r"40 records rolled up to \S+/revenue in .*", sentence)
    assert windows == "29 windows became final; 11 windows can still change:"
    assert provisional == "they are provisional rows, which the next run replaces;"
    assert final == "a window becomes final when the topic has a record 10 min later than its end"
    assert revenue(spark, tmp_path / "revenue") == (RECORDS, RECORDS, RECORDS)

    assert "orders" in typed(inspect, orders)
    assert json.loads(typed(lag, orders))["lag"] == 0
    comparison = json.loads(typed(compare, orders))
    assert (comparison["same"], comparison["equal"]) == (True, RECORDS)
    _, first, batch = map(json.loads, typed(copy, orders).splitlines())
    assert first["created_topic"] == "orders-mirror"
    assert batch["rows"] == RECORDS
    assert records(orders, "orders-mirror") == records(orders, "orders")
    assert "<svg" in (tmp_path / "orders.html").read_text()
    names = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert names == {"archive", "orders-table", "revenue", "orders.html", "copy-of-orders"}


def test_production_traffic_comes_masked_into_a_test_broker(
    spark: SparkSession, orders: str, tmp_path: Path
) -> None:
    """Half of the customers, all of their newer records, nothing secret; two brokers."""
    story = [block for block in readme.blocks() if block.section == STORY]
    archive, replay = dict.fromkeys(readme.commands(story))  # README and the page say the same
    now_ms = int(time.time() * 1000)
    topics.create(orders, "payments", 2, topics.FOR_EVER)
    client = topics.producer(orders)
    for number in range(2 * RECORDS):
        customer = f"customer{number % RECORDS}"
        value = {"id": number, "customer": {"email": f"{customer}@example.com"}, "card": "4111" * 4}
        client.produce(
            "payments",
            json.dumps(value).encode(),
            customer.encode(),
            timestamp=now_ms - (60 * DAY_MS if number < 10 else DAY_MS),
            headers=[("user", customer.encode())],
        )
    assert client.flush(topics.SECONDS) == 0
    typed(archive, orders)
    with Broker(config=ONE_NODE) as of_the_test:
        command = replay.replace(f"--bootstrap {TEST_BROKER}", "")
        assert command != replay
        _, created, batch = map(json.loads, typed(command, of_the_test.bootstrap).splitlines())
        assert created["created_topic"] == "payments"
        masked = [
            record
            for part in records(of_the_test.bootstrap, "payments").values()
            for record in part
        ]
    assert batch["rows"] == len(masked)
    values = [json.loads(record.value or b"") for record in masked]
    assert {value["card"] for value in values} == {"*" * 12 + "4111"}
    addresses = {value["customer"]["email"] for value in values}
    assert 8 < len(addresses) == len({record.key for record in masked}) < 32
    assert not any(record.headers for record in masked)
    assert not any(b"customer" in (record.key or b"") for record in masked)
    assert min(value["id"] for value in values) >= 10


def test_its_examples_run(
    spark: SparkSession, orders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [block.text for block in SECTION if block.language == "python"]
    assert len(examples) == 2
    for example in examples:
        names: dict[str, Any] = {}
        exec(example.replace(BROKER, orders), names)
    output = capsys.readouterr().out
    assert output.startswith("40 records\n")
    assert re.search(r"0\|\s+20\|", output)
    assert records(orders, "orders-copy") == records(orders, "orders")
    assert revenue(spark, tmp_path / "revenue") == (RECORDS, RECORDS, RECORDS)
