"""The sink in Spark: batches and streams into topics, streams into files."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  Spark's own alias
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.schemas import ARCHIVE_PARTITION_COLUMNS
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.options.shared import FILE_FORMATS
from tests.pipeline import topics
from tests.pipeline.committed import offsets, records, values
from tests.pipeline.queries import SECONDS, run
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

OF_KAFKA = {"key": "cast(id as string)", "value": "if(id % 5 = 0, null, concat('value-', id))"}


@pytest.fixture(params=["process_address", "kafka_address"])
def broker(request: pytest.FixtureRequest) -> str:
    """Return two of the three kinds of brokers: Spark is slow."""
    broker_address = request.getfixturevalue(request.param)
    assert isinstance(broker_address, str)
    return broker_address


def options(address: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": address}


def numbered(spark: SparkSession, count: int, **columns: str) -> DataFrame:
    """Return rows of `count` ids in two tasks; columns as SQL of `id`."""
    chosen = [f"{expression} as {name}" for name, expression in columns.items()]
    return spark.range(0, count, 1, 2).selectExpr(*chosen)


def test_a_frame_is_in_the_topic_as_the_connector_writes_it(
    spark: SparkSession, broker: str, topic: str
) -> None:
    """Keys, values, tombstones and headers, each in the partition where Java's clients put it."""
    headers = "if(id % 3 = 0, null, array(named_struct('key', 'h', 'value', binary(string(id)))))"
    frame = numbered(spark, 40, **OF_KAFKA, headers=headers)
    topics.create(broker, topic, 4)
    topics.create(broker, f"{topic}-connector", 4)

    ours_first = frame.write.format("minibroker").options(**options(broker), topic=topic)
    ours_first.mode("append").save()
    connector = frame.write.format("kafka").options(**options(broker), includeHeaders="true")
    connector.option("topic", f"{topic}-connector").save()

    ours, theirs = (
        {
            partition: sorted((record.key, record.value, record.headers) for record in part)
            for partition, part in records(broker, name).items()
        }
        for name in (topic, f"{topic}-connector")
    )
    assert sum(map(len, ours.values())) == 40
    assert ours == theirs


def test_rows_keep_their_time_and_partition(
    spark: SparkSession, process_address: str, topic: str
) -> None:
    topics.create(process_address, topic, 3)
    now_ms = int(datetime.datetime.now(datetime.UTC).timestamp() * 1000)
    frame = numbered(
        spark,
        6,
        value="cast(id as string)",
        timestamp=f"timestamp_millis({now_ms} - id)",
        topic=f"'{topic}'",
        partition="cast(id % 3 as int)",
        offset="id",
    )

    frame.write.format("minibroker").options(**options(process_address)).mode("append").save()

    copies = records(process_address, topic)
    assert {
        number: sorted((record.value, now_ms - record.timestamp_ms) for record in part)
        for number, part in copies.items()
    } == {number: [(b"%d" % id_, id_) for id_ in (number, number + 3)] for number in range(3)}


def test_a_query_that_dies_in_a_micro_batch_goes_on_with_it(
    spark: SparkSession, broker: str, topic: str, tmp_path: Path
) -> None:
    """In the third batch one task writes and the other fails, as if it was killed.

    The restarted query repeats the batch, and every row is there once. A checkpoint that has not
    begun that batch is refused before a query starts.
    """
    topics.create(broker, topic, 2)
    flag = tmp_path / "may-go-on"
    spark.dataSource.register(dying_source(broker, topic, flag))

    def start() -> StreamingQuery:
        frame = spark.readStream.format("dying").load()
        checkpoint = str(tmp_path / "checkpoint")
        return sinks.stream_to_topic(frame, options(broker), topic=topic, checkpoint=checkpoint)

    with pytest.raises(PySparkException, match="the task dies"):
        run(start, lambda query: False)
    assert values(broker, topic) == sorted(b"%d" % number for number in range(25))

    flag.touch()
    run(start, lambda query: query.lastProgress is not None)

    numbers = sorted(int(value) for value in values(broker, topic))
    assert numbers[:30] == list(range(30))
    assert len(numbers) == len(set(numbers))

    for path in (tmp_path / "checkpoint").glob("*/*"):
        if path.name.isdecimal() and int(path.name) >= 2:
            path.unlink()
    with pytest.raises(PipelineError, match=r"has not begun: the checkpoint is older than"):
        start()


