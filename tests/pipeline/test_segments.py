"""Directories of minibroker and Kafka, read while no broker runs: the rows are the broker's.

Each broker is filled with every format and codec, transactions (one of them open for ever),
compacted and shortened logs; its rows are taken over the network in both isolation levels; then it
is killed, and what is read from its files has to be the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from minibroker.broker.storage import names
from minibroker.pipeline.explain import explained
from minibroker.pipeline.kafka.source.frames import read_topics
from tests.pipeline import topics
from tests.pipeline.source_rows import Rows, sorted_rows
from tests.support.broker import Minibroker
from tests.support.peers import ONE_NODE, KafkaPeer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.peers import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

OLD_FORMATS_KEPT = {
    "inter.broker.protocol.version": "2.8",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
}
ISOLATION = ("read_committed", "read_uncommitted")
OPEN = "left-open"
SHORTENED = "shortened"
SEGMENTED = "segmented"


class Remains(NamedTuple):
    """The directory of a broker, and its rows by isolation level before it was killed."""

    log_dir: Path
    rows: dict[str, Rows]


@pytest.fixture(scope="module", params=["minibroker", "kafka"])
def remains(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Remains:
    directory = tmp_path_factory.mktemp(f"left-by-{request.param}")
    log_dir = directory / "data"
    broker: Minibroker | KafkaPeer
    if request.param == "kafka":
        zookeeper: ZooKeeper = request.getfixturevalue("zookeeper")
        broker = KafkaPeer(
            "3.9.1",
            directory,
            zookeeper=f"{zookeeper.connect}/segments",
            settings=OLD_FORMATS_KEPT,
            log_dir=log_dir,
        )
    else:
        settings = {**ONE_NODE, **OLD_FORMATS_KEPT}
        broker = Minibroker(log_dir, directory / "broker.log", settings=settings)
    broker.start()
    try:
        fill(broker.address, log_dir)
        rows = {
            isolation: rows_of_broker(spark, broker.address, isolation) for isolation in ISOLATION
        }
    finally:
        broker.kill()
    return Remains(log_dir, rows)


def fill(address: str, log_dir: Path) -> None:
    """Fill the broker with the topics of `topics`, and with cases that only files have."""
    topics.fill_formats(address, "of-")
    topics.fill_odd(address, "")
    topics.fill_transactional(address, "transactional")
    topics.fill_aborted_at_the_end(address, "aborted-at-the-end")
    topics.fill_compacted(address, "compacted")
    topics.create(address, SEGMENTED, 1, {"segment.bytes": "1024"})
    for _ in range(10):
        topics.send(address, SEGMENTED, 20)
    topics.create(address, SHORTENED)
    topics.send(address, SHORTENED, 50)
    client = AdminClient({"bootstrap.servers": address})
    [shortened] = client.delete_records([TopicPartition(SHORTENED, 0, 31)]).values()
    assert shortened.result(topics.SECONDS).low_watermark == 31
    checkpoint = log_dir / names.LOG_START_OFFSETS
    wait_until(
        lambda: checkpoint.exists() and f"{SHORTENED} 0 31" in checkpoint.read_text(),
        "the log start offset is in its checkpoint",
    )
    leave_open(address)


def leave_open(address: str) -> None:
    """Write records of a transaction that is never ended, and others behind them."""
    topics.create(address, OPEN)
    topics.send(address, OPEN, 3)
    client = topics.producer(
        address, transactional_id="never-ends", transaction_timeout_ms="900000"
    )
    client.init_transactions(topics.SECONDS)
    client.begin_transaction()
    client.produce(OPEN, b"open", b"k", partition=0)
    assert client.flush(topics.SECONDS) == 0
    topics.send(address, OPEN, 2)


def rows_of_broker(spark: SparkSession, address: str, isolation: str) -> Rows:
    options = {
        "kafka.bootstrap.servers": address,
        "kafka.isolation.level": isolation,
        "subscribePattern": ".*",
        "includeHeaders": "true",
    }
    return sorted_rows(read_topics(spark, options).collect())


def rows_of_files(spark: SparkSession, path: Path, **options: str) -> Rows:
    reader_options = {"includeHeaders": "true"}
    reader_options |= {name.replace("_", "."): value for name, value in options.items()}
    return sorted_rows(
        spark.read.format("minibroker-log").options(**reader_options).load(str(path)).collect()
    )


@pytest.mark.parametrize("isolation", ISOLATION)
def test_files_give_the_rows_that_the_broker_gave(
    spark: SparkSession, remains: Remains, isolation: str
) -> None:
    rows = rows_of_files(spark, remains.log_dir, isolation_level=isolation)
    assert rows == remains.rows[isolation]
    of_topic = {row[2] for row in rows}
    assert {"of-v2", "odd", "transactional", "compacted", SEGMENTED, SHORTENED, OPEN} <= of_topic
    assert min(row[4] for row in rows if row[2] == SHORTENED) == 31
    of_open = [row[4] for row in rows if row[2] == OPEN]
    assert of_open == ([0, 1, 2] if isolation == "read_committed" else [0, 1, 2, 3, 4, 5])


def test_all_formats_and_codecs_were_among_them(spark: SparkSession, remains: Remains) -> None:
    reader = spark.read.format("minibroker-batches").option("subscribePattern", "of-.*")
    pairs = reader.load(str(remains.log_dir)).select("magic", "codec").distinct().collect()
    assert {(row.magic, row.codec) for row in pairs} >= {
        (0, "none"),
        (0, "gzip"),
        *((1, codec) for codec in topics.CODECS[:4]),
        *((2, codec) for codec in topics.CODECS),
    }


def test_batches_show_aborted_transactions(spark: SparkSession, remains: Remains) -> None:
    reader = spark.read.format("minibroker-batches").option("subscribe", "transactional")
    of_topic = reader.load(str(remains.log_dir))
    aborted = of_topic.where("isAborted").selectExpr("sum(records)").collect()[0][0]
    markers = of_topic.where("isControl").count()
    assert (aborted, markers) == (9, 6)
    assert of_topic.where("defect is not null").count() == 0


def test_small_segments_share_a_task(spark: SparkSession, remains: Remains) -> None:
    directory = remains.log_dir / f"{SEGMENTED}-0"
    frame = spark.read.format("minibroker-log").load(str(directory))
    assert frame.rdd.getNumPartitions() == 1
    assert len(list(directory.glob("*.log"))) > 3
    assert frame.count() == 200


def test_a_torn_tail_is_passed_by_and_told(
    spark: SparkSession, remains: Remains, tmp_path: Path
) -> None:
    copy = tmp_path / f"{SEGMENTED}-0"
    shutil.copytree(remains.log_dir / copy.name, copy)
    newest = max(path for path in copy.glob("*.log") if path.stat().st_size)
    content = newest.read_bytes()
    newest.write_bytes(content[:-3])

    whole = [row for row in remains.rows["read_committed"] if row[2] == SEGMENTED]
    rows = rows_of_files(spark, tmp_path)
    assert rows == whole[: len(rows)]
    assert 0 < len(rows) < len(whole)
    [defect] = (
        spark.read.format("minibroker-batches")
        .load(str(tmp_path))
        .where("defect is not null")
        .collect()
    )
    assert defect.segment == newest.name
    assert defect.position + defect.sizeBytes == len(content) - 3


def test_mistakes_of_users_are_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="PipelineError") as raised:
        spark.read.format("minibroker-log").load(str(tmp_path / "nowhere")).count()
    assert str(explained(raised.value)) == (
        f"{tmp_path}/nowhere is no directory; expected a broker's log directory, or that of a "
        "partition"
    )
