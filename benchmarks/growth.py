"""`python -m benchmarks.growth`: how a start and its memory grow with partitions, as a plot.

Each broker gets one topic of `--partitions 1 100 1000 10000` partitions, is stopped and started
again on them. A point is the median of `--rounds` starts: seconds from the spawn of the process to
its first Metadata answer, its CPU seconds until then, and the MB that it holds then. Samples go to
a JSON file; `--draw FILE.json` makes the picture of such a file anew.

A round of 10,000 partitions takes Kafka two minutes. The picture needs the extra `docs`.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import machine, wire
from benchmarks.choices import Choices
from benchmarks.peers import Peer, all_peers
from benchmarks.results import Results
from benchmarks.rows.scale_session import QUICK, ScaleSession
from tests.support.build_files import ROOT

PARTITIONS: Final = (1, 100, 1_000, 10_000)
PICTURE: Final = ROOT / "docs" / "growth.svg"
TOPIC_PARTITIONS: Final = 1_000
"""Partitions of a topic at most: what Kafka makes within the time of one request."""
COLORS: Final = {
    "minibroker": "#0b6e4f",
    "kfake-disk": "#c44536",
    "kafka-3.9.1": "#4464ad",
    "kafka-4.4.0": "#8e7dbe",
}


class Panel(NamedTuple):
    """One part of the picture."""

    metric: str
    title: str


PANELS: Final = (
    Panel("start_s", "start to the first answer, s"),
    Panel("start_cpu_s", "CPU of it, s"),
    Panel("resident_mb", "memory after it, MB"),
)
Figures = dict[str, dict[str, dict[str, float]]]
"""Broker → partitions, as text → name of a metric → its median."""


def measure(peer: Peer, partitions: int, rounds: int, scratch: Path) -> dict[str, float]:
    """Return the medians of a broker's starts with so many partitions."""
    results = Results([peer.name])
    with tempfile.TemporaryDirectory(prefix=f"{peer.name}-", dir=scratch) as name:
        session = ScaleSession(peer, Path(name, peer.name), QUICK, results)
        try:
            _create(session, partitions)
            for _ in range(rounds):
                session.stop()
                session.add("start_s", session.start())
                session.add("start_cpu_s", session.child.cpu_seconds())
                session.add("resident_mb", session.child.resident_bytes() / 1e6)
        finally:
            session.close()
            peer.close()
    return {panel.metric: results.values(panel.metric)[peer.name] for panel in PANELS}


def _create(session: ScaleSession, partitions: int) -> None:
    """Make topics with so many partitions together, and wait for their leaders."""
    connection = session.connect()
    try:
        for index, first in enumerate(range(0, partitions, TOPIC_PARTITIONS)):
            name = f"growth-{index}"
            wire.create_topic(connection, name, min(TOPIC_PARTITIONS, partitions - first))
            wire.wait_for_leader(connection, name)
    finally:
        connection.close()


def draw(figures: Figures, date: str, picture: Path) -> None:
    """Write the picture. Raises ModuleNotFoundError without the extra `docs`."""
    import matplotlib as mpl  # noqa: PLC0415 (only a picture needs it)

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "minibroker", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot, ticker  # noqa: PLC0415

    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(9.6, 3.2), layout="constrained")
    for panel, axis in zip(PANELS, axes, strict=True):
        for broker, points in figures.items():
            counts = sorted(points, key=int)
            values = [points[count][panel.metric] for count in counts]
            axis.plot(
                [int(count) for count in counts],
                values,
                marker="o",
                markersize=4,
                color=COLORS[broker],
                label=broker,
            )
        axis.set(title=panel.title, xlabel="partitions", xscale="log", yscale="log")
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_minor_locator(ticker.NullLocator())
        axis.yaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=len(names), frameon=False)
    figure.savefig(picture, metadata={"Date": None, "Title": f"Growth with partitions, {date}"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and draw, or draw alone; return 0."""
    peers = {peer.name: peer for peer in all_peers() if peer.name in COLORS}
    options = _parser(list(peers)).parse_args(arguments)
    if options.draw is not None:
        document: dict[str, Any] = json.loads(options.draw.read_text())
        draw(document["figures"], document["machine"]["date"], options.picture)
        return 0
    facts = machine.facts()
    machine.warn_if_busy(facts)
    figures: Figures = {name: {} for name in options.only}
    with tempfile.TemporaryDirectory(prefix="minibroker-growth-") as scratch:
        for partitions in options.partitions:
            for name in options.only:
                point = measure(peers[name], partitions, options.rounds, Path(scratch))
                figures[name][str(partitions)] = point
                print(f"{name} {partitions:,}: {point}", file=sys.stderr, flush=True)
    path = ROOT / "benchmarks" / "results" / f"growth-{datetime.now(UTC):%Y-%m-%dT%H%MZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": facts, "figures": figures}, indent=1) + "\n")
    draw(figures, str(facts["date"]), options.picture)
    return 0


def _parser(names: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--partitions", nargs="+", type=int, default=list(PARTITIONS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", type=Choices(names), default=names, metavar="BROKER,…", help=", ".join(names)
    )
    parser.add_argument("--draw", type=Path, metavar="FILE", help="figures of an earlier run")
    parser.add_argument("--picture", type=Path, default=PICTURE, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
