"""`python -m benchmarks.diff BASE`: this checkout beside another commit, in turns on one machine.

Both brokers are asked by this checkout's client, so only the broker differs. A round measures each
row of both sides, the sides in turn; the next round begins with the other side. A table shows the
median of the ratios of the rounds and their range. CPU of the broker comes first: it is steady
where the client takes the cores. A ratio below 1 is cheaper, or quicker, than the base.

`--compiled` measures the compiled package of this checkout: against `HEAD`, what compiling brings.
`--instructions` counts instead of timing: that shows a percent, and beside other work too.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import instructions, scale_wire, wire
from benchmarks.callgrind import CounterError, require_valgrind
from benchmarks.compiled import compiled_package
from benchmarks.rows.raw import RawClient
from benchmarks.sides import (
    ROOT,
    START_PATIENCE_S,
    TOPIC,
    Measured,
    Side,
    checkout_of,
    connected,
    fetch_all,
    started,
)
from benchmarks.table import number
from tests.support.processes import free_port

BURST_S: Final = 1.5
BATCH_RECORDS: Final = 16
FILL_BYTES: Final = 64 << 20
FETCH_PASSES: Final = 16
KILLED_BATCHES: Final = 200_000
"""Batches of one record of 100 bytes that a killed broker leaves: some 34 MB."""
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"


def measure_start(side: Side, directory: Path) -> Measured:
    """Return seconds and CPU seconds to the first answer, and MB of an idle broker."""
    port = free_port()
    child = side.launch(directory, port)
    try:
        answered_at = wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        return {
            "start, CPU s": child.cpu_seconds(),
            "start, s": answered_at - child.started_at,
            "idle memory, MB": child.resident_bytes() / 1e6,
        }
    finally:
        child.stop()


def measure_raw(side: Side, directory: Path) -> Measured:
    """Return CPU and time of a Produce request with one record, 1, 5 and 50 in flight."""
    figures: Measured = {}
    with started(side, directory) as broker, connected(broker) as connection:
        client = RawClient(connection, TOPIC, wire.one_record_batch(b"x" * 100))
        client.run(50, BURST_S / 2)
        for in_flight in (1, 5, 50):
            before_s = broker.child.cpu_seconds()
            burst = client.run(in_flight, BURST_S)
            spent_s = broker.child.cpu_seconds() - before_s
            requests = burst.requests_per_s * BURST_S
            figures[f"raw Produce, {in_flight} in flight, CPU µs"] = spent_s / requests * 1e6
            figures[f"raw Produce, {in_flight} in flight, µs"] = 1e6 / burst.requests_per_s
    return figures


def measure_batches(side: Side, directory: Path) -> Measured:
    """Return CPU seconds of a GB in batches of 16 records of 1 KB: produced, then fetched."""
    with started(side, directory) as broker, connected(broker) as connection:
        batch = scale_wire.Batches(BATCH_RECORDS, 1000).at(time.time_ns() // 1_000_000)
        frame = wire.produce_frame(TOPIC, batch)
        count = FILL_BYTES // len(batch)
        before_s = broker.child.cpu_seconds()
        wire.pipeline(connection, TOPIC, frame, count)
        produced_s = broker.child.cpu_seconds() - before_s
        gigabytes = count * len(batch) / 1e9
        before_s = broker.child.cpu_seconds()
        for _ in range(FETCH_PASSES):
            fetch_all(connection, count * BATCH_RECORDS)
        fetched_s = (broker.child.cpu_seconds() - before_s) / FETCH_PASSES
    return {
        "produced, 1 KB, CPU s/GB": produced_s / gigabytes,
        "fetched, 1 MB, CPU s/GB": fetched_s / gigabytes,
    }


def measure_killed(side: Side, directory: Path) -> Measured:
    """Return seconds and CPU seconds of a start after kill -9 with many small batches.

    The recovery point is removed, so the start looks at every batch. Where the last sync stood at
    the kill depends on the moment, and a second of it outweighs what is compared.
    """
    with started(side, directory) as broker, connected(broker) as connection:
        frame = wire.produce_frame(TOPIC, wire.one_record_batch(b"x" * 100))
        wire.pipeline(connection, TOPIC, frame, KILLED_BATCHES)
        broker.child.kill()
    (directory / "data" / RECOVERY_POINTS).unlink(missing_ok=True)
    for snapshot in directory.glob(f"data/{TOPIC}-0/*.snapshot"):
        snapshot.unlink()
    figures = measure_start(side, directory)
    return {
        "after a kill, CPU s": figures["start, CPU s"],
        "after a kill, s": figures["start, s"],
    }


ROWS: Final[dict[str, Callable[[Side, Path], Measured]]] = {
    "start": measure_start,
    "raw": measure_raw,
    "batches": measure_batches,
    "killed": measure_killed,
}


Rows = Mapping[str, Callable[[Side, Path], Measured]]
"""Name of a row → what measures it."""


def compare(
    base: Side, own: Side, names: Sequence[str], rounds: int, rows: Rows = ROWS
) -> dict[str, list[tuple[float, float]]]:
    """Return the values at base and here of each figure, a pair for each round."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for turn in range(rounds):
        for row in names:
            figures: dict[str, Measured] = {}
            for side in (base, own) if turn % 2 == 0 else (own, base):
                with tempfile.TemporaryDirectory(prefix="minibroker-diff-") as name:
                    figures[side.name] = rows[row](side, Path(name))
            for figure, value in figures[own.name].items():
                pairs.setdefault(figure, []).append((figures[base.name][figure], value))
    return pairs


def table(pairs: Mapping[str, Sequence[tuple[float, float]]], base: str, own: str = "here") -> str:
    """Return medians and ranges as a Markdown table, the figures of CPU first."""
    lines = [f"| figure | {base} | {own} | {own} / {base} | range |", "|---|---:|---:|---:|---:|"]
    for figure in sorted(pairs, key=lambda name: "CPU" not in name):
        bases, owns = zip(*pairs[figure], strict=True)
        ratios = [own_value / base_value for base_value, own_value in pairs[figure]]
        values = f"{number(statistics.median(bases))} | {number(statistics.median(owns))}"
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        lines.append(f"| {figure} | {values} | {statistics.median(ratios):.3f} | {spread} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    options = _parser().parse_args(arguments)
    rows = instructions.ROWS if options.instructions else ROWS
    names = options.rows.split(",") if options.rows else list(rows)
    if unknown := [name for name in names if name not in rows]:
        print(f"no row {', '.join(unknown)}: there are {', '.join(rows)}", file=sys.stderr)
        return 2
    rounds = options.rounds or (1 if options.instructions else 5)
    try:
        if options.instructions:
            require_valgrind()
        base = checkout_of(options.base)
        own = Side("compiled", compiled_package()) if options.compiled else Side("here", ROOT)
        print(table(compare(base, own, names, rounds, rows), base.name, own.name))
    except CounterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diff", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions of a request (valgrind)"
    )
    parser.add_argument(
        "--compiled", action="store_true", help="this checkout's compiled package (a C compiler)"
    )
    parser.add_argument("--rounds", type=int, help="rounds of each row (default 5; counted: 1)")
    parser.add_argument(
        "--rows",
        help=f"of {', '.join(ROWS)}; counted: of {', '.join(instructions.ROWS)} (default: all)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
