"""`rollup`: windows of time over JSON values, each once; bad values are set aside."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import dataset
from pyspark.sql import functions as f

from minibroker.pipeline import PipelineError, rollup
from minibroker.pipeline.operations import json_columns
from minibroker.pipeline.operations.json_columns import parsed_schema
from minibroker.pipeline.spark.progress import Outcome
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.verbs.rollup.windows import rolled_up, to_records
from tests.pipeline import topics
from tests.pipeline.committed import records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from minibroker.pipeline.spark.progress import Batch
    from minibroker.pipeline.tables.table import BatchId

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

NOON_MS = 1_795_262_400_000  # 2026-11-21 12:00:00 UTC
SCHEMA = "country STRING, amount DOUBLE, at BIGINT"


def send(address: str, topic: str, values: list[tuple[int, str, float]]) -> None:
    """Send (seconds after noon, country, amount) as JSON; the record has the same time."""
    client = topics.producer(address)
    for seconds, country, amount in values:
        at_ms = NOON_MS + seconds * 1000
        value = {"country": country, "amount": amount, "at": at_ms, "more": [1, {"x": None}]}
        client.produce(topic, json.dumps(value).encode(), timestamp=at_ms, partition=0)
    assert client.flush(topics.SECONDS) == 0


def send_bytes(address: str, topic: str, *values: bytes | None) -> None:
    """Send values unchanged, with the time of noon."""
    client = topics.producer(address)
    for value in values:
        client.produce(topic, value, b"key", timestamp=NOON_MS, partition=0)
    assert client.flush(topics.SECONDS) == 0


def windows_in(spark: SparkSession, directory: Path) -> list[tuple[Any, ...]]:
    """Return the windows of a rollup's files: seconds after noon, and the other columns.

    Spark and Arrow find the same files. Their times are moments in UTC.
    """
    by_spark = spark.read.parquet(str(directory)).drop("date").toArrow().to_pylist()
    files = dataset.dataset(directory, format="parquet", partitioning="hive")
    by_arrow = files.to_table(columns=list(by_spark[0])).to_pylist() if by_spark else []
    if by_spark:
        assert files.schema.field("window_start").type == pa.timestamp("us", "UTC")
    windows = [
        sorted(
            (round(row["window_start"].timestamp()) - NOON_MS // 1000, *list(row.values())[2:])
            for row in rows
        )
        for rows in (by_spark, by_arrow)
    ]
    assert windows[0] == windows[1]
    return windows[0]


def provisional_files(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("provisional-*")}


def test_each_window_is_there_once_after_each_run(
    spark: SparkSession, address: str, topic: str, tmp_path: Path
) -> None:
    """Late records count until they are too late.

    Open windows are there too, as provisional rows, until the next run replaces them.
    """
    topics.create(address, topic, 1, topics.FOR_EVER)
    send(
        address, topic, [(0, "at", 1), (59, "at", 2), (30, "ch", 4), (70, "at", 8), (50, "at", 16)]
    )
    directory = tmp_path / "out"

    def run(**more: Any) -> Outcome:
        return rollup(
            topic,
            window="1m",
            by="country",
            agg=["sum(amount) AS revenue", "count(*) AS orders"],
            watermark="30s",
            schema=SCHEMA,
            to=directory,
            bootstrap=address,
            spark=spark,
            **more,
        )

    outcome = run()
    assert outcome.rows == 5
    assert (outcome.final_windows, outcome.open_windows, outcome.provisional_windows) == (0, 3, 3)
    assert windows_in(spark, directory) == [
        (0, "at", 19.0, 3),
        (0, "ch", 4.0, 1),
        (60, "at", 8.0, 1),
    ]
    send(address, topic, [(95, "at", 32), (40, "ch", 64)])
    outcome = run()
    assert (outcome.final_windows, outcome.provisional_windows) == (2, 1)
    closed = [(0, "at", 19.0, 3), (0, "ch", 68.0, 2), (60, "at", 40.0, 2)]
    assert windows_in(spark, directory) == closed
    send(address, topic, [(10, "at", 100), (300, "at", 1)])
    outcome = run()
    assert (outcome.late_rows, outcome.final_windows, outcome.provisional_windows) == (1, 1, 1)
    assert windows_in(spark, directory) == [*closed, (300, "at", 1.0, 1)]
    assert not (directory / "_minibroker" / "checkpoint" / "provisional").exists()
    assert not (directory / "_minibroker" / "provisional").exists()


def test_a_run_with_nothing_new_and_one_that_follows(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """The first writes the provisional rows again, the second removes them and writes none."""
    address, directory = minibroker_address, tmp_path / "out"
    topics.create(address, topic, 1, topics.FOR_EVER)

    def run(**more: Any) -> Outcome:
        common: dict[str, Any] = {"schema": SCHEMA, "bootstrap": address, "spark": spark}
        return rollup(topic, window="1m", agg="count(*) AS n", to=directory, **common, **more)

    send(address, topic, [(0, "at", 1), (70, "at", 8)])
    assert run().provisional_windows == 2
    old_files = provisional_files(directory)
    assert run() == Outcome(provisional_windows=2)
    assert windows_in(spark, directory) == [(0, 1), (60, 1)]
    assert not old_files & provisional_files(directory)

    send(address, topic, [(700, "at", 2)])
    stop = threading.Event()

    def stop_when_one_is_final(batch: Batch) -> None:
        if batch.rows == 0:
            stop.set()

    outcome = run(follow=True, stop=stop, progress=stop_when_one_is_final)
    assert (outcome.rows, outcome.final_windows, outcome.provisional_windows) == (1, 1, 0)
    assert windows_in(spark, directory) == [(0, 1)]
    assert provisional_files(directory) == set()


def test_to_a_topic_by_the_values_own_time_with_windows_that_overlap(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    address, target = minibroker_address, f"{topic}-windows"
    for name in (topic, target):
        topics.create(address, name, 1, topics.FOR_EVER)
    send(address, topic, [(0, "at", 1), (45, "at", 2), (600, "ch", 4)])
    example = tmp_path / "example.json"
    example.write_text('{"country": "at", "amount": 1.5, "at": 1}')
    rollup(
        topic,
        window="1m",
        slide="30s",
        by=["upper(country) AS land", "record.partition"],
        agg="max(amount)",
        watermark="1s",
        time="timestamp_millis(at)",
        example=str(example),
        to=target,
        checkpoint=tmp_path / "checkpoint",
        bootstrap=address,
        spark=spark,
    )
    results = [
        (json.loads(record.key or b""), json.loads(record.value or b""), record.timestamp_ms)
        for record in records(address, target)[0]
    ]
    start = "2026-11-21T{}:00.000Z"
    assert sorted((value["window_start"], value["max(amount)"]) for _, value, _ in results) == [
        ("2026-11-21T11:59:30.000Z", 1.0),
        (start.format("12:00"), 2.0),
        ("2026-11-21T12:00:30.000Z", 2.0),
    ]
    key, value, at_ms = next(record for record in results if record[2] == NOON_MS)
    assert key == {"window_start": start.format("12:00"), "land": "AT", "partition": 0}
    assert value["window_end"] == start.format("12:01")
    assert at_ms == NOON_MS


def test_bad_records_are_set_aside_and_counted(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Without a directory for them the job ends at the first one; with one it goes on."""
    address = minibroker_address
    topics.create(address, topic, 1, topics.FOR_EVER)
    send(address, topic, [(0, "at", 1)])
    bad = [b"{", None, b"\xff{}", b"5", b"[]", b'{"amount": "much"}', b"", b"{}"]
    bad += [b'{"country": 5}', b'{"country": {"name": "at"}}']
    send_bytes(address, topic, *bad)
    send(address, topic, [(90, "at", 1)])
    common: dict[str, Any] = {
        "window": "1m",
        "agg": "count(*) AS orders",
        "watermark": "1s",
        "schema": SCHEMA,
        "to": tmp_path / "out",
        "bootstrap": address,
        "spark": spark,
    }
    with pytest.raises(
        PipelineError,
        match=rf"record {topic}-0 offset 1 cannot be used: its value is not JSON .* --dead-letters",
    ):
        rollup(topic, **common)
    batches: list[Batch] = []
    outcome = rollup(topic, dead_letters=tmp_path / "bad", progress=batches.append, **common)
    assert outcome.bad_records == len(bad)
    assert max(batch.bad_records or 0 for batch in batches) == len(bad)
    assert windows_in(spark, tmp_path / "out") == [(0, 1), (60, 1)]
    rows = spark.read.json(str(tmp_path / "bad")).orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(1, 1 + len(bad)))
    assert [row.reason for row in rows] == [
        "its value is not JSON of this schema",
        "it has no value (a tombstone)",
        "its value is not UTF-8",
        *["its value is not JSON of this schema"] * 4,
        "its value has none of the fields country, amount, at",
        *["its value is not JSON of this schema"] * 2,
    ]
    assert (rows[2].value_base64, rows[0].value, rows[0].key) == ("/3t9", "{", "key")


