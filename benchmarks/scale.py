"""`python -m benchmarks.scale`: what happens when there is much of everything, beside Kafka 3.9.1.

    start        10 GB in 1,000 partitions, after a clean stop and after kill -9
    killed       2,000,000 records in batches of ten, then kill -9
    partitions   10,000 empty ones: made, weighed, and unnoticed by a producer
    lookup       a time among 10 M records in 1,000 segments
    retention    a producer's p99 while 5 GB are deleted
    compaction   a producer's p99 while 1 GB is compacted

Takes some 20 minutes and 12 GB of disk; `--quick` tries it out in a small size.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import machine, wire
from benchmarks.children import ChildDiedError
from benchmarks.choices import Choices
from benchmarks.metrics import KAFKA_39, Bar, Metric
from benchmarks.peers import KafkaWithZooKeeper, Minibroker, Peer
from benchmarks.results import Results
from benchmarks.rows import (
    scale_cleaning,
    scale_killed,
    scale_lookup,
    scale_partitions,
    scale_start,
)
from benchmarks.rows.scale_session import FULL, QUICK, ScalePlan, ScaleSession
from benchmarks.rows.session import RowError
from tests.support.build_files import ROOT, MissingError

_FAILURES = (
    ChildDiedError,
    OSError,
    MissingError,
    RowError,
    subprocess.SubprocessError,
    wire.WireError,
)


class Row(NamedTuple):
    """Measurements on one new broker."""

    name: str
    measure: Callable[[ScaleSession], None]
    settings: dict[str, str]


ROWS: Final = (
    Row("start", scale_start.measure, {}),
    Row("killed", scale_killed.measure, {}),
    Row("partitions", scale_partitions.measure, {}),
    Row("lookup", scale_lookup.measure, {}),
    Row("retention", scale_cleaning.measure_retention, scale_cleaning.SETTINGS),
    Row("compaction", scale_cleaning.measure_compaction, scale_cleaning.SETTINGS),
)
METRICS: Final = (
    Metric("scale_start", "start", "clean start", "s", must=(Bar(1 / 3, KAFKA_39),)),
    Metric("scale_start_read", "start", "read until it answers", "MB"),
    Metric("scale_killed", "start", "start after kill -9", "s", must=(Bar(1, KAFKA_39),)),
    Metric("scale_killed_read", "start", "read until it answers", "MB", must=(Bar(300),)),
    Metric("scale_killed_answer", "killed", "first answer", "s"),
    Metric("scale_killed_right", "killed", "ends right", "s", must=(Bar(0.5),)),
    Metric("scale_killed_cpu", "killed", "CPU until then", "s"),
    Metric("scale_killed_many_read", "killed", "read until then", "MB"),
    Metric("scale_create", "partitions", "made", "1/s", True, must=(Bar(5, KAFKA_39),)),
    Metric(
        "scale_idle_bytes",
        "partitions",
        "memory of an idle one",
        "bytes",
        must=(Bar(6_000),),
        aim=(Bar(4_000),),
    ),
    Metric("scale_files", "partitions", "files held open", "", must=(Bar(512),)),
    Metric("scale_raw", "partitions", "raw Produce, many / one", "", True, must=(Bar(0.95),)),
    Metric("scale_lookup_tenth", "lookup", "p50 in a tenth of the log", "ms"),
    Metric("scale_lookup", "lookup", "p50", "ms", must=(Bar(1),)),
    *(
        metric
        for row in ("retention", "compaction")
        for metric in (
            Metric(f"scale_{row}_quiet", row, "p99 before", "ms"),
            Metric(f"scale_{row}_busy", row, "p99 meanwhile", "ms"),
            Metric(f"scale_{row}", row, "meanwhile / before", "", must=(Bar(3),)),
        )
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 when a row broke down, 0 otherwise."""
    peers: list[Peer] = [Minibroker(), KafkaWithZooKeeper()]
    options = _parser([peer.name for peer in peers]).parse_args(arguments)
    facts = machine.facts()
    machine.warn_if_busy(facts)
    plan = QUICK if options.quick else FULL
    chosen = [peer for peer in peers if peer.name in options.only]
    results = Results([peer.name for peer in chosen])
    with tempfile.TemporaryDirectory(prefix="minibroker-scale-", dir=options.scratch) as scratch:
        for row in ROWS:
            if row.name in options.rows:
                for peer in chosen:
                    _run(row, peer, Path(scratch, row.name), plan, results)
    print(render(results, options.rows))
    name = f"scale-{datetime.now(UTC):%Y-%m-%dT%H%MZ}.json"
    path = options.json or ROOT / "benchmarks" / "results" / name
    results.write(path, facts, plan._asdict())
    _say(f"written: {path}")
    return 1 if results.has_failures() else 0


def _run(row: Row, peer: Peer, scratch: Path, plan: ScalePlan, results: Results) -> None:
    """Run one row on one broker; its files go when it ends."""
    _say(f"{peer.name}: {row.name}")
    with tempfile.TemporaryDirectory(prefix="broker-", dir=_new_directory(scratch)) as name:
        session = None
        try:
            session = ScaleSession(peer, Path(name, peer.name), plan, results, row.settings)
            row.measure(session)
        except MissingError as error:
            results.miss(peer.name, str(error))
        except _FAILURES as error:
            results.note(peer.name, row.name, f"failed, {type(error).__name__}: {error}")
        finally:
            if session is not None:
                session.close()
            peer.close()


def _new_directory(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


def render(results: Results, rows: list[str]) -> str:
    """Return one line per metric: a value per broker, the mark, the verdict; notes below."""
    lines = [f"{'':38}" + "".join(f"{broker:>14}" for broker in results.brokers) + f"{'mark':>12}"]
    for metric in METRICS:
        if metric.row not in rows:
            continue
        values = results.values(metric.name)
        columns = "".join(
            f"{values[broker]:>14.4g}" if broker in values else f"{'-':>14}"
            for broker in results.brokers
        )
        mark = metric.strictest(metric.must, values)
        mark_text = "" if mark is None else f"{mark:.4g}"
        label = f"{metric.row}: {metric.label}" + (f", {metric.unit}" if metric.unit else "")
        lines.append(f"{label:38}{columns}{mark_text:>12} {metric.verdict(values)}".rstrip())
    for broker in results.brokers:
        for subject, text in results.notes[broker].items():
            lines.append(f"{broker}, {subject}: {text}")
        if broker in results.missing:
            lines.append(f"{broker}: not to be had, {results.missing[broker]}")
    return "\n".join(lines)


def _parser(names: list[str]) -> argparse.ArgumentParser:
    rows = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument(
        "--only", type=Choices(names), default=names, metavar="BROKER,…", help=", ".join(names)
    )
    parser.add_argument(
        "--rows", type=Choices(rows), default=rows, metavar="ROW,…", help=", ".join(rows)
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where the brokers' data goes")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="instead of benchmarks/results/scale-DATE.json"
    )
    return parser


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
