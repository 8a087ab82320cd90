"""`minibroker record` and `pipeline archive` with the same words write the same records."""

from __future__ import annotations

import io
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.cli.declaration import InPython, built
from minibroker.cli.errors import EXIT_OK
from minibroker.cli.program import run_words
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.options.row_options import RowOptions
from minibroker.pipeline.spark.progress import Reports
from minibroker.pipeline.tables.archived_files import all_rows
from minibroker.pipeline.verbs.archive import job as archive
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.seeds.items import SeedRecord
from minibroker.seeds.json_lines import read_items
from tests.pipeline import topics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

TOPIC = "recorded-orders"
BEGIN_MS = 1_795_478_400_000
RECORDS = 400
PARTITIONS = 3
RULES = (
    "customer.email=email, card=last4, items.sku=mask, amount=first1, key=hash, headers.user=drop"
)
WORDS = (
    {"mask": RULES, "sample": "30%"},
    {"mask": "card=hash, note?=fixed:x", "select": "card, customer.email", "sample": "40%"},
    {"sample": "25%", "sample_by": "key"},
    {"since": str(BEGIN_MS + 100_000), "until": str(BEGIN_MS + 300_000), "mask": "headers=hash"},
)

Row = tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


@pytest.fixture(scope="module")
def orders(minibroker_address: str) -> str:
    """Return the name of a topic with records of every kind that masks know."""
    topics.create(minibroker_address, TOPIC, PARTITIONS, topics.FOR_EVER)
    client = topics.producer(minibroker_address)
    for number in range(RECORDS):
        value: dict[str, Any] = {
            "id": number,
            "customer": {"email": f"Cust\u00f6mer{number % 7}@Example.com"},
            "card": f"41111111111{number:05d}",
            "amount": 1.50 if number % 3 else 10**20 + number,
            "items": [{"sku": "Ab-1"}, {"sku": None}],
        }
        if number % 5 == 0:
            value["note"] = "n"
        client.produce(
            TOPIC,
            None if number % 11 == 0 else json.dumps(value, ensure_ascii=number % 2 == 0).encode(),
            None if number % 13 == 0 else f"customer {number % 40}".encode(),
            partition=number % PARTITIONS,
            timestamp=BEGIN_MS + 1000 * number,
            headers=[("user", b"u"), ("trace", b"\xff"), ("trace", None)] if number % 4 else [],
        )
    assert client.flush(topics.SECONDS) == 0
    return TOPIC


def archived_rows(spark: SparkSession, directory: Path) -> list[Row]:
    """Return the records of an archive."""
    rows = all_rows(spark, str(directory), "parquet").collect()
    return sorted(
        (
            row.partition,
            row.offset,
            int(row.timestamp.timestamp() * 1000),
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            headers_of(row.headers or ()),
        )
        for row in rows
    )


def headers_of(headers: Iterable[Any]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((h.key, None if h.value is None else bytes(h.value)) for h in headers)


def recorded_rows(path: Path) -> list[Row]:
    """Return the records of a seed of lines."""
    text = path.read_bytes()
    items = read_items(io.BytesIO(text), path.name, BEGIN_MS)
    offsets = [json.loads(line).get("offset", -1) for line in text.splitlines()]
    return sorted(
        (item.partition or 0, offset, item.timestamp or 0, item.key, item.value, item.headers)
        for item, offset in zip(items, offsets, strict=True)
        if isinstance(item, SeedRecord)
    )


@pytest.mark.parametrize("options", WORDS)
def test_the_same_words_write_the_same_records(
    spark: SparkSession,
    minibroker_address: str,
    orders: str,
    tmp_path: Path,
    options: dict[str, str],
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of sixteen bytes or more")
    if "hash" in options.get("mask", "") or "email=email" in options.get("mask", ""):
        options = {**options, "mask_secret_file": str(secret)}
    operations = built(RowOptions, InPython(options)).operations()
    directory = tmp_path / "archive"
    plan = ArchivePlan(Kafka(minibroker_address), str(directory), (orders,), operations=operations)
    archive.run(spark, plan, Reports(threading.Event()))
    words = [
        "record",
        orders,
        "-o",
        str(tmp_path / "seed.jsonl"),
        "--bootstrap",
        minibroker_address,
    ]
    for name, text in options.items():
        words += [f"--{name.replace('_', '-')}", text]
    errors = io.StringIO()
    assert run_words(words, io.StringIO(), errors) == EXIT_OK, errors.getvalue()
    recorded = recorded_rows(tmp_path / "seed.jsonl")
    assert 0 < len(recorded) < RECORDS
    assert recorded == archived_rows(spark, directory)
