"""Rows `produce`, `consume` and `assigned`: the load tools of Kafka 4.3.1 against any broker.

Rows `produce_to` and `produce_lz4` are the producer's again: to topics of many partitions, and with
compressed batches, which Kafka and minibroker open to check them.
"""

import re
import subprocess
from itertools import pairwise
from pathlib import Path

from benchmarks import wire
from benchmarks.metrics import LOAD_SIZES_BYTES, SPREAD_LOADS
from benchmarks.rows.session import RowError, Session
from tests.support import java
from tests.support.build_files import ROOT

_TIMEOUT_S = 120.0
_MEBIBYTE = 1024 * 1024
# As Kafka's own scripts start the tools.
_TOOL_FLAGS = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


def measure(session: Session, rows: frozenset[str]) -> None:
    """Produce a topic of each record size, then read it by each consumer that `rows` asks for."""
    for size_bytes, count in zip(LOAD_SIZES_BYTES, session.plan.load_counts, strict=True):
        topic = f"bench-load-{size_bytes}"
        wire.create_topic_at(session.port, topic)
        produce(session, topic, size_bytes, count, name=str(size_bytes))
        if "consume" in rows:
            _consume_in_group(session, topic, size_bytes, count)
        if "assigned" in rows:
            consume_assigned(session, topic, size_bytes, count)


def measure_partitions(session: Session) -> None:
    """Produce as much as the smallest records are to a topic of each number of partitions."""
    total_bytes = LOAD_SIZES_BYTES[0] * session.plan.load_counts[0]
    for partitions, size_bytes in SPREAD_LOADS:
        topic = f"bench-load-to-{partitions}"
        wire.create_topic_at(session.port, topic, partitions=partitions)
        count = total_bytes // size_bytes
        produce(session, topic, size_bytes, count, name=f"to_{partitions}")


def measure_lz4(session: Session) -> None:
    """Produce records of 1 KB in batches that the client compresses."""
    topic = "bench-load-lz4"
    wire.create_topic_at(session.port, topic)
    counts = dict(zip(LOAD_SIZES_BYTES, session.plan.load_counts, strict=True))
    produce(session, topic, 1_000, counts[1_000], name="lz4", codec="lz4")


def produce(
    session: Session, topic: str, size_bytes: int, count: int, *, name: str, codec: str = "none"
) -> None:
    """Add the rate, and the broker's CPU time for each GB of records, under the metric's `name`."""
    command = producer_command(session.bootstrap, topic, size_bytes, count, codec=codec)
    output, cpu_s = run_tool(session, command)
    session.add(f"produce_{name}", parse_producer(output))
    session.add(f"produce_cpu_{name}", cpu_s / (size_bytes * count / 1e9))


def consume_assigned(session: Session, topic: str, size_bytes: int, count: int) -> None:
    command = assigned_consumer_command(session.bootstrap, topic, count)
    output, cpu_s = run_tool(session, command)
    session.add(f"assigned_{size_bytes}", parse_assigned(output))
    session.add(f"assigned_cpu_{size_bytes}", cpu_s / (size_bytes * count / 1e9))


def tool_command(tool: str, arguments: str) -> list[str]:
    """Return the command line of a tool of Kafka 4.3.1, its arguments in one text."""
    return _java_command(f"org.apache.kafka.tools.{tool}", *arguments.split())


def producer_command(
    bootstrap: str, topic: str, size_bytes: int, count: int, *, codec: str = "none"
) -> list[str]:
    """Return the command line of ProducerPerformance with acks=1, as fast as it goes."""
    arguments = f"--topic {topic} --num-records {count} --record-size {size_bytes} --throughput -1"
    arguments += f" --bootstrap-server {bootstrap} --command-property acks=1"
    arguments += f" compression.type={codec}"
    return tool_command("ProducerPerformance", arguments)


def assigned_consumer_command(bootstrap: str, topic: str, count: int) -> list[str]:
    """Return the command line of our AssignedConsumer, which is compiled on its first use."""
    sources = ROOT / "benchmarks" / "java"
    classes = java.compiled("AssignedConsumer", java.TOOLS_43, sources)
    return _java_command("AssignedConsumer", bootstrap, topic, str(count), classes=classes)


def parse_producer(output: str) -> float:
    """Return records per second of the whole run, from the tool's last line. Raises RowError."""
    totals = [line for line in output.splitlines() if "records/sec" in line and "50th" in line]
    match = re.search(r"([\d.]+) records/sec", totals[-1]) if totals else None
    if match is None:
        raise RowError(f"ProducerPerformance printed no total: {output[-300:].strip()}")
    return float(match[1])


def parse_consumer(output: str) -> float:
    """Return fetched MB (2^20 bytes) per second from the table, without the time in the group."""
    lines = [line.split(", ") for line in output.splitlines() if ", " in line]
    for names, numbers in pairwise(lines):
        if "fetch.MB.sec" in names and len(numbers) == len(names):
            return float(numbers[names.index("fetch.MB.sec")])
    raise RowError(f"ConsumerPerformance printed no table: {output[-300:].strip()}")


def parse_assigned(output: str) -> float:
    """Return MB (2^20 bytes) per second of AssignedConsumer. Raises RowError without a figure."""
    match = re.search(r"read (\d+) bytes in (\d+) ns", output)
    if match is None:
        raise RowError(f"AssignedConsumer failed: {output[-300:].strip()}")
    return int(match[1]) / _MEBIBYTE / (int(match[2]) / 1e9)


def run_tool(session: Session, command: list[str]) -> tuple[str, float]:
    """Run a tool to its end; return its output and the CPU seconds of the broker meanwhile."""
    before_s = session.child.cpu_seconds()
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    session.child.check()
    if done.returncode:
        raise RowError(f"the tool ended with {done.returncode}: {done.stdout[-300:].strip()}")
    return done.stdout, session.child.cpu_seconds() - before_s


def _java_command(main_class: str, *arguments: str, classes: Path | None = None) -> list[str]:
    return java.java_command(
        java.TOOLS_43,
        main_class,
        *arguments,
        options=[java.log_option("tools")],
        classes=classes,
        jvm=_TOOL_FLAGS,
    )


def _consume_in_group(session: Session, topic: str, size_bytes: int, count: int) -> None:
    if not session.has_groups:
        session.results.note(session.broker, "consume", "not yet: it has no consumer groups")
        return
    arguments = f"--bootstrap-server {session.bootstrap} --topic {topic} --num-records {count}"
    output, _ = run_tool(session, tool_command("ConsumerPerformance", arguments))
    session.add(f"consume_{size_bytes}", parse_consumer(output))