def test_runs_that_end_at_the_commit_of_a_batch(
    spark: SparkSession,
    minibroker_address: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They end before or behind it. The next run repeats the batch: every reader sees all once."""
    topics.create(minibroker_address, topic, 1, topics.FOR_EVER)
    send(minibroker_address, topic, [(0, "at", 1), (90, "at", 1)])
    send_bytes(minibroker_address, topic, b"{")
    really, ended = FileArchive.commit, set[str]()

    def commit(self: FileArchive, batch: BatchId, stage: str, names: Any = None) -> bool:
        is_first = batch.query not in ended
        ended.add(batch.query)
        if is_behind or not is_first:
            really(self, batch, stage, names)
        if is_first:
            raise PipelineError("it ends here")
        return True

    monkeypatch.setattr(FileArchive, "commit", commit)
    common: dict[str, Any] = {"agg": "count(*) AS n", "watermark": "1s", "schema": SCHEMA}
    common |= {"bootstrap": minibroker_address, "spark": spark, "window": "1m"}
    for is_behind in (False, True):
        directory, bad = tmp_path / f"out-{is_behind}", tmp_path / f"bad-{is_behind}"
        ended.clear()
        with pytest.raises(PipelineError, match="it ends here"):
            rollup(topic, to=directory, dead_letters=bad, **common)
        rollup(topic, to=directory, dead_letters=bad, **common)
        assert windows_in(spark, directory) == [(0, 1), (60, 1)]
        lines = [
            line
            for file in bad.glob("topic=*/date=*/*.json")
            for line in file.read_text().splitlines()
        ]
        assert [json.loads(line)["value"] for line in lines] == ["{"]
        assert [row.value for row in spark.read.json(str(bad)).collect()] == ["{"]


def test_a_directory_that_sparks_sink_has_begun_goes_on_with_it(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    topics.create(minibroker_address, topic, 1, topics.FOR_EVER)
    common: dict[str, Any] = {"agg": "count(*) AS n", "watermark": "1s", "schema": SCHEMA}
    common |= {"bootstrap": minibroker_address, "spark": spark, "window": "1m", "to": tmp_path}
    send(minibroker_address, topic, [(0, "at", 1), (90, "at", 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileArchive, "is_of_spark", lambda self: True)
        rollup(topic, **common)
    assert windows_in(spark, tmp_path) == [(0, 1), (60, 1)]
    send(minibroker_address, topic, [(100, "at", 1), (200, "at", 1)])
    rollup(topic, **common)
    assert windows_in(spark, tmp_path) == [(0, 1), (60, 2), (180, 1)]
    assert not (tmp_path / "_minibroker" / "batches").exists()


def test_impossible_jobs_are_one_sentence_and_write_nothing(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    address, directory = minibroker_address, tmp_path / "out"
    topics.create(address, topic)
    common: dict[str, Any] = {
        "window": "1m",
        "agg": "count(*) AS n",
        "schema": SCHEMA,
        "to": directory,
        "bootstrap": address,
        "spark": spark,
    }
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"topic": "nowhere"}, "there is no topic 'nowhere'"),
        ({"to": "nowhere", "checkpoint": tmp_path / "c"}, "there is no topic 'nowhere'"),
        ({"by": "contry"}, "^--by contry: .*contry.* cannot be resolved.*country"),
        ({"by": "a b c"}, "^--by a b c: .*[Ss]yntax error"),
        ({"agg": "sum(country, 2)"}, r"^--agg sum\(country, 2\): "),
        ({"agg": "amount"}, "^--agg amount: "),
        ({"time": "at"}, "^--time at is a bigint and has to be a timestamp: .*timestamp_millis"),
        ({"time": "when"}, "^--time when: .*cannot be resolved"),
        ({"by": "country AS n"}, "two columns of the result are named 'n'"),
        ({"schema": "country STRANG"}, "country STRANG is no schema .*: expected DDL"),
        ({"schema": '{"type": "odd"}'}, "is no schema"),
        ({"schema": "record STRING, a INT"}, "cannot be named 'record'"),
        ({"schema": "nowhere"}, "--schema nowhere cannot be read"),
    ]
    for change, sentence in wrong:
        arguments = {"topic": topic, **common, **change}
        with pytest.raises(PipelineError, match=sentence):
            rollup(**arguments)
    assert not directory.exists()
    assert not (tmp_path / "c").exists()

    rollup(topic, **common)
    with pytest.raises(PipelineError, match=r"belongs to a job with window '60000 ms .* this one"):
        rollup(topic, **{**common, "window": "2m"})


def test_names_of_fields_may_have_dots_and_backticks(spark: SparkSession) -> None:
    value = bytearray(b'{"service.name": "a", "a `b`": 2}')
    records = spark.createDataFrame([(value,)], "value binary").withColumn(
        "timestamp", f.timestamp_millis(f.lit(NOON_MS))
    )
    rows = json_columns.parse(records, parsed_schema("`service.name` STRING, `a ``b``` INT", "x"))
    windows = rolled_up(
        json_columns.good(rows),
        window_ms=60_000,
        slide_ms=None,
        watermark_ms=0,
        by=["`service.name`"],
        aggregates=["sum(`a ``b```) AS `sum of ``b```"],
    )
    [record] = to_records(windows, 1).collect()
    assert json.loads(record.key)["service.name"] == "a"
    assert json.loads(record.value)["sum of `b`"] == 2
