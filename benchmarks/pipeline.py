"""`python -m benchmarks.pipeline`: the pipeline's ways in and out beside Spark's Kafka connector.

    scan      every column of a topic, into Spark's sink that drops them
    segments  the same out of the broker's files, beside the connector's scan
    archive   a stream with Trigger.AvailableNow into Parquet files
    write     rows that Spark makes, into a topic: the exactly-once sink beside the connector's,
              which may write a row twice
    copy      the same of a stream with Trigger.AvailableNow; the connector reads for both
    long      the scan of a topic ten times as long as a tenth: time, and memory at its highest

2,000,000 records of 200 bytes in 4 partitions of one broker; one session of Spark with as many
tasks as cores. Each way runs once unmeasured, then they take turns; the value is the median. Only
the ratio says anything: broker and Spark share the machine. `--quick` tries it out.

More rows: a `Row` in ROWS whose two functions take a `Run`.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from benchmarks import machine
from benchmarks.peers import KafkaWithZooKeeper, Minibroker, Peer
from minibroker.pipeline.session import session
from minibroker.pipeline.sources import read_topics, stream_topics
from tests.support import java
from tests.support.made import ROOT, required

TOPIC: Final = "records"
TENTH: Final = "a-tenth"
PARTITIONS: Final = 4
RECORD_BYTES: Final = 200
WAIT_S: Final = 600.0
MEMORY_EVERY_S: Final = 0.1

FULL: Final = (2_000_000, 5)
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


class Row(NamedTuple):
    """One comparison: both functions do the same work, each in its way."""

    name: str
    must: float
    """The rate of ours at least, as a part of the other's."""
    aim: float
    ours: Callable[[Run], None]
    other: Callable[[Run], None]
    other_name: str = "connector"


def options(run: Run, topic: str = TOPIC) -> dict[str, str]:
    """For either source."""
    return {
        "kafka.bootstrap.servers": run.address,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }


def scan(source: str, topic: str = TOPIC) -> Callable[[Run], None]:
    """Read all columns of all records."""

    def work(run: Run) -> None:
        frame = read_topics(run.spark, options(run, topic), source=source)
        frame.write.format("noop").mode("overwrite").save()

    return work


def segments(run: Run) -> None:
    """The scan, out of the broker's files."""
    frame = run.spark.read.format("minibroker-log").option("subscribe", TOPIC)
    loaded = frame.load(str(run.data_dir))
    loaded.write.format("noop").mode("overwrite").save()


def archive(source: str) -> Callable[[Run], None]:
    """Stream everything that is there into Parquet files."""

    def work(run: Run) -> None:
        query = (
            stream_topics(run.spark, options(run), source=source)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(run.scratch / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(run.scratch / "files"))
        )
        query.awaitTermination()

    return work


SINKS: Final = {"minibroker": "minibroker", "connector": "kafka"}
TARGET: Final = "target"


def write(sink: str) -> Callable[[Run], None]:
    """Rows out of nothing into a topic of their own."""

    def work(run: Run) -> None:
        rows = run.spark.range(0, run.records, 1, PARTITIONS).selectExpr(
            "binary(lpad(string(id), 10, '0')) as key",
            f"binary(rpad(string(id), {RECORD_BYTES}, 'x')) as value",
        )
        with target(run) as given:
            rows.write.format(SINKS[sink]).options(**given).mode("append").save()

    return work


def copy(sink: str) -> Callable[[Run], None]:
    """Stream everything that is there into a topic of its own."""

    def work(run: Run) -> None:
        rows = stream_topics(run.spark, options(run), source="connector")
        with target(run) as given:
            writer = rows.select("key", "value", "partition").writeStream.format(SINKS[sink])
            writer = writer.option("checkpointLocation", str(run.scratch / "checkpoint"))
            writer.options(**given).trigger(availableNow=True).start().awaitTermination()

    return work


@contextlib.contextmanager
def target(run: Run) -> Iterator[dict[str, str]]:
    """A new topic, and the options of either sink for it; it is deleted at the end."""
    client = AdminClient({"bootstrap.servers": run.address})
    topic = f"{TARGET}-{uuid.uuid4()}"
    client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(WAIT_S)
    yield {"kafka.bootstrap.servers": run.address, "topic": topic}
    client.delete_topics([topic])[topic].result(WAIT_S)


ROWS: Final = (
    Row("scan", 0.7, 1.0, scan("minibroker"), scan("connector")),
    Row("segments", 0.5, 1.0, segments, scan("connector")),
    Row("archive", 0.7, 1.0, archive("minibroker"), archive("connector")),
    Row("write", 0.7, 1.0, write("minibroker"), write("connector")),
    Row("copy", 0.7, 1.0, copy("minibroker"), copy("connector")),
    # A tenth of the topic at a tenth of its rate: ten times as long may take eleven times the time.
    Row("long", 0.91, 1.0, scan("minibroker"), scan("minibroker", TENTH), "a tenth"),
)


def records_of(row: Row, run: Run) -> tuple[int, int]:
    """Return how many records each side of a row works on."""
    return run.records, run.records // 10 if row.other_name == "a tenth" else run.records


def measure(run: Run, row: Row, rounds: int) -> dict[str, object]:
    """Rates of both sides, records a second, and the most memory that each held."""
    ours, other = records_of(row, run)
    found: dict[str, list[float]] = {"ours": [], "other": []}
    memory_mb = {"ours": 0.0, "other": 0.0}
    for number in range(rounds + 1):
        for side, work, records in (("ours", row.ours, ours), ("other", row.other, other)):
            with Memory() as held:
                seconds = timed(run, work)
            if number > 0:
                found[side].append(records / seconds)
                memory_mb[side] = max(memory_mb[side], held.python_mb)
    ratio = statistics.median(found["ours"]) / statistics.median(found["other"])
    return {
        "row": row.name,
        "beside": row.other_name,
        "samples": found,
        "ratio": ratio,
        "must": row.must,
        "aim": row.aim,
        "python_mb": memory_mb,
    }


