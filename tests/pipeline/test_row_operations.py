"""Operations on records in every job: what is read, what is left out, what is written masked."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from minibroker.cli.declaration import InPython, built
from minibroker.cli.moments import moment_of
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import PipelineError, compare, copy
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.kafka import preflight, schemas
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.python_rows import without_null_headers
from minibroker.pipeline.operations.frames import operated
from minibroker.pipeline.operations.mask_secret import VARIABLE
from minibroker.pipeline.operations.rows import RowOperations, missed, share_of
from minibroker.pipeline.options.row_options import RowOptions
from minibroker.pipeline.spark.progress import Outcome, Reports
from minibroker.pipeline.tables.archived_files import all_rows
from minibroker.pipeline.verbs.archive import job as archive
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.inspect import job as inspect
from minibroker.pipeline.verbs.inspect.plan import InspectPlan
from minibroker.pipeline.verbs.replay import job as replay
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from minibroker.pipeline.verbs.rollup import job as rollup
from minibroker.pipeline.verbs.rollup.plan import RollupPlan
from tests.pipeline import topics
from tests.pipeline.committed import records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

BEGIN_MS = 1_795_478_400_000  # 2026-11-24 00:00:00 UTC
MINUTE_MS = 60_000
RECORDS = 120
PARTITIONS = 2
SECRET = "a secret of sixteen bytes or more"
LATE = {"40": 20, "41": 70}
"""Records with an earlier timestamp than those before them: id → minutes after the begin."""
RULES = "email=email, card.number=last4, key=hash, headers.user=drop, items.sku=mask"


@pytest.fixture(autouse=True)
def _no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def operations(**options: Any) -> RowOperations:
    """Return operations as a call in Python gives them."""
    row_operations = built(RowOptions, InPython(options)).operations()
    assert isinstance(row_operations, RowOperations)
    return row_operations


def run(job: Any, spark: SparkSession, plan: Any) -> Outcome:
    """Run a verb's job as a call does that gives no stop and hears of no batch."""
    outcome = job.run(spark, plan, Reports(threading.Event()))
    assert isinstance(outcome, Outcome)
    return outcome


def minute_of(number: int) -> int:
    return LATE.get(str(number), number)


def produce(address: str, topic: str, amount: float = 2.50) -> None:
    """Send orders, one a minute, of seven customers; each customer has a partition."""
    topics.create(address, topic, PARTITIONS, topics.FOR_EVER)
    client = topics.producer(address)
    for number in range(RECORDS):
        customer = number % 7
        value = {
            "id": number,
            "email": f"Customer{customer}@example.com",
            "country": ("at", "ch")[number % 2],
            "amount": amount,
            "card": {"number": f"41111111111{number:05d}"},
            "items": [{"sku": "Ab-1"}, {"sku": None}],
        }
        client.produce(
            topic,
            json.dumps(value).encode(),
            f"customer {customer}".encode(),
            partition=customer % PARTITIONS,
            timestamp=BEGIN_MS + minute_of(number) * MINUTE_MS,
            headers=[("user", b"someone"), ("trace", b"1")],
        )
    assert client.flush(topics.SECONDS) == 0


@pytest.fixture(scope="module")
def production(minibroker_address: str) -> str:
    """Return the name of a topic with orders, on the minibroker of this process."""
    produce(minibroker_address, "production")
    return "production"


