"""Row `quotas`: what limits of 1 and 10 MB/s let through, who is felt by whom, what no limit costs.

Bytes are counted outside the throttled client: its records' end offsets are asked for by another
connection, or its own progress lines are read. A quota is a cycle: after a burst of a whole window
(`quota.window.num` samples of a second) nothing comes until the burst is out of the samples, then
comes the next. So a rate means something over whole windows only, and the rate after the first
window is the median over all spans of one window that begin after it.
"""

import re
import statistics
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import wire
from benchmarks.children import Child
from benchmarks.metrics import KFAKE, KFAKE_DISK, QUOTA_LIMITS_MB, SUBJECT
from benchmarks.peers import Minibroker
from benchmarks.rows.load import (
    assigned_consumer_command,
    parse_producer,
    producer_command,
    run_tool,
    tool_command,
)
from benchmarks.rows.raw import RawClient
from benchmarks.rows.session import RowError, Session
from tests.support.processes import free_port

RECORD_BYTES = 1_000
WINDOW_S = 11.0
"""11 samples of one second: the default of every Kafka."""
_MB = 1_000_000
_MEBIBYTE = 1024 * 1024
_POLL_S = 0.1
_STEP_S = 0.25
_SETTLE_S = 1.0
_PATIENCE_S = 60.0
"""Until a tool must have begun."""
_FETCH_BYTES = 128 * 1024
"""A fetch is let through whole or not at all: a default one, 1 MiB, is a tenth of a window here."""
_ENDLESS = 1_000_000_000
_IN_FLIGHT = 50
_ALTER_QUOTAS, _LIST_OFFSETS = 49, 2
_PRODUCER_KEY, _CONSUMER_KEY = "producer_byte_rate", "consumer_byte_rate"


class Sample(NamedTuple):
    """The bytes so far at a time."""

    at_s: float
    total_bytes: float


def measure(session: Session) -> None:
    """Both tools at every limit, the neighbour, and (minibroker) the cost of having no quota."""
    if session.broker in (KFAKE, KFAKE_DISK):
        session.results.note(session.broker, "quotas", "not to be had: it stores quotas only")
        return
    connection = wire.Connection(session.port)
    try:
        for limit_mb in QUOTA_LIMITS_MB:
            _measure_producer(session, connection, limit_mb)
        _fill(session, connection)
        for limit_mb in QUOTA_LIMITS_MB:
            _measure_consumer(session, connection, limit_mb)
        _measure_neighbour(session, connection)
    finally:
        connection.close()
    if session.broker == SUBJECT:
        _measure_hot_path(session)


def let_through(samples: Sequence[Sample], duration_s: float) -> float:
    """MB of the first `duration_s` after the first sample."""
    start = samples[0]
    return (_total_at(samples, start.at_s + duration_s) - start.total_bytes) / _MB


def rate_after_first_window(samples: Sequence[Sample]) -> float:
    """MB/s, the median over all spans of one window that begin after the first one.

    Raises RowError when the samples end before there is such a span.
    """
    begin_s = samples[0].at_s + WINDOW_S
    rates = []
    while begin_s + WINDOW_S <= samples[-1].at_s:
        moved = _total_at(samples, begin_s + WINDOW_S) - _total_at(samples, begin_s)
        rates.append(moved / WINDOW_S / _MB)
        begin_s += _STEP_S
    if not rates:
        raise RowError(f"{samples[-1].at_s - samples[0].at_s:.0f} s are less than two windows")
    return statistics.median(rates)


def parse_progress(output: str) -> list[Sample]:
    """AssignedConsumer's lines `at NANOSECONDS BYTES`."""
    pairs = re.findall(r"^at (\d+) (\d+)$", output, re.MULTILINE)
    return [Sample(int(at_ns) / 1e9, float(total)) for at_ns, total in pairs]


def parse_detailed(output: str) -> list[Sample]:
    """ConsumerPerformance's lines of --show-detailed-stats with times as HHmmssSSS."""
    samples = []
    for line in output.splitlines():
        columns = line.split(", ")
        if len(columns) > 3 and re.fullmatch(r"\d{9}", columns[0]):
            hours, minutes, rest = columns[0][:2], columns[0][2:4], columns[0][4:]
            at_s = int(hours) * 3600 + int(minutes) * 60 + int(rest) / 1000
            samples.append(Sample(at_s, float(columns[2]) * _MEBIBYTE))
    return samples


