"""The README's section about the pipeline, typed from an empty directory, on a new broker.

The commands run as they stand there, in their order; the examples in Python after them, from
nothing again. They run in the session of these tests, which saves each the start of a Spark. What
they leave is looked at: files, records, rows.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import dataset

from minibroker.pipeline.command_line import run_words
from minibroker.testing import Broker
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.support import readme
from tests.support.peers import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

NOON_MS = 1_795_262_400_000
RECORDS = 40
BROKER = "127.0.0.1:9092"
SECTION = [block for block in readme.blocks() if block.section == "Pipeline"]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a new broker that has only `orders`: an order a minute, by turns in two
    partitions; the third one is empty. The working directory is empty.
    """
    monkeypatch.chdir(tmp_path)
    with Broker(config=ONE_NODE) as broker:
        topics.create(broker.bootstrap, "orders", 3, {"retention.ms": "-1"})
        client = topics.producer(broker.bootstrap)
        for number in range(RECORDS):
            value = json.dumps({"country": ("at", "ch")[number % 2], "amount": 1.0}).encode()
            at_ms = NOON_MS + number * 60_000
            client.produce("orders", value, partition=number % 2, timestamp=at_ms)
        assert client.flush(topics.SECONDS) == 0
        yield broker.bootstrap


def typed(command: str, address: str, out: io.StringIO | None = None) -> str:
    """Run `minibroker pipeline …`, and return what it prints; it ends well, without a complaint.

    Spark runs already, in another directory: so paths of this one begin at the root.
    """
    program, pipeline, *words = shlex.split(command.replace("./", f"{Path.cwd()}/"))
    assert (program, pipeline) == ("minibroker", "pipeline")
    out, errors = out or io.StringIO(), io.StringIO()
    code = run_words([*words, "--bootstrap", address], out, errors)
    assert (code, errors.getvalue()) == (0, ""), command
    return out.getvalue()


class Terminal(io.StringIO):
    """Where a person looks."""

    def isatty(self) -> bool:
        return True


def lines_left(terminal: str) -> list[str]:
    """What stays on it, when progress has been written over."""
    return [line.rpartition("\x1b[K")[2] for line in terminal.splitlines()]


def revenue(spark: SparkSession, directory: Path) -> tuple[int, float, int]:
    """Windows, revenue, orders: the same for Spark, by its lists, and for Arrow, by the files."""
    rows = spark.read.parquet(str(directory))
    names = ["window_start", "window_end", "country", "revenue", "orders", "date"]
    assert rows.columns == names
    by_arrow = dataset.dataset(directory, format="parquet", partitioning="hive").to_table()
    found = [rows.toArrow().to_pylist(), by_arrow.to_pylist()]
    sums = [
        (len(one), sum(row["revenue"] for row in one), sum(row["orders"] for row in one))
        for one in found
    ]
    assert sums[0] == sums[1]
    return sums[0]


def test_its_commands_leave_what_they_promise(
    spark: SparkSession, orders: str, tmp_path: Path
) -> None:
    install, archive, replay, rollup, inspect = readme.commands(SECTION)
    assert readme.reason_not_to_run(install)

    (batch,) = map(json.loads, typed(archive, orders).splitlines())
    assert (batch["rows"], batch["lag"]) == (RECORDS, 0)
    assert spark.read.parquet(str(tmp_path / "archive")).count() == RECORDS

    plan = typed(f"{replay} --dry-run", orders)
    assert "topic orders-copy (which is made, with 3 partitions)" in plan
    first, *_ = map(json.loads, typed(replay, orders).splitlines())
    assert first == {"created_topic": "orders-copy", "partitions": 3}
    assert records(orders, "orders-copy") == records(orders, "orders")

    *_, sentence, windows, provisional, final = lines_left(typed(rollup, orders, Terminal()))
    assert re.fullmatch(r"40 records rolled up to \S+/revenue in .*", sentence)
    assert windows == "29 windows became final; 11 windows can still change:"
    assert provisional == "they are provisional rows, which the next run replaces;"
    assert final == "a window becomes final when the topic has a record 10 min later than its end"
    assert revenue(spark, tmp_path / "revenue") == (RECORDS, RECORDS, RECORDS)

    assert "orders" in typed(inspect, orders)
    assert "<svg" in (tmp_path / "orders.html").read_text()
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert left == {"archive", "revenue", "orders.html"}


def test_its_examples_do_what_they_say(
    spark: SparkSession, orders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [block.text for block in SECTION if block.language == "python"]
    assert len(examples) == 2
    for example in examples:
        found: dict[str, Any] = {}
        exec(example.replace(BROKER, orders), found)
    said = capsys.readouterr().out
    assert said.startswith("40 records\n")
    assert re.search(r"0\|\s+20\|", said)
    assert records(orders, "orders-copy") == records(orders, "orders")
    assert revenue(spark, tmp_path / "revenue") == (RECORDS, RECORDS, RECORDS)