def dying_source(address: str, topic: str, flag: Path) -> type[DataSource]:
    """Return a source of ten numbers a micro-batch in two tasks.

    The second task of the third batch waits until the first has written, and fails as long as there
    is no file `flag`.
    """

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:
            return {"next": 0}

        def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # type: ignore[override]
            return {"next": start["next"] + 10}

        def partitions(
            self, start: dict[str, int], end: dict[str, int]
        ) -> Sequence[InputPartition]:
            middle = start["next"] + 5
            return [InputPartition((start["next"], middle)), InputPartition((middle, end["next"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
            first, end = partition.value
            if first == 25 and not flag.exists():
                wait_until(
                    lambda: len(values(address, topic)) == 25, "the first task writes", SECONDS
                )
                raise RuntimeError("the task dies")
            for number in range(first, end):
                yield (str(number),)

    class Dying(DataSource):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def schema(self) -> str:
            return "value string"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return Reader()

    return Dying


def test_wrong_columns_are_one_sentence(
    spark: SparkSession, process_address: str, topic: str, tmp_path: Path
) -> None:
    topics.create(process_address, topic)
    frame = numbered(spark, 2, value="id")
    writer = frame.write.format("minibroker").options(**options(process_address), topic=topic)
    with pytest.raises(PySparkException, match="'value' is of type bigint and the sink needs"):
        writer.mode("append").save()

    text = numbered(spark, 2, value="cast(id as string)")
    writer = text.write.format("minibroker").options(**options(process_address), topic=topic)
    with pytest.raises(PySparkException, match="cannot be overwritten: use mode"):
        writer.mode("overwrite").save()

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    stream = rows.writeStream.format("minibroker").options(**options(process_address))
    query = stream.option("checkpointLocation", str(tmp_path)).option("topic", topic).start()
    with pytest.raises(PySparkException, match="'value' is of type bigint and the sink needs"):
        query.awaitTermination(SECONDS)


def test_a_repeated_batch_would_have_the_same_tasks(
    spark: SparkSession, process_address: str, topic: str, tmp_path: Path
) -> None:
    """Adaptive execution would make one task of this small shuffle, and two of a larger one."""
    topics.create(process_address, topic, 2)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 40).load()
    text = rows.selectExpr("string(value) AS value").repartition(F.col("value"))
    setting = "spark.sql.adaptive.streaming.stateless.enabled"
    old_value = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    try:
        query = sinks.stream_to_topic(
            text,
            options(process_address),
            topic=topic,
            checkpoint=str(tmp_path / "fixed"),
            available_now=True,
        )
        assert query.awaitTermination(SECONDS)
        stream = text.writeStream.format("minibroker").options(**options(process_address))
        stream = stream.option("checkpointLocation", str(tmp_path / "adaptive"))
        adaptive = stream.option("topic", topic).trigger(availableNow=True).start()
        with pytest.raises(PySparkException, match=r"set spark\.sql\.adaptive\.enabled=false"):
            adaptive.awaitTermination(SECONDS)
    finally:
        spark.conf.set(setting, old_value)
    tasks = [bool(offsets(process_address, f"minibroker-sink-{query.id}-{n}")) for n in range(3)]
    assert tasks == [True, True, False]
    assert len(values(process_address, topic)) == 40


@pytest.mark.parametrize("file_format", FILE_FORMATS)
def test_files_are_partitioned_by_topic_and_date(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    (tmp_path / "in").mkdir()
    frame = numbered(spark, 4, value="concat('v', id)", topic="if(id < 3, 'a', 'b')", id="id")
    frame = frame.withColumn(
        "date", F.make_date(F.lit(2026), F.lit(11), F.col("id").cast("int") + 1)
    )
    frame.write.mode("append").parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))

    query = sinks.stream_to_files(
        stream,
        str(tmp_path / "out"),
        checkpoint=str(tmp_path / "checkpoint"),
        file_format=file_format,
        partition_by=ARCHIVE_PARTITION_COLUMNS,
        available_now=True,
    )
    assert query.awaitTermination(SECONDS)

    partitions = sorted(
        str(path.parent.relative_to(tmp_path / "out"))
        for path in (tmp_path / "out").rglob(f"part-*.{file_format}*")
        if not path.name.startswith(".")
    )
    assert partitions == [
        "topic=a/date=2026-11-01",
        "topic=a/date=2026-11-02",
        "topic=a/date=2026-11-03",
        "topic=b/date=2026-11-04",
    ]
    reader = spark.read.option("header", "true").format(file_format)
    assert reader.load(str(tmp_path / "out")).count() == 4
