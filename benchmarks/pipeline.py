"""`python -m benchmarks.pipeline`: the pipeline's ways in and out beside Spark's Kafka connector.

    scan      every column of a topic, into Spark's sink that drops them
    read      every column of a topic, into Parquet files, by a job of Spark that a user writes
    stream    the same by a stream with Trigger.AvailableNow
    segments  the scan out of the broker's files, beside the connector's scan
    archive   `pipeline archive` into Parquet files, beside the connector's stream with
              Trigger.AvailableNow into them
    iceberg   the same into an Iceberg table, beside the connector's Parquet files
    delta     the same into a Delta table
    write     rows that Spark makes, into a topic: the exactly-once sink beside the connector's,
              which may write a row twice
    copy      the same of a stream with Trigger.AvailableNow; the connector reads for both
    long      the scan of a topic ten times as long as a tenth: time, and memory at its highest
    compare   the topic with another one of the same records, beside our scan of one of them

Beside `scan` and `archive` stands a third: librdkafka and Arrow in one process without Spark.

2,000,000 records of 200 bytes in 4 partitions of one broker, or in those of `--partitions 4 100`
and with each of `--codecs none lz4`; one session of Spark with as many tasks as cores. Each way
runs once unmeasured, then they take turns; the value is the median. Only the ratio says anything:
broker and Spark share the machine. `cpu` is what Spark and this process took, in seconds for a
million records. `--quick` tries it out. A row of one broker and one kind of topic takes about a
minute.

More rows: a `Row` in ROWS whose two functions take a `Run`.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import psutil
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from benchmarks import connector, filling, machine
from benchmarks.memory import Memory
from benchmarks.peers import KafkaWithZooKeeper, Minibroker, Peer
from benchmarks.single_process import read_alone, write_alone
from minibroker import pipeline
from minibroker.pipeline import archive as archive_job
from minibroker.pipeline.kafka.source.frames import read_topics, stream_topics
from minibroker.pipeline.spark.session import session
from tests.support import java
from tests.support.build_files import ROOT, required

TENTH: Final = "a-tenth"
TWIN: Final = "twin"
BEGUN_MS: Final = int(time.time() * 1000)
"""The time of the first record of each topic."""
PARTITIONS: Final = (4,)
CODECS: Final = ("none",)
RECORD_BYTES: Final = 200
WAIT_S: Final = 600.0

FULL: Final = (2_000_000, 3)
QUICK: Final = (100_000, 1)
"""Records, and measured rounds."""


class Run(NamedTuple):
    """The means of a row: a broker with its topics filled, Spark, a directory of its own."""

    spark: SparkSession
    address: str
    records: int
    data_dir: Path
    """Directory of the broker: `data` in it has the directories of the partitions."""
    scratch: Path
    topic: str
    partitions: int
    codec: str


class Row(NamedTuple):
    """One comparison: both functions do the same work, each in its way."""

    name: str
    must: float
    """The rate of ours at least, as a part of the other's."""
    aim: float
    ours: Callable[[Run], None]
    other: Callable[[Run], None]
    other_name: str = "connector"
    alone: Callable[[Run], None] | None = None
    """The same work in one process, without Spark."""


def options(run: Run, topic: str | None = None) -> dict[str, str]:
    """For either source; `topic`: None for that of the run."""
    return {
        "kafka.bootstrap.servers": run.address,
        "subscribe": topic or run.topic,
        "startingOffsets": "earliest",
    }


def scan(source: str, topic: str | None = None) -> Callable[[Run], None]:
    """Read all columns of all records."""
    read_function = read_topics if source == "minibroker" else connector.read_topics

    def work(run: Run) -> None:
        frame = read_function(run.spark, options(run, topic))
        frame.write.format("noop").mode("overwrite").save()

    return work


def segments(run: Run) -> None:
    """Measure the scan, out of the broker's files."""
    frame = run.spark.read.format("minibroker-log").option("subscribe", run.topic)
    loaded = frame.load(str(run.data_dir))
    loaded.write.format("noop").mode("overwrite").save()


def scan_alone(run: Run) -> None:
    """Measure the scan in one process."""
    read_alone(run.address, run.topic, run.partitions)


def archive_alone(run: Run) -> None:
    """Measure the archive in one process."""
    write_alone(run.address, run.topic, run.partitions, run.scratch / "files")