def complete(samples: Sequence[Sample], duration_s: float) -> list[Sample]:
    """With nothing at the start and the last total at the end: tools tell only what has come."""
    whole = list(samples)
    if whole[0].total_bytes:
        whole.insert(0, Sample(whole[0].at_s - _POLL_S, 0.0))
    end_s = whole[0].at_s + duration_s
    if whole[-1].at_s < end_s:
        whole.append(Sample(end_s, whole[-1].total_bytes))
    return whole


def _total_at(samples: Sequence[Sample], at_s: float) -> float:
    """Bytes that had gone through by then, as the last sample before told."""
    return max(
        (sample.total_bytes for sample in samples if sample.at_s <= at_s),
        default=samples[0].total_bytes,
    )


def _add(session: Session, tool: str, limit_mb: int, samples: Sequence[Sample]) -> None:
    """Add the figures of one throttled run."""
    if len(samples) < 2:
        raise RowError(f"{tool} at {limit_mb} MB/s made no progress")
    samples = complete(samples, session.plan.quota_s)
    amount = let_through(samples, session.plan.quota_s)
    session.add(f"quota_{tool}_{limit_mb}_least", amount)
    session.add(f"quota_{tool}_{limit_mb}_most", amount)
    name = f"quota_{tool}_{limit_mb}_off"
    try:
        rate = rate_after_first_window(samples)
    except RowError as error:
        session.results.note(session.broker, name, f"not measured: {error}")
        return
    session.add(name, abs(rate - limit_mb) / limit_mb * 100)


def _measure_producer(session: Session, connection: wire.Connection, limit_mb: int) -> None:
    topic = client = f"bench-quota-{limit_mb}"
    wire.create_topic(connection, topic)
    wire.wait_for_leader(connection, topic)
    _limit(connection, client, _PRODUCER_KEY, limit_mb * _MB)
    tool = _start_producer(session, topic, client)
    try:
        samples = _watch(connection, topic, session.plan.quota_s, tool.check)
    finally:
        tool.kill()
        _limit(connection, client, _PRODUCER_KEY, None)
    _add(session, "produce", limit_mb, samples)


def _watch(
    connection: wire.Connection, topic: str, duration_s: float, check: Callable[[], None]
) -> list[Sample]:
    """Return the topic's bytes against time, from the moment before the first record comes."""
    samples: list[Sample] = []
    first = _end_offset(connection, topic)
    deadline = time.perf_counter() + _PATIENCE_S + duration_s
    while time.perf_counter() < deadline:
        check()
        count = _end_offset(connection, topic) - first
        sample = Sample(time.perf_counter(), float(count * RECORD_BYTES))
        if count:
            samples.append(sample)
            if sample.at_s > samples[0].at_s + duration_s + _POLL_S:
                return samples
        else:
            samples = [sample]
        time.sleep(_POLL_S)
    raise RowError(f"the producer of {topic} wrote nothing for {_PATIENCE_S:g} s")


def _fill(session: Session, connection: wire.Connection) -> None:
    """Fill a topic that the fastest throttled consumer does not read to its end."""
    wire.create_topic(connection, _READ_TOPIC)
    limit_mb = max(QUOTA_LIMITS_MB)
    count = int(limit_mb * _MB * (session.plan.quota_s + 2 * WINDOW_S) / RECORD_BYTES)
    command = producer_command(session.bootstrap, _READ_TOPIC, RECORD_BYTES, count)
    run_tool(session, command)


_READ_TOPIC = "bench-quota-read"


def _measure_consumer(session: Session, connection: wire.Connection, limit_mb: int) -> None:
    client = f"bench-quota-reader-{limit_mb}"
    _limit(connection, client, _CONSUMER_KEY, limit_mb * _MB)
    parse: Callable[[str], list[Sample]]
    if session.has_groups:
        arguments = (
            f"--bootstrap-server {session.bootstrap} --topic {_READ_TOPIC} --timeout 60000"
            f" --num-records {_ENDLESS} --show-detailed-stats --reporting-interval 100"
            f" --date-format HHmmssSSS --command-property client.id={client}"
            f" --fetch-size {_FETCH_BYTES}"
        )
        command = tool_command("ConsumerPerformance", arguments)
        parse = parse_detailed
    else:
        command = assigned_consumer_command(session.bootstrap, _READ_TOPIC, _ENDLESS)
        command += [client]
        parse = parse_progress
    output = session.directory / f"{client}.log"
    child = Child(command, output=output)
    try:
        _wait_for_progress(child, lambda: bool(parse(_text(output))))
        time.sleep(session.plan.quota_s + _SETTLE_S)
        child.check()
    finally:
        child.kill()
        _limit(connection, client, _CONSUMER_KEY, None)
    _add(session, "consume", limit_mb, parse(_text(output)))


