"""One run: every broker in turn, every row that was asked for, within the time allowed."""

import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks import wire
from benchmarks.children import ChildDiedError
from benchmarks.peers import Peer
from benchmarks.plan import Plan
from benchmarks.results import Results
from benchmarks.rows import (
    fixture,
    groups,
    latency,
    load,
    quotas,
    raw,
    rebalances,
    scrapes,
    start,
    suites,
    topics,
    transactions,
)
from benchmarks.rows.session import RowError, Session
from tests.support.build_files import MissingError

_LOAD_ROWS = frozenset({"produce", "consume", "assigned"})
_WHOLE_ROWS = {
    "suites": suites.measure,
    "fixture": fixture.measure,
    "scrapes": scrapes.measure,
}
_FAILURES = (
    ChildDiedError,
    KafkaException,
    OSError,
    MissingError,
    RowError,
    subprocess.SubprocessError,
    wire.WireError,
)
Say = Callable[[str], None]


class Runner:
    """Measures `peers` after each other; what fails becomes a note, and the rest goes on."""

    def __init__(
        self, peers: list[Peer], rows: frozenset[str], plan: Plan, *, deadline_s: float, say: Say
    ) -> None:
        self.results = Results([peer.name for peer in peers])
        self._peers = peers
        self._rows = rows
        self._plan = plan
        self._deadline = time.perf_counter() + deadline_s
        self._say = say

    def run(self) -> Results:
        """All of it: start-ups in rounds over the brokers, then the passes."""
        with tempfile.TemporaryDirectory(prefix="minibroker-bench-") as scratch:
            try:
                self._run_starts(Path(scratch))
                self._run_whole(Path(scratch))
                if self._rows - {"start", "offsets_start", *_WHOLE_ROWS}:
                    for number in range(self._plan.passes):
                        self._run_pass(Path(scratch), number)
            finally:
                for peer in self._peers:
                    peer.close()
        return self.results

    def _present(self) -> list[Peer]:
        return [peer for peer in self._peers if peer.name not in self.results.missing]

    def _run_starts(self, scratch: Path) -> None:
        for row, measure in (("start", start.measure), ("offsets_start", groups.measure_start)):
            if row in self._rows:
                for _ in range(self._plan.start_repeats):
                    for peer in self._present():
                        self._say(f"{peer.name}: {row}")
                        self._run_start(peer, row, measure, scratch)

    def _run_whole(self, scratch: Path) -> None:
        """Rows that start brokers as they need them."""
        for row, measure in _WHOLE_ROWS.items():
            for peer in self._present() if row in self._rows else ():
                self._say(f"{peer.name}: {row}")
                self._run_start(peer, row, partial(measure, plan=self._plan), scratch)

    def _run_start(
        self, peer: Peer, row: str, measure: Callable[[Peer, Path, Results], None], scratch: Path
    ) -> None:
        try:
            measure(peer, scratch, self.results)
        except MissingError as error:
            self.results.miss(peer.name, str(error))
        except _FAILURES as error:
            self.results.note(peer.name, row, _reason(error))

    def _run_pass(self, scratch: Path, number: int) -> None:
        """Start each broker afresh, measure its rows, stop it and drop its files."""
        for peer in self._present():
            with tempfile.TemporaryDirectory(dir=scratch, prefix=f"{peer.name}-") as name:
                try:
                    self._run_broker(peer, Path(name), number)
                except MissingError as error:
                    self.results.miss(peer.name, str(error))
                except _FAILURES as error:
                    self.results.note(peer.name, "start", _reason(error))

    def _run_broker(self, peer: Peer, directory: Path, number: int) -> None:
        child, port = peer.start(directory)
        try:
            session = Session(
                broker=peer.name,
                child=child,
                port=port,
                directory=directory,
                has_groups=wire.has_groups(port),
                plan=self._plan,
                results=self.results,
            )
            self._run_rows(session, has_load=number < self._plan.load_passes)
        finally:
            child.stop()

    def _run_rows(self, session: Session, *, has_load: bool) -> None:
        """Run the short rows, which warm the broker up, then the load."""
        self._run_row(session, "memory", _idle_memory)
        self._run_row(session, "raw", raw.measure)
        self._run_row(session, "topics", topics.measure)
        self._run_row(session, "latency", latency.measure)
        self._run_row(session, "group", latency.measure_groups)
        self._run_row(session, "offsets", groups.measure)
        self._run_row(session, "rebalances", rebalances.measure)
        load_rows = self._rows & _LOAD_ROWS
        if has_load and load_rows:
            self._run_row(session, "load", lambda _: load.measure(session, load_rows))
            self._run_row(session, "memory", _loaded_memory)
        if has_load:
            self._run_row(session, "produce_to", load.measure_partitions)
            self._run_row(session, "produce_lz4", load.measure_lz4)
            self._run_row(session, "transactions", transactions.measure)
            self._run_row(session, "quotas", quotas.measure)

    def _run_row(self, session: Session, row: str, measure: Callable[[Session], None]) -> None:
        if row not in self._rows and row != "load":
            return
        if time.perf_counter() > self._deadline:
            self.results.note(session.broker, row, "not run, the time was over")
            return
        begun_at = time.perf_counter()
        try:
            measure(session)
        except _FAILURES as error:
            self.results.note(session.broker, row, _reason(error))
        self._say(f"{session.broker}: {row} ({time.perf_counter() - begun_at:.1f} s)")


def _idle_memory(session: Session) -> None:
    time.sleep(session.plan.settle_s)
    session.add("idle_rss", session.child.resident_bytes() / 1e6)


def _loaded_memory(session: Session) -> None:
    time.sleep(session.plan.settle_s)
    session.add("loaded_rss", session.child.resident_bytes() / 1e6)


def _reason(error: BaseException) -> str:
    if isinstance(error, MissingError):
        return f"not to be had, {error}"
    return f"failed, {type(error).__name__}: {error}"
