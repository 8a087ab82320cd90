"""What the README says about the pipeline runs as it stands there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.arguments import parse
from tests.pipeline import topics
from tests.pipeline.committed import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

README = Path(__file__).resolve().parents[2] / "README.md"
NOON_MS = 1_795_262_400_000


def section() -> str:
    """From the heading to the next one."""
    found = re.search(r"^## Pipeline\n(.*?)^## ", README.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_its_commands_are_understood() -> None:
    indented = re.findall(r"^    (.*)$", section().split("```")[0], re.MULTILINE)
    lines = "\n".join(indented).replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True)[2:] for line in lines if " pipeline " in line]
    assert [words[0] for words in commands] == ["archive", "replay", "rollup", "inspect"]
    for command, *words in commands:
        assert not parse(command, words).dry_run


def test_its_examples_do_what_they_say(
    spark: SparkSession,
    minibroker_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All of them, one after the other, in the session of these tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("orders", "orders-copy"):
        topics.create(minibroker_address, name, 2, {"retention.ms": "-1"})
    client = topics.producer(minibroker_address)
    for number in range(40):
        value = json.dumps({"country": ("at", "ch")[number % 2], "amount": 1.0}).encode()
        at_ms = NOON_MS + number * 60_000
        client.produce("orders", value, partition=number % 2, timestamp=at_ms)
    assert client.flush(topics.SECONDS) == 0

    examples = re.findall(r"^```python\n(.*?)^```", section(), re.DOTALL | re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        exec(example.replace("127.0.0.1:9092", minibroker_address), {})
    said = capsys.readouterr().out
    assert said.startswith("40 records\n")
    assert re.search(r"0\|\s+20\|", said)
    assert records(minibroker_address, "orders-copy") == records(minibroker_address, "orders")
    # Where this process stands, wherever Spark was started.
    revenue = spark.read.parquet(str(tmp_path / "revenue"))
    assert revenue.columns == [
        *("window_start", "window_end", "country", "revenue", "orders", "date")
    ]
    # The watermark is ten minutes behind: the windows of the last ten minutes are still open.
    assert revenue.count() == 29