def timed(run: Run, work: Callable[[Run], None]) -> float:
    """Seconds of one piece of work; what it wrote is gone afterwards."""
    run.scratch.mkdir()
    try:
        begun = time.perf_counter()
        work(run)
        return time.perf_counter() - begun
    finally:
        shutil.rmtree(run.scratch)


class Memory:
    """The most that Python's processes below this one held at once while it was open."""

    def __init__(self) -> None:
        self.python_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        here = psutil.Process()
        while not self._over.wait(MEMORY_EVERY_S):
            held = 0
            for child in here.children(recursive=True):
                try:
                    if child.name().startswith("python") and "serve" not in child.cmdline():
                        held += child.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.python_mb = max(self.python_mb, held / 1e6)


def fill(address: str, topic: str, count: int) -> None:
    """`count` records in PARTITIONS partitions, by a seed."""
    client = AdminClient({"bootstrap.servers": address})
    client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(WAIT_S)
    chance = random.Random(7)
    values = [chance.randbytes(RECORD_BYTES) for _ in range(1_000)]
    producer = Producer(
        {"bootstrap.servers": address, "linger.ms": "50", "batch.size": str(200_000)}
    )
    for number in range(count):
        value, key = values[number % len(values)], b"%010d" % number
        while True:
            try:
                producer.produce(topic, value, key, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(WAIT_S)
    if left:
        raise TimeoutError(f"{left} records of {topic} were not acknowledged in {WAIT_S:.0f} s")


def on_broker(peer: Peer, arguments: argparse.Namespace) -> list[dict[str, object]]:
    """All rows against one broker, freshly started and filled."""
    records, rounds = QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory(prefix="minibroker-pipeline-", dir=arguments.scratch) as name:
        jars = required(java.SPARK_CONNECTOR / ".done").parent
        directory = Path(name, peer.name)
        directory.mkdir()
        child, port = peer.start(directory)
        try:
            address = f"127.0.0.1:{port}"
            fill(address, TOPIC, records)
            fill(address, TENTH, records // 10)
            spark = session(
                master="local[*]",
                app_name="minibroker benchmarks",
                jars=sorted(str(jar) for jar in jars.glob("*.jar")),
                conf={"spark.local.dir": f"{name}/spark", "spark.driver.memory": "2g"},
            )
            run = Run(spark, address, records, directory / "data", Path(name, "scratch"))
            chosen = [row for row in ROWS if arguments.rows is None or row.name in arguments.rows]
            return [{"broker": peer.name, **measure(run, row, rounds)} for row in chosen]
        finally:
            child.kill()
            peer.close()


def render(found: Sequence[Mapping[str, object]]) -> str:
    """The table."""
    lines = [
        f"{'broker':12} {'row':9} {'ours':>10} {'other':>10} {'ratio':>6} {'must':>5} {'aim':>5}  "
        f"{'':6} {'beside':10} {'workers, MB':>11} {'beside':>6}"
    ]
    for row in found:
        samples, memory_mb = row["samples"], row["python_mb"]
        assert isinstance(samples, dict)
        assert isinstance(memory_mb, dict)
        ratio, must, aim = (float(str(row[name])) for name in ("ratio", "must", "aim"))
        verdict = "aim" if ratio >= aim else "must" if ratio >= must else "SHORT"
        lines.append(
            f"{row['broker']:12} {row['row']:9} {statistics.median(samples['ours']):>10,.0f} "
            f"{statistics.median(samples['other']):>10,.0f} {ratio:>6.2f} {must:>5} {aim:>5}  "
            f"{verdict:6} {row['beside']:10} {memory_mb['ours']:>11.0f} {memory_mb['other']:>6.0f}"
        )
    return "\n".join(lines)


def main(given: list[str] | None = None) -> int:
    """Returns 1 when a row missed its mark."""
    peers: dict[str, Peer] = {peer.name: peer for peer in (Minibroker(), KafkaWithZooKeeper())}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--only", choices=list(peers), help="one broker instead of each")
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in ROWS])
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where the data goes")
    arguments = parser.parse_args(given)
    facts = machine.facts()
    if machine.is_busy(facts):
        print("Others use the machine: do not quote these numbers.", file=sys.stderr)
    found: list[dict[str, object]] = []
    for name, peer in peers.items():
        if arguments.only in (None, name):
            # A process each: a session of Spark that has served one broker is warmer for the next.
            found += on_broker(peer, arguments) if arguments.only else _alone(name, given)
    if not arguments.only:
        path = ROOT / "benchmarks" / "results" / f"pipeline-{datetime.now(UTC):%Y-%m-%dT%H%MZ}.json"
        path.write_text(json.dumps({"machine": facts, "rows": found}, indent=1) + "\n")
        print(render(found))
        return int(any(float(str(row["ratio"])) < float(str(row["must"])) for row in found))
    print(json.dumps(found))
    print(render(found), file=sys.stderr)
    return 0


def _alone(name: str, given: list[str] | None) -> list[dict[str, object]]:
    arguments = [*(sys.argv[1:] if given is None else given), "--only", name]
    command = [sys.executable, "-m", "benchmarks.pipeline", *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=dict(os.environ)
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, list)
    return found


if __name__ == "__main__":
    sys.exit(main())