def archive(file_format: str) -> Callable[[Run], None]:
    """Archive everything that is there, as the command does it."""

    def work(run: Run) -> None:
        to = run.scratch / "archive"
        archive_job(run.topic, to=to, bootstrap=run.address, format=file_format, spark=run.spark)

    return work


def read_to_parquet(source: str) -> Callable[[Run], None]:
    """Write everything that is there into Parquet files with Spark's writer."""
    read_function = read_topics if source == "minibroker" else connector.read_topics

    def work(run: Run) -> None:
        read_function(run.spark, options(run)).write.parquet(str(run.scratch / "files"))

    return work


def stream_to_parquet(source: str) -> Callable[[Run], None]:
    """Stream everything that is there into Parquet files with Spark's sink."""
    stream = stream_topics if source == "minibroker" else connector.stream_topics

    def work(run: Run) -> None:
        query = (
            stream(run.spark, options(run))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(run.scratch / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(run.scratch / "files"))
        )
        query.awaitTermination()

    return work


WRITERS: Final = 4
"""Tasks that write rows out of nothing."""
SINKS: Final = {"minibroker": "minibroker", "connector": "kafka"}
TARGET: Final = "target"


def write(sink: str) -> Callable[[Run], None]:
    """Rows out of nothing into a topic of their own."""

    def work(run: Run) -> None:
        rows = run.spark.range(0, run.records, 1, WRITERS).selectExpr(
            "binary(lpad(string(id), 10, '0')) as key",
            f"binary(rpad(string(id), {RECORD_BYTES}, 'x')) as value",
        )
        with target(run) as options_of_sink:
            rows.write.format(SINKS[sink]).options(**options_of_sink).mode("append").save()

    return work


def copy(sink: str) -> Callable[[Run], None]:
    """Stream everything that is there into a topic of its own."""

    def work(run: Run) -> None:
        rows = connector.stream_topics(run.spark, options(run))
        with target(run) as options_of_sink:
            writer = rows.select("key", "value", "partition").writeStream.format(SINKS[sink])
            writer = writer.option("checkpointLocation", str(run.scratch / "checkpoint"))
            writer.options(**options_of_sink).trigger(availableNow=True).start().awaitTermination()

    return work


@contextlib.contextmanager
def target(run: Run) -> Iterator[dict[str, str]]:
    """Yield a new topic, and the options of either sink for it; it is deleted at the end."""
    client = AdminClient({"bootstrap.servers": run.address})
    topic = f"{TARGET}-{uuid.uuid4()}"
    client.create_topics([NewTopic(topic, run.partitions, 1)])[topic].result(WAIT_S)
    yield {"kafka.bootstrap.servers": run.address, "topic": topic}
    client.delete_topics([topic])[topic].result(WAIT_S)


PARQUET: Final = stream_to_parquet("connector")


def compare(run: Run) -> None:
    """Compare all records of two topics, which are the same."""
    comparison = pipeline.compare(
        run.topic, TWIN + run.topic, bootstrap=run.address, spark=run.spark
    )
    if not comparison.is_same or comparison.total("equal") != run.records:
        raise ValueError(
            f"{comparison.a} and {comparison.b} are the same, and this was found: {comparison}"
        )


ROWS: Final = (
    Row("scan", 1.5, 2.0, scan("minibroker"), scan("connector"), alone=scan_alone),
    Row("read", 2.0, 2.5, read_to_parquet("minibroker"), read_to_parquet("connector")),
    Row("stream", 1.2, 2.0, stream_to_parquet("minibroker"), PARQUET),
    Row("segments", 1.5, 2.0, segments, scan("connector")),
    Row("archive", 1.5, 2.0, archive("parquet"), PARQUET, alone=archive_alone),
    Row("iceberg", 1.5, 2.0, archive("iceberg"), PARQUET),
    Row("delta", 1.5, 2.0, archive("delta"), PARQUET),
    Row("write", 1.0, 1.3, write("minibroker"), write("connector")),
    Row("copy", 0.7, 1.0, copy("minibroker"), copy("connector")),
    # A tenth of the topic at a tenth of its rate: ten times as long may take eleven times the time.
    Row("long", 0.91, 1.0, scan("minibroker"), scan("minibroker"), "a tenth"),
    # Two topics in at most one and a half times the time of one.
    Row("compare", 0.67, 1.0, compare, scan("minibroker"), "one scan"),
)


def records_of(row: Row, run: Run) -> tuple[int, int]:
    """Return how many records each side of a row works on."""
    return run.records, run.records // 10 if row.other_name == "a tenth" else run.records