@pytest.fixture(scope="module")
def archived(
    spark: SparkSession,
    minibroker_address: str,
    production: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return the directory of its archive."""
    directory = tmp_path_factory.mktemp("row-operations") / "archive"
    run(archive, spark, ArchivePlan(Kafka(minibroker_address), str(directory), (production,)))
    return directory


def ids_in(spark: SparkSession, directory: Path) -> list[int]:
    """Return the ids of an archive's orders, sorted, with repetitions."""
    rows = all_rows(spark, str(directory), "parquet").select("value").collect()
    return sorted(json.loads(row.value)["id"] for row in rows)


def test_a_range_of_time_is_archived(
    spark: SparkSession, address: str, topic: str, tmp_path: Path
) -> None:
    """Order 40 is late and outside the range, 41 too early written; both are sorted out by time.

    All is read up to the end: behind a record of a later time there can be one of the range.
    """
    produce(address, topic)
    directory = tmp_path / "archive"
    now_ms = BEGIN_MS + 90 * MINUTE_MS
    chosen = operations(since="2026-11-24T00:35")._replace(until=moment_of("now-15m", now_ms))
    plan = ArchivePlan(Kafka(address), str(directory), (topic,), operations=chosen)
    outcome = run(archive, spark, plan)
    ids = [number for number in range(RECORDS) if 35 <= minute_of(number) < 75]
    assert ids_in(spark, directory) == ids
    assert outcome.rows == len(ids)
    progress = job_directory.progress_of(LocalFiles(), plan.checkpoint)
    assert progress is not None
    ends = {
        partition: sum(number % 7 % PARTITIONS == partition for number in range(RECORDS))
        for partition in range(PARTITIONS)
    }
    assert progress == {TopicPartition(topic, number): end for number, end in ends.items()}
    # A day later the same words mean the moment of the first run: nothing is new.
    later = chosen._replace(until=moment_of("now-15m", now_ms + 24 * 60 * MINUTE_MS))
    assert run(archive, spark, plan._replace(operations=later)).rows == 0
    with pytest.raises(PipelineError, match=r"belongs to a job with until 'now-15m .*has no until"):
        archive.check(plan._replace(operations=chosen._replace(until=None)))
    with pytest.raises(
        PipelineError, match="with no where, and this one has where 'partition = 0'"
    ):
        archive.check(plan._replace(operations=chosen._replace(where="partition = 0")))


def test_production_is_replayed_masked(
    spark: SparkSession, archived: Path, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Joins and partitions survive, nothing secret does, and the next run does the same."""
    topics.create(minibroker_address, topic, PARTITIONS, topics.FOR_EVER)
    masking = operations(
        since="2026-11-24T00:30",
        where="value.country = 'at' AND headers['trace'] = '1'",
        where_schema="country STRING",
        mask=[RULES, "nme?=hash"],
        select=["id", "email,card,items.sku,nme?"],
    )
    plan = ReplayPlan(
        Kafka(minibroker_address),
        str(archived),
        topic,
        keep_timestamps=True,
        batch_rows=25,
        checkpoint_directory=str(tmp_path / "checkpoint"),
        operations=masking,
    )
    outcome = run(replay, spark, plan)
    ids = [number for number in range(RECORDS) if minute_of(number) >= 30 and number % 2 == 0]
    copies = records(minibroker_address, topic)
    values = [json.loads(record.value or b"") for part in copies.values() for record in part]
    assert sorted(value["id"] for value in values) == ids
    assert outcome.rows == len(ids)
    assert outcome.batches > 1
    key_of: dict[str, set[bytes | None]] = {}
    for part in copies.values():
        for record in part:
            value = json.loads(record.value or b"")
            assert record.headers == [("trace", b"1")]
            assert list(value) == ["id", "email", "card", "items"]
            assert value["items"] == [{"sku": "Xx-n"}, {"sku": None}]
            assert value["card"] == {"number": f"************{value['id'] % 10_000:04d}"}
            assert value["email"].endswith(".example")
            assert b"ustomer" not in (record.key or b"") + (record.value or b"")
            key_of.setdefault(value["email"], set()).add(record.key)
    assert len(key_of) == 7
    assert all(len(keys) == 1 for keys in key_of.values())
    first, second = ({record.key for record in part} for part in copies.values())
    assert not first & second
    assert missed(masking, outcome.found_places) == ("nme?=hash", "nme?")
    assert run(replay, spark, plan).rows == 0
    secret = tmp_path / "checkpoint" / "_minibroker" / "mask-secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    with pytest.raises(PipelineError, match=r"job with mask 'email=email, .* has no mask"):
        replay.check(plan._replace(operations=masking._replace(rules=())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, SECRET)
        with pytest.raises(PipelineError, match="masked with another secret"):
            replay.check(plan)


def test_a_value_that_is_no_json_is_never_written_unmasked(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """It ends the job, and no record of its batch is there; or it is left out and counted, also by
    the next run into the same directory.

    A text in the place of an object that has the field of a rule counts as such a value.
    """
    topics.create(minibroker_address, topic)
    client = topics.producer(minibroker_address)
    for value in (
        b'{"email": "a@b.at"}',
        b"email: secret@b.at",
        None,
        b'{"email": null}',
        b'{"by": "secret@b.at"}',
    ):
        client.produce(topic, value, b"key", partition=0)
    assert client.flush(topics.SECONDS) == 0
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    masking = operations(mask=["email=hash, by.email?=hash"], mask_secret_file=str(secret))
    plan = ArchivePlan(
        Kafka(minibroker_address), str(tmp_path / "fails"), (topic,), operations=masking
    )
    with pytest.raises(
        PipelineError,
        match=f"record {topic}-0 offset 1 is not written: its value "
        "cannot be masked: it is no JSON; give --on-unmaskable skip",
    ) as failure:
        run(archive, spark, plan)
    assert "secret@" not in str(failure.value)
    assert not list((tmp_path / "fails").rglob("*.parquet"))
    skipping = plan._replace(operations=masking._replace(unmaskable="skip"))
    outcome = run(archive, spark, skipping)
    assert (outcome.rows, outcome.unmaskable_rows) == (3, 2)
    rows = all_rows(spark, skipping.to, "parquet").orderBy("offset").collect()
    assert [(row.offset, row.value) for row in rows] == [
        (0, b'{"email":"%s"}' % expected(b"a@b.at")),
        (2, None),
        (3, b'{"email":null}'),
    ]


def expected(text: bytes) -> bytes:
    """Return the hash of a text by the standard library."""
    return hmac.new(SECRET.encode(), text, hashlib.sha256).hexdigest().encode()


def test_an_archive_does_not_keep_the_secret_beside_the_data(
    minibroker_address: str, production: str, tmp_path: Path
) -> None:
    plan = ArchivePlan(
        Kafka(minibroker_address),
        str(tmp_path),
        (production,),
        operations=operations(mask=["email=hash"]),
    )
    with pytest.raises(PipelineError, match="give --mask-secret-file FILE or the variable"):
        archive.check(plan)


def test_a_rollup_is_the_same_in_each_run_or_refused(
    spark: SparkSession, minibroker_address: str, production: str, tmp_path: Path
) -> None:
    """Its schema and watermark are in its identity, which is refused before anything is written."""
    directory = tmp_path / "out"
    plan = RollupPlan(
        Kafka(minibroker_address),
        production,
        60 * MINUTE_MS,
        ("sum(amount) AS revenue", "count(*) AS orders"),
        str(directory),
        by=("country",),
        schema="country STRING, amount DOUBLE",
        operations=operations(
            until="2026-11-24T00:30", mask=["country=fixed:xx"], sample="50%", sample_by="key"
        ),
    )
    outcome = run(rollup, spark, plan)
    rows = spark.read.parquet(str(directory)).collect()
    assert [row.country for row in rows] == ["xx"]
    assert sum(row.orders for row in rows) == outcome.rows
    assert 0 < outcome.rows < 30
    old_times = {path.name: path.stat().st_mtime_ns for path in directory.rglob("*")}
    for changed, sentence in (
        (
            plan._replace(watermark_ms=1000),
            "with watermark '600000 ms' and this one has .*'1000 ms'",
        ),
        (
            plan._replace(schema="country STRING, amount FLOAT"),
            "with schema 'struct<country:string,amount:double>' and this one has",
        ),
        (plan._replace(by=()), "with by 'country' and this one has by ''"),
        (plan._replace(operations=RowOperations()), "with until .* and this one has no until"),
    ):
        with pytest.raises(PipelineError, match=sentence):
            run(rollup, spark, changed)
    assert old_times == {path.name: path.stat().st_mtime_ns for path in directory.rglob("*")}


def test_inspect_looks_at_the_chosen_records(
    spark: SparkSession, minibroker_address: str, production: str
) -> None:
    plan = InspectPlan(
        Kafka(minibroker_address),
        (production,),
        operations=operations(
            since="2026-11-24T01:00", where="key = 'customer 3'", mask=["key=fixed:somebody"]
        ),
    )
    (inspected,) = inspect.run(spark, plan).topics
    ids = [number for number in range(60, RECORDS) if number % 7 == 3]
    assert sum(partition.records for partition in inspected.partitions) == len(ids)
    assert [key.text for key in inspected.frequent_keys] == ["somebody"]


def test_columns_of_json_values_are_masked(
    spark: SparkSession, minibroker_address: str, production: str, tmp_path: Path
) -> None:
    """A condition sees the fields of the archive's own schema."""
    directory = tmp_path / "columns"
    plan = ArchivePlan(
        Kafka(minibroker_address),
        str(directory),
        (production,),
        schema="id BIGINT, email STRING, country STRING",
        operations=operations(where="value.id < 10", mask="email=mask", select="id,email"),
    )
    assert run(archive, spark, plan).rows == 10
    rows = spark.read.parquet(str(directory)).select("value.*").collect()
    assert {row.email for row in rows} == {"Xxxxxxxxn-xxxxxxx-xxx"}
    assert {row.country for row in rows} == {None}


def test_a_copy_of_chosen_records_is_masked_and_goes_on(
    spark: SparkSession, minibroker_address: str, production: str, topic: str, tmp_path: Path
) -> None:
    """Into the same partitions, with the same times; the next run masks alike, or is refused."""
    options: dict[str, Any] = {
        "to_topic": topic,
        "checkpoint": tmp_path / "copy",
        "bootstrap": minibroker_address,
        "spark": spark,
        "since": "2026-11-24T01:00",
        "where": "key <> 'customer 3'",
        "mask": "email=email, key=hash, headers=drop",
        "batch_rows": 60,
    }
    outcome = copy(production, **options)
    ids = [n for n in range(RECORDS) if minute_of(n) >= 60 and n % 7 != 3]
    copies = records(minibroker_address, topic)
    facts = {
        (number, json.loads(record.value or b"")["id"], record.timestamp_ms)
        for number, part in copies.items()
        for record in part
    }
    assert facts == {(n % 7 % PARTITIONS, n, BEGIN_MS + minute_of(n) * MINUTE_MS) for n in ids}
    assert outcome.rows == len(ids) == sum(map(len, copies.values()))
    assert len({record.key for part in copies.values() for record in part}) == 6
    assert copy(production, **options).rows == 0
    with pytest.raises(PipelineError, match=r"belongs to a job with mask .* has no mask"):
        copy(production, **{**options, "mask": ()})
    with pytest.raises(PipelineError, match="groups need a copy of all records"):
        copy(production, groups="readers", **options)


def test_a_comparison_is_about_the_chosen_records_and_fields(
    spark: SparkSession, minibroker_address: str, archived: Path, topic: str
) -> None:
    """An archive and a topic with other amounts: different as a whole, the same without them."""
    produce(minibroker_address, topic, amount=3.0)
    options = {"bootstrap": minibroker_address, "spark": spark, "since": "2026-11-24T01:00"}
    comparison = compare(archived, topic, where="partition = 1", mask="key=hash", **options)
    ids = [n for n in range(RECORDS) if minute_of(n) >= 60 and n % 7 % PARTITIONS == 1]
    assert (comparison.records("a"), comparison.records("b")) == (len(ids), len(ids))
    assert comparison.total("changed") == len(ids)
    assert {len(example.key or "") for example in comparison.examples} == {49}
    comparison = compare(archived, topic, select="id, email", **options)
    assert comparison.is_same
    assert comparison.total("equal") == sum(minute_of(number) >= 60 for number in range(RECORDS))
    with pytest.raises(PipelineError, match="sample of a comparison is of keys"):
        compare(archived, topic, sample="1%", **options)


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("contry = 'at'", "`contry` cannot be resolved.*the columns are key string, value string"),
        ("value.country = 'at'", "value.FIELD needs the fields of a value, by --where-schema"),
        ("partition + 1", "is not a boolean"),
        ("rand() < 0.5", "has a random function, which is another value"),
        ("timestamp < now()", r"has now\(\), which is another value"),
        ("partition IN (SELECT 1)", "has a query within it"),
    ],
)
def test_a_condition_that_cannot_be_used_is_explained(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], condition: str, sentence: str
) -> None:
    """In one sentence, without Java's stack on stderr."""
    nothing = spark.createDataFrame([], schemas.RECORD_WITH_HEADERS)
    with pytest.raises(PipelineError, match=sentence):
        operated(nothing, RowOperations(where=condition), b"")
    assert "Logger" not in capfd.readouterr().err


