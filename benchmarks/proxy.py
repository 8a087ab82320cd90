"""`python -m benchmarks.proxy`: what `minibroker proxy` costs the clients of a Kafka behind it.

Kafka 4.4.0 (or the one of `--to`) and the proxy run all the time. Each row asks Kafka directly and
through the proxy in turns, and the order changes from turn to turn. Rows:

    beats     one client, a Heartbeat at a time: p50 and p99 of both ways, and the CPU of the proxy
              for a request
    produce   ProducerPerformance, records of 1 KB, acks=1: records a second of both ways, and the
              CPU of the proxy for a record

A first turn warms up, Java above all, and is not counted. Figures are medians of the turns; the p99
that the proxy adds and the ratio of the rates are those of each turn first. Prints a table for
`docs/measured.md`. Takes about four minutes with its start.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from struct import pack
from typing import Final, NamedTuple

from benchmarks import machine, wire
from benchmarks.children import Child
from benchmarks.choices import row_parser
from benchmarks.rows.load import parse_producer, producer_command
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from tests.support.dialogues import RawClient
from tests.support.message_bytes import request_bytes
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port

ADDED_P99_US_MAX: Final = 100.0
RATE_MIN: Final = 0.9
ROWS: Final = ("beats", "produce")
KAFKA_VERSION: Final = "4.4.0"
RECORD_BYTES: Final = 1_000
WARM_BEATS: Final = 300
_BEAT_VERSION: Final = 3
_TOPIC: Final = "proxy-load"
_START_TIMEOUT_S: Final = 60.0
_TOOL_TIMEOUT_S: Final = 120.0


class Sizes(NamedTuple):
    """How long everything takes."""

    turns: int
    """Counted ones."""
    beats: int
    records: int


FULL: Final = Sizes(5, 6_000, 500_000)
QUICK: Final = Sizes(1, 500, 20_000)


class Way(NamedTuple):
    """An address to measure, and the CPU that the proxy spent so far, in seconds."""

    address: str
    cpu_s: Callable[[], float]


class Pair(NamedTuple):
    """The figures of one turn."""

    direct: float
    through: float


class Line(NamedTuple):
    """One line of the table."""

    label: str
    direct: str
    through: str
    outcome: str = ""
    bar: str = ""
    is_met: bool | None = None

    def render(self) -> str:
        """Return the line as Markdown."""
        met = "" if self.is_met is None else "yes" if self.is_met else "NO"
        return f"| {' | '.join([*self[:5], met])} |"


class BeatTurn(NamedTuple):
    """Beats of one turn: p50, p99 and CPU, in µs."""

    p50: Pair
    p99: Pair
    cpu_us: float


class LoadTurn(NamedTuple):
    """The producer of one turn: records a second, and CPU for a record in µs."""

    rate: Pair
    cpu_us: float


def beat_times_us(address: str, count: int) -> list[float]:
    """Return how long each of `count` heartbeats takes, one after the other, sorted."""
    body = request_bytes(HeartbeatRequest(group_id="g", member_id="m"), _BEAT_VERSION, 1)
    frame = pack(">i", len(body)) + body
    times_us = []
    with RawClient(address) as client:
        for number in range(-WARM_BEATS, count):
            start_ns = time.perf_counter_ns()
            client.send_bytes(frame)
            client.receive_frame()
            if number >= 0:
                times_us.append((time.perf_counter_ns() - start_ns) / 1_000)
    return sorted(times_us)


def _beat_turn(direct: Way, through: Way, sizes: Sizes, *, is_direct_first: bool) -> BeatTurn:
    times: dict[str, list[float]] = {}
    cpu_us = 0.0
    for way in (direct, through) if is_direct_first else (through, direct):
        cpu_at_start = way.cpu_s()
        times[way.address] = beat_times_us(way.address, sizes.beats)
        if way is through:
            cpu_us = (way.cpu_s() - cpu_at_start) * 1e6 / (sizes.beats + WARM_BEATS)

    def at(part: float) -> Pair:
        return Pair(
            *(times[way.address][int(sizes.beats * part)] for way in (direct, through)),
        )

    return BeatTurn(at(0.5), at(0.99), cpu_us)


def _load_turn(direct: Way, through: Way, sizes: Sizes, *, is_direct_first: bool) -> LoadTurn:
    rates: dict[str, float] = {}
    cpu_us = 0.0
    for way in (direct, through) if is_direct_first else (through, direct):
        cpu_at_start = way.cpu_s()
        command = producer_command(way.address, _TOPIC, RECORD_BYTES, sizes.records)
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
            timeout=_TOOL_TIMEOUT_S,
        )
        rates[way.address] = parse_producer(done.stdout)
        if way is through:
            cpu_us = (way.cpu_s() - cpu_at_start) * 1e6 / sizes.records
    return LoadTurn(Pair(rates[direct.address], rates[through.address]), cpu_us)


def beat_lines(turns: Sequence[BeatTurn]) -> list[Line]:
    """Return the lines of the row `beats`."""
    increase = statistics.median(turn.p99.through - turn.p99.direct for turn in turns)
    return [
        Line("Heartbeat, p50, µs", *_medians([turn.p50 for turn in turns], ".0f")),
        Line(
            "Heartbeat, p99, µs",
            *_medians([turn.p99 for turn in turns], ".0f"),
            f"{increase:+.0f}",
            f"≤ +{ADDED_P99_US_MAX:.0f}",
            increase <= ADDED_P99_US_MAX,
        ),
        _cpu_line("a Heartbeat", [turn.cpu_us for turn in turns]),
    ]


def load_lines(turns: Sequence[LoadTurn]) -> list[Line]:
    """Return the lines of the row `produce`."""
    ratio = statistics.median(turn.rate.through / turn.rate.direct for turn in turns)
    return [
        Line(
            "ProducerPerformance, 1 KB, records/s",
            *_medians([turn.rate for turn in turns], ",.0f"),
            f"{ratio:.2f}x",
            f"≥ {RATE_MIN:g}x",
            ratio >= RATE_MIN,
        ),
        _cpu_line("a record", [turn.cpu_us for turn in turns]),
    ]


def _medians(pairs: Sequence[Pair], form: str) -> tuple[str, str]:
    direct, through = zip(*pairs, strict=True)
    return f"{statistics.median(direct):{form}}", f"{statistics.median(through):{form}}"


def _cpu_line(unit: str, cpu_us: Sequence[float]) -> Line:
    return Line(f"CPU of the proxy for {unit}, µs", "-", f"{statistics.median(cpu_us):.2f}")


def _serve(to: str, scratch: Path) -> Child:
    """Return a proxy that starts. It writes its address: `address_of` reads it."""
    command = [sys.executable, "-m", "minibroker", "proxy", "--to", to]
    command += ["--listen", f"127.0.0.1:{free_port()}"]
    return Child(command, output=scratch / "proxy.log")


def address_of(output: str) -> str | None:
    """Return HOST:PORT of a proxy from what it wrote, None while it does not serve."""
    match = re.search(r"listening on (\S+),", output)
    return None if match is None else match[1]


def _measure(rows: Sequence[str], sizes: Sizes, to: str | None, scratch: Path) -> list[Line]:
    lines: list[Line] = []
    with ExitStack() as running:
        if to is None:
            peer = KafkaPeer(KAFKA_VERSION, scratch / "kafka")
            running.callback(peer.stop)
            peer.start()
            to = peer.address
        proxy = _serve(to, scratch)
        running.callback(proxy.stop)
        proxy.wait_until(
            lambda: address_of(proxy.log_tail()) is not None, _START_TIMEOUT_S, "the proxy"
        )
        address = address_of(proxy.log_tail())
        assert address is not None
        ways = Way(to, proxy.cpu_seconds), Way(address, proxy.cpu_seconds)
        if "beats" in rows:
            beats = [_beat_turn(*ways, sizes, is_direct_first=order) for order in _orders(sizes)]
            lines += beat_lines(beats[1:])
        if "produce" in rows:
            wire.create_topic_at(int(to.rpartition(":")[2]), _TOPIC)
            loads = [_load_turn(*ways, sizes, is_direct_first=order) for order in _orders(sizes)]
            lines += load_lines(loads[1:])
    return lines


def _orders(sizes: Sizes) -> list[bool]:
    """Return for each turn whether the direct way is first, that of the warm-up before them."""
    return [number % 2 == 0 for number in range(sizes.turns + 1)]


def main() -> int:
    """Measure what was asked for; return 0: to fall short of a bar is a result."""
    parser = row_parser("benchmarks.proxy", ROWS)
    parser.add_argument(
        "--to", metavar="127.0.0.1:PORT", help=f"a Kafka that runs, instead of {KAFKA_VERSION}"
    )
    arguments = parser.parse_args()
    facts = machine.facts()
    machine.warn_if_busy(facts)
    sizes = QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory(prefix="proxy-") as scratch:
        lines = _measure(arguments.rows, sizes, arguments.to, Path(scratch))
    print("| | direct | through | change | bar | met |\n|---|---:|---:|---:|---:|---|")
    print("\n".join(line.render() for line in lines))
    described = ", ".join(f"{key} {value}" for key, value in facts.items())
    print(f"\nMedians of {sizes.turns} turns. {described}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