def measure(run: Run, row: Row, rounds: int) -> dict[str, object]:
    """Rates of all sides, records a second, their CPU time, and the most memory that each held."""
    ours, other = records_of(row, run)
    sides = {"ours": (row.ours, ours), "other": (row.other, other)}
    if row.alone is not None:
        sides["alone"] = (row.alone, ours)
    rates_by_side: dict[str, list[float]] = {side: [] for side in sides}
    cpu: dict[str, list[float]] = {side: [] for side in sides}
    memory_mb = dict.fromkeys(sides, 0.0)
    for number in range(rounds + 1):
        for side, (work, records) in sides.items():
            before_s = cpu_s()
            with Memory(kind_of) as memory:
                seconds = timed(run, work)
            if number > 0:
                rates_by_side[side].append(records / seconds)
                cpu[side].append((cpu_s() - before_s) / records * 1e6)
                memory_mb[side] = max(memory_mb[side], memory.most["python"] / 1e6)
    medians = {side: statistics.median(rates) for side, rates in rates_by_side.items()}
    return {
        "row": row.name,
        "beside": row.other_name,
        "partitions": run.partitions,
        "codec": run.codec,
        "samples": rates_by_side,
        "ratio": medians["ours"] / medians["other"],
        "ratio_alone": medians["ours"] / medians["alone"] if "alone" in medians else None,
        "cpu": {side: statistics.median(seconds) for side, seconds in cpu.items()},
        "must": row.must,
        "aim": row.aim,
        "python_mb": memory_mb,
    }


def cpu_s() -> float:
    """CPU seconds of this process, Spark and its workers so far, without the brokers."""
    process = psutil.Process()
    own = process.cpu_times()
    total = own.user + own.system
    for child in process.children(recursive=True):
        try:
            if not {"serve", "kafka.Kafka"}.intersection(child.cmdline()):
                total += sum(child.cpu_times()[:4])  # its own, and of its children that ended
        except psutil.NoSuchProcess:
            continue
    return total


def timed(run: Run, work: Callable[[Run], None]) -> float:
    """Seconds of one piece of work; what it wrote is gone afterwards."""
    run.scratch.mkdir()
    try:
        start_s = time.perf_counter()
        work(run)
        return time.perf_counter() - start_s
    finally:
        shutil.rmtree(run.scratch)


def kind_of(process: psutil.Process) -> str | None:
    """Return the kind of a process for `Memory`: Python, but for a broker."""
    is_counted = process.name().startswith("python") and "serve" not in process.cmdline()
    return "python" if is_counted else None


def fill(address: str, run_topic: tuple[str, int, str], count: int) -> None:
    """Write `count` records by a seed. `run_topic`: name, partitions, codec."""
    topic, partitions, codec = run_topic
    chance = random.Random(7)
    values = [chance.randbytes(RECORD_BYTES) for _ in range(1_000)]
    records = (
        {
            "value": values[number % len(values)],
            "key": b"%010d" % number,
            "partition": number % partitions,
            "timestamp": BEGUN_MS + number // 1_000,
        }
        for number in range(count)
    )
    settings = {"linger.ms": "50", "batch.size": "200000", "compression.type": codec}
    filling.fill(address, topic, partitions, records, settings)


def on_broker(peer: Peer, arguments: argparse.Namespace) -> list[dict[str, object]]:
    """All rows against one broker, freshly started and filled."""
    records, rounds = QUICK if arguments.quick else FULL
    records, rounds = arguments.records or records, arguments.rounds or rounds
    with tempfile.TemporaryDirectory(prefix="minibroker-pipeline-", dir=arguments.scratch) as name:
        jars = required(java.SPARK_CONNECTOR / ".done").parent
        directory = Path(name, peer.name)
        directory.mkdir()
        child, port = peer.start(directory)
        try:
            address = f"127.0.0.1:{port}"
            spark = session(
                master="local[*]",
                app_name="minibroker benchmarks",
                jars=sorted(str(jar) for jar in jars.glob("*.jar")),
                conf={"spark.local.dir": f"{name}/spark", "spark.driver.memory": "2g"},
            )
            rows = []
            for partitions, codec in itertools.product(arguments.partitions, arguments.codecs):
                topic = f"records-{partitions}-{codec}"
                fill(address, (topic, partitions, codec), records)
                run = Run(
                    spark=spark,
                    address=address,
                    records=records,
                    data_dir=directory / "data",
                    scratch=Path(name, "scratch"),
                    topic=topic,
                    partitions=partitions,
                    codec=codec,
                )
                rows += [{"broker": peer.name, **row} for row in rows_of(run, arguments, rounds)]
            return rows
        finally:
            child.kill()
            peer.close()