def test_a_condition_that_cannot_be_used_leaves_nothing_behind(
    spark: SparkSession, minibroker_address: str, archived: Path, topic: str, tmp_path: Path
) -> None:
    """No directory belongs to it, and no topic is made: the corrected command runs."""
    kafka, bad = Kafka(minibroker_address), RowOperations(where="value.x = ")
    options = {"bootstrap": minibroker_address, "spark": spark, "where": bad.where}
    to_archive = ArchivePlan(kafka, str(tmp_path / "archive"), ("production",), operations=bad)
    to_topic = ReplayPlan(kafka, str(archived), topic, str(tmp_path / "replay"), operations=bad)
    with pytest.raises(PipelineError, match="Syntax error"):
        run(archive, spark, to_archive)
    with pytest.raises(PipelineError, match="Syntax error"):
        run(replay, spark, to_topic)
    with pytest.raises(PipelineError, match="Syntax error"):
        copy("production", to_topic=topic, checkpoint=tmp_path / "copy", **options)
    assert not list(tmp_path.iterdir())
    assert topic not in preflight.ask(kafka).partitions


def test_python_gets_an_empty_list_for_no_headers(spark: SparkSession) -> None:
    """Spark goes through a whole batch for each row while the last rows have null there."""
    kind = schemas.RECORD_WITH_HEADERS["headers"].dataType
    rows = spark.createDataFrame(
        [(None, 1), ([("a", b"1")], 2)], StructType().add("headers", kind).add("id", "integer")
    )
    table = without_null_headers(rows).toArrow()
    assert table.column_names == ["headers", "id"]
    assert table["headers"].to_pylist() == [[], [{"key": "a", "value": b"1"}]]
    others = spark.createDataFrame([(None, 1)], "headers string, id int")
    assert without_null_headers(others).toArrow().to_pylist() == [{"headers": None, "id": 1}]


def test_a_sample_is_the_same_each_time(spark: SparkSession) -> None:
    """By record about the share; by key all records of a key; by both however rows are split."""
    ids = spark.range(20_000, numPartitions=3)
    rows = ids.select(
        f.concat(f.lit("key "), f.col("id") % 500).cast("binary").alias("key"),
        f.lit("t").alias("topic"),
        (f.col("id") % 4).cast("int").alias("partition"),
        f.col("id").alias("offset"),
    )

    def sampled(share: str, by: str, rows: DataFrame) -> set[tuple[bytes, int]]:
        chosen = operated(rows, RowOperations(sample=share_of(share), sample_by=by), b"").toArrow()
        return {(row["key"], row["offset"]) for row in chosen.to_pylist()}

    by_record, by_key = (sampled("10%", by, rows) for by in ("record", "key"))
    assert 1_800 < len(by_record) < 2_200
    assert by_record == sampled("0.1", "record", rows.repartition(2))
    assert by_record < sampled("20%", "record", rows)
    keys = {key for key, _ in by_key}
    assert 25 < len(keys) < 75
    assert len(by_key) == 40 * len(keys)
    assert len(sampled("100%", "key", rows)) == 20_000
