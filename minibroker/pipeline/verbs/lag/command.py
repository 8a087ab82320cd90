"""A watch of lag: a table that renews itself on a terminal, else a line of JSON for each look."""

from __future__ import annotations

import json
import shutil
import threading
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.cli.errors import EXIT_INTERRUPTED, EXIT_OK
from minibroker.cli.quantities import duration
from minibroker.clock import SystemClock
from minibroker.pipeline.cli import page_file
from minibroker.pipeline.cli.dry_run import Lines
from minibroker.pipeline.cli.interrupting import ctrl_c_sets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.reader_lag import LagReader
from minibroker.pipeline.verbs.lag.oldest_unread import OldestUnread
from minibroker.pipeline.verbs.lag.text import Look, json_line, page

if TYPE_CHECKING:
    from minibroker.pipeline.options.declaration import Arguments
    from minibroker.pipeline.verbs.lag.metrics import LagMetrics
    from minibroker.pipeline.verbs.lag.plan import LagPlan

_OTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_OWN_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"


def describe(plan: LagPlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    page_file.check(plan.report)
    readers = LagReader(
        plan.kafka,
        groups=plan.groups,
        pattern=plan.pattern,
        topics=plan.topics,
        checkpoints=plan.checkpoints,
    ).read()
    pace = "once" if plan.once else f"every {duration(plan.every_ms)}"
    return [
        ("lag", f"of {len(readers):,} groups and jobs at {plan.kafka.bootstrap}, {pace}"),
        ("report", plan.report or "none"),
        ("metrics", plan.metrics or "none"),
    ]


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Watch until Ctrl-C, or look once; return the exit code.

    Raises PipelineError if the first look is not answered, or the page cannot be written.
    """
    plan = arguments.plan
    page_file.check(plan.report)
    watch = _Looks(plan)
    metrics, footer = None, "Ctrl-C ends"
    look = watch.look()
    report = None if plan.report is None else _Report(plan, plan.report)
    if report is not None:
        report.write(look)
    if plan.metrics is not None:
        metrics, url = _served(plan.metrics, look)
        footer += f"  metrics are at {url}"
        errors.write(f"metrics are at {url}\n")
        errors.flush()
    view: _Lines | _Screen = _Screen(plan, out, footer) if out.isatty() else _Lines(out)
    if plan.once:
        view.end(look)
        return EXIT_OK
    stop = threading.Event()
    with ctrl_c_sets(stop):
        try:
            view.show(look)
            while not stop.wait(plan.every_ms / 1000):
                look = _next(watch, view, metrics, report) or look
        finally:
            view.end(look)
    return EXIT_INTERRUPTED


def _next(
    watch: _Looks,
    view: _Lines | _Screen,
    metrics: LagMetrics | None,
    report: _Report | None = None,
) -> Look | None:
    """Show another look and return it; None if the brokers do not answer now."""
    look, reason = None, ""
    try:
        look = watch.look()
    except PipelineError as error:
        reason = str(error)
    if metrics is not None:
        metrics.look = look  # first: whoever reads the line finds the same in the metrics
    if look is None:
        view.tell(reason)
        return None
    reason = _written(report, look)
    view.show(look)
    if reason:
        view.tell(reason)
    return look


def _written(report: _Report | None, look: Look) -> str:
    """Write the page of a look; return the sentence of an error, nothing without one."""
    try:
        if report is not None:
            report.write(look)
    except PipelineError as error:
        return str(error)
    return ""


def _served(address: str, look: Look) -> tuple[LagMetrics, str]:
    """Serve the metrics; return them and their URL."""
    from minibroker.pipeline.verbs.lag import metrics as lag_metrics  # noqa: PLC0415  an extra package

    metrics = lag_metrics.LagMetrics()
    metrics.look = look
    return metrics, lag_metrics.serve(metrics, address)


class _Looks:
    """Looks at the cluster."""

    def __init__(self, plan: LagPlan) -> None:
        self._reader = LagReader(
            plan.kafka,
            groups=plan.groups,
            pattern=plan.pattern,
            topics=plan.topics,
            checkpoints=plan.checkpoints,
        )
        self._oldest = OldestUnread(plan.kafka) if plan.age else None
        self._clock = SystemClock()

    def look(self) -> Look:
        """Return the readers as they are now. Raises PipelineError."""
        readers = self._reader.read()
        oldest_ms = {} if self._oldest is None else self._oldest.look(readers)
        return Look(self._clock.now_ms(), readers, oldest_ms)


class _Report:
    """The page of the lag so far."""

    def __init__(self, plan: LagPlan, path: str) -> None:
        from minibroker.pipeline.verbs.lag.page import History, page  # noqa: PLC0415  seldom wanted

        self._plan = plan
        self._path = path
        self._history = History()
        self._page = page

    def write(self, look: Look) -> None:
        """Add a look, and write the page. Raises PipelineError if it cannot be written."""
        self._history.add(look)
        html = self._page(self._history, brokers=self._plan.kafka.bootstrap, has_age=self._plan.age)
        page_file.write(self._path, html)


class _Lines:
    """A line of JSON for each look."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last: Look | None = None

    def show(self, look: Look) -> None:
        """Write a look."""
        self._last = look
        self._out.write(json_line(look) + "\n")
        self._out.flush()

    def tell(self, sentence: str) -> None:
        """Write a line without readers."""
        self._out.write(json.dumps({"error": sentence}) + "\n")
        self._out.flush()

    def end(self, look: Look) -> None:
        """Write the last look unless it is written."""
        if look is not self._last:
            self.show(look)


class _Screen:
    """A table on a screen of its own; the last one stays on the terminal."""

    def __init__(self, plan: LagPlan, out: TextIO, footer: str) -> None:
        self._plan = plan
        self._out = out
        self._footer = footer
        self._two: tuple[Look | None, Look | None] = (None, None)
        self._is_open = False
        self._table = ""

    def show(self, look: Look) -> None:
        """Draw a look in the place of the one before."""
        if look is not self._two[1]:
            self._two = (self._two[1], look)
        self._table = self._page(look)
        self._draw(f"{self._table}\n{self._footer}\n")

    def tell(self, sentence: str) -> None:
        """Keep the table, and write a sentence below it."""
        self._draw(f"{self._table}\n{sentence}\n")

    def end(self, look: Look) -> None:
        """Go back to the terminal's own screen, and leave the last table there."""
        if self._is_open:
            self._out.write(_OWN_SCREEN)
        self._out.write(self._page(look))
        self._out.flush()

    def _page(self, look: Look) -> str:
        size = shutil.get_terminal_size()
        return page(
            look,
            self._two[0],
            brokers=self._plan.kafka.bootstrap,
            columns=size.columns,
            lines=size.lines,
            has_age=self._plan.age,
        )

    def _draw(self, text: str) -> None:
        if not self._is_open:
            self._out.write(_OTHER_SCREEN)
            self._is_open = True
        lines = text.replace("\n", f"{_REST_OF_LINE}\r\n")
        self._out.write(f"{_HOME}{lines}{_REST_OF_SCREEN}")
        self._out.flush()