def rows_of(run: Run, arguments: argparse.Namespace, rounds: int) -> Iterator[dict[str, object]]:
    """Yield the rows that were asked for, on one kind of topic; each is shown as soon as it is
    there.
    """
    for row in ROWS:
        if arguments.rows is not None and row.name not in arguments.rows:
            continue
        chosen = row
        if row.other_name == "a tenth":
            fill(run.address, (TENTH + run.topic, run.partitions, run.codec), run.records // 10)
            other = scan("minibroker", TENTH + run.topic)
            chosen = row._replace(other=other)
        elif row.other_name == "one scan":
            fill(run.address, (TWIN + run.topic, run.partitions, run.codec), run.records)
        figures = measure(run, chosen, rounds)
        print(f"{row.name} {run.topic}: {figures['ratio']:.2f}", file=sys.stderr, flush=True)
        yield figures


def render(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the table."""
    lines = [
        f"{'broker':12} {'partitions':>10} {'codec':5} {'row':9} {'ours':>10} {'other':>10} "
        f"{'ratio':>6} {'must':>5} {'aim':>5}  {'':6} {'beside':10} {'alone':>6} "
        f"{'cpu':>6} {'beside':>6} {'workers, MB':>11} {'beside':>6}"
    ]
    for row in rows:
        samples, memory_mb, cpu = row["samples"], row["python_mb"], row["cpu"]
        assert isinstance(samples, dict)
        assert isinstance(memory_mb, dict)
        assert isinstance(cpu, dict)
        ratio, must, aim = (float(str(row[name])) for name in ("ratio", "must", "aim"))
        verdict = "aim" if ratio >= aim else "must" if ratio >= must else "SHORT"
        alone = "" if row["ratio_alone"] is None else f"{float(str(row['ratio_alone'])):.2f}"
        lines.append(
            f"{row['broker']:12} {row['partitions']:>10} {row['codec']:5} {row['row']:9} "
            f"{statistics.median(samples['ours']):>10,.0f} "
            f"{statistics.median(samples['other']):>10,.0f} {ratio:>6.2f} {must:>5} {aim:>5}  "
            f"{verdict:6} {row['beside']:10} {alone:>6} {cpu['ours']:>6.2f} {cpu['other']:>6.2f} "
            f"{memory_mb['ours']:>11.0f} {memory_mb['other']:>6.0f}"
        )
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    """Returns 1 when a row missed its mark."""
    peers: dict[str, Peer] = {peer.name: peer for peer in (Minibroker(), KafkaWithZooKeeper())}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--only", choices=list(peers), help="one broker instead of each")
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in ROWS])
    parser.add_argument("--partitions", nargs="+", type=int, default=PARTITIONS)
    parser.add_argument("--codecs", nargs="+", default=CODECS, help="none, lz4, snappy, gzip, zstd")
    parser.add_argument("--records", type=int, help="records of a topic")
    parser.add_argument("--rounds", type=int, help="measured rounds")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where the data goes")
    arguments = parser.parse_args(words)
    facts = machine.facts()
    machine.warn_if_busy(facts)
    rows: list[dict[str, object]] = []
    for name, peer in peers.items():
        if arguments.only in (None, name):
            # A process each: a session of Spark that has served one broker is warmer for the next.
            rows += on_broker(peer, arguments) if arguments.only else _alone(name, words)
    if not arguments.only:
        path = ROOT / "benchmarks" / "results" / f"pipeline-{datetime.now(UTC):%Y-%m-%dT%H%MZ}.json"
        path.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")
        print(render(rows))
        return int(any(float(str(row["ratio"])) < float(str(row["must"])) for row in rows))
    print(json.dumps(rows))
    print(render(rows), file=sys.stderr)
    return 0


def _alone(name: str, words: list[str] | None) -> list[dict[str, object]]:
    arguments = [*(sys.argv[1:] if words is None else words), "--only", name]
    command = [sys.executable, "-m", "benchmarks.pipeline", *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=dict(os.environ)
    )
    rows = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(rows, list)
    return rows


if __name__ == "__main__":
    sys.exit(main())