def _wait_for_progress(child: Child, has_begun: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + _PATIENCE_S
    while not has_begun():
        child.check()
        if time.perf_counter() > deadline:
            raise RowError(f"the consumer read nothing for {_PATIENCE_S:g} s: {child.tail()}")
        time.sleep(_POLL_S)


def _text(output: Path) -> str:
    return output.read_text(errors="replace")


def _measure_neighbour(session: Session, connection: wire.Connection) -> None:
    """Records per second of an unlimited producer, alone and beside a throttled one."""
    client = topic = "bench-quota-slow"
    free = "bench-quota-free"
    for name in (topic, free):
        wire.create_topic(connection, name)
        wire.wait_for_leader(connection, name)
    count = session.plan.load_counts[1]
    command = producer_command(session.bootstrap, free, RECORD_BYTES, count)
    run_tool(session, command)  # warms up
    alone = parse_producer(run_tool(session, command)[0])
    _limit(connection, client, _PRODUCER_KEY, min(QUOTA_LIMITS_MB) * _MB)
    tool = _start_producer(session, topic, client)
    try:
        _watch(connection, topic, _SETTLE_S, tool.check)
        beside = parse_producer(run_tool(session, command)[0])
    finally:
        tool.kill()
        _limit(connection, client, _PRODUCER_KEY, None)
    session.add("quota_neighbour", beside / alone)


def _measure_hot_path(session: Session) -> None:
    """Raw Produce beside the same build without a quota manager, both fresh, in turns."""
    children: list[Child] = []
    try:
        clients = []
        for module in ("minibroker", "benchmarks.without_quotas"):
            directory = session.directory / module
            directory.mkdir()
            port = free_port()
            command = Minibroker.command(directory, port)
            command[command.index("minibroker")] = module
            child = Child(command, output=directory / "output.log", directory=_ROOT)
            children.append(child)
            wire.wait_for_metadata(port, timeout_s=_PATIENCE_S, check=child.check)
            clients.append(_raw_client(port))
        for client in clients:
            client.run(_IN_FLIGHT, session.plan.warm_up_s)
        for turn in range(session.plan.repeats * 4):
            # The order changes: who comes second finds a warmer machine.
            order = clients if turn % 2 else clients[::-1]
            rates = {id(client): client.run(_IN_FLIGHT, session.plan.raw_s) for client in order}
            ours, without = (rates[id(client)].requests_per_s for client in clients)
            session.add("quota_hot_path", ours / without)
    finally:
        for child in children:
            child.stop()


_ROOT = Path(__file__).resolve().parents[2]


def _raw_client(port: int) -> RawClient:
    connection = wire.Connection(port)
    wire.create_topic(connection, "bench-quota-raw")
    wire.wait_for_leader(connection, "bench-quota-raw")
    return RawClient(connection, "bench-quota-raw", wire.one_record_batch(b"x" * 100))


def _start_producer(session: Session, topic: str, client: str) -> Child:
    command = producer_command(session.bootstrap, topic, RECORD_BYTES, _ENDLESS)
    # What the tool has sent and not got acknowledged is bounded by its buffer, 32 MB.
    return Child([*command, f"client.id={client}"], output=session.directory / f"{client}.log")


def _limit(connection: wire.Connection, client: str, key: str, limit: float | None) -> None:
    """Set (None: remove) one quota of a client id; Kafka goes by it a moment later."""
    entity = struct.pack(">i", 1) + _string("client-id") + _string(client)
    value = struct.pack(">db", limit or 0.0, limit is None)
    operations = struct.pack(">i", 1) + _string(key) + value
    body = struct.pack(">i", 1) + entity + operations + b"\0"
    answer = connection.ask(wire.frame(_ALTER_QUOTAS, 0, body))
    (error,) = struct.unpack_from(">h", answer, 8)
    if error:
        raise RowError(f"AlterClientQuotas of {client} answered error {error}")
    time.sleep(_SETTLE_S)


def _end_offset(connection: wire.Connection, topic: str) -> int:
    partition = struct.pack(">iiq", 1, 0, -1)
    body = struct.pack(">ii", -1, 1) + _string(topic) + partition
    answer = connection.ask(wire.frame(_LIST_OFFSETS, 1, body))
    error, _, offset = struct.unpack_from(">hqq", answer, 4 + 2 + len(topic) + 4 + 4)
    if error:
        raise RowError(f"ListOffsets of {topic} answered error {error}")
    return int(offset)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
