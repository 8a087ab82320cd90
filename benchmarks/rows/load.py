"""Rows `produce`, `consume` and `assigned`: the load tools of Kafka 4.3.1 against any broker."""

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

from benchmarks import wire
from benchmarks.metrics import LOAD_SIZES_BYTES
from benchmarks.peers import ROOT, PeerMissingError, jars, java_command
from benchmarks.rows.session import RowError, Session

TOOLS = "kafka-tools-4.3.1"
_TIMEOUT_S = 120.0
_MEBIBYTE = 1024 * 1024
# As Kafka's own scripts start the tools.
TOOL_FLAGS = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


def measure(session: Session, rows: frozenset[str]) -> None:
    """Produce a topic of each record size, then read it by each consumer that `rows` asks for."""
    for size_bytes, count in zip(LOAD_SIZES_BYTES, session.plan.load_counts, strict=True):
        topic = f"bench-load-{size_bytes}"
        _create(session, topic)
        _produce(session, topic, size_bytes, count)
        if "consume" in rows:
            _consume_in_group(session, topic, size_bytes, count)
        if "assigned" in rows:
            _consume_assigned(session, topic, size_bytes, count)


def producer_command(
    directory: Path, bootstrap: str, topic: str, size_bytes: int, count: int
) -> list[str]:
    """The command line of ProducerPerformance with acks=1, as fast as it goes."""
    arguments = f"--topic {topic} --num-records {count} --record-size {size_bytes} --throughput -1"
    arguments += f" --bootstrap-server {bootstrap} --command-property acks=1"
    tool = "org.apache.kafka.tools.ProducerPerformance"
    return java_command(TOOLS, directory, TOOL_FLAGS, [tool, *arguments.split()])


def assigned_consumer_command(directory: Path, bootstrap: str, topic: str, count: int) -> list[str]:
    """The command line of our AssignedConsumer, which is compiled on its first use."""
    classes = _compiled_classes()
    command = java_command(
        TOOLS, directory, TOOL_FLAGS, ["AssignedConsumer", bootstrap, topic, str(count)]
    )
    position = command.index("-cp") + 1
    command[position] += f":{classes}"
    return command


def parse_producer(output: str) -> float:
    """Records per second of the whole run, from the tool's last line. Raises RowError."""
    totals = [line for line in output.splitlines() if "records/sec" in line and "50th" in line]
    found = re.search(r"([\d.]+) records/sec", totals[-1]) if totals else None
    if found is None:
        raise RowError(f"ProducerPerformance printed no total: {output[-300:].strip()}")
    return float(found[1])


def parse_consumer(output: str) -> float:
    """Fetched MB (2^20 bytes) per second without the time in the group, from the tool's table."""
    lines = [line.split(", ") for line in output.splitlines() if ", " in line]
    for names, numbers in pairwise(lines):
        if "fetch.MB.sec" in names and len(numbers) == len(names):
            return float(numbers[names.index("fetch.MB.sec")])
    raise RowError(f"ConsumerPerformance printed no table: {output[-300:].strip()}")


def parse_assigned(output: str) -> float:
    """Fetched MB (2^20 bytes) per second from what AssignedConsumer prints. Raises RowError."""
    found = re.search(r"read (\d+) bytes in (\d+) ns", output)
    if found is None:
        raise RowError(f"AssignedConsumer failed: {output[-300:].strip()}")
    return int(found[1]) / _MEBIBYTE / (int(found[2]) / 1e9)


def _produce(session: Session, topic: str, size_bytes: int, count: int) -> None:
    command = producer_command(session.directory, session.bootstrap, topic, size_bytes, count)
    output, cpu_s = run_tool(session, command)
    session.add(f"produce_{size_bytes}", parse_producer(output))
    session.add(f"produce_cpu_{size_bytes}", cpu_s / (size_bytes * count / 1e9))


def _consume_in_group(session: Session, topic: str, size_bytes: int, count: int) -> None:
    if not session.has_groups:
        session.results.note(session.broker, "consume", "not yet: it has no consumer groups")
        return
    arguments = f"--bootstrap-server {session.bootstrap} --topic {topic} --num-records {count}"
    tool = "org.apache.kafka.tools.ConsumerPerformance"
    output, _ = run_tool(
        session,
        java_command(TOOLS, session.directory, TOOL_FLAGS, [tool, *arguments.split()]),
    )
    session.add(f"consume_{size_bytes}", parse_consumer(output))


def _consume_assigned(session: Session, topic: str, size_bytes: int, count: int) -> None:
    command = assigned_consumer_command(session.directory, session.bootstrap, topic, count)
    output, cpu_s = run_tool(session, command)
    session.add(f"assigned_{size_bytes}", parse_assigned(output))
    session.add(f"assigned_cpu_{size_bytes}", cpu_s / (size_bytes * count / 1e9))


def run_tool(session: Session, command: list[str]) -> tuple[str, float]:
    """Run a tool to its end; returns what it printed and the CPU seconds the broker spent on it."""
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


def _create(session: Session, topic: str) -> None:
    connection = wire.Connection(session.port)
    try:
        wire.create_topic(connection, topic)
    finally:
        connection.close()


def _compiled_classes() -> Path:
    source = ROOT / "benchmarks" / "java" / "AssignedConsumer.java"
    classes = ROOT / "build" / "benchmarks"
    made = classes / "AssignedConsumer.class"
    if made.exists() and made.stat().st_mtime >= source.stat().st_mtime:
        return classes
    if shutil.which("javac") is None:
        raise PeerMissingError("no javac: install a Java 17 JDK")
    classes.mkdir(parents=True, exist_ok=True)
    command = ["javac", "-cp", f"{jars(TOOLS)}/*", "-d", str(classes), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RowError(f"javac failed: {done.stderr[-300:].strip()}")
    return classes
