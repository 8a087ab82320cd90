"""`pytest --kafka-report DIR`: a page for each test that fails and used a broker.

`plugin` registers a `FailureReports` with the option, and not without. It writes the page between
the failure and the end of the fixtures: the brokers still run then. Under pytest-xdist each worker
writes the pages of its tests. pytest-html links them, JUnit properties name them.
"""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from minibroker.clock import SystemClock
from minibroker.testing.failure_page import FailedTest, page
from minibroker.testing.failure_watch import FailureWatch, Watched
from minibroker.testing.fixture_brokers import brokers_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from minibroker.testing.failure_watch import View

PROPERTY: Final = "minibroker_report"
"""Name of the JUnit property."""
_SECTION: Final = "minibroker report"
_NAME_MAX: Final = 150
_DIGEST_LENGTH: Final = 6
_LINES_MAX: Final = 2_000
"""Log lines of a test that are on its page: the last ones."""
_LOG_FORMAT: Final = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s"


class FailureReports:
    """The plugin of one run, or of one worker of it."""

    def __init__(self, directory: Path, config: pytest.Config) -> None:
        """Make the directory of the pages. Raises UsageError."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise pytest.UsageError(
                f"--kafka-report={directory}: expected a directory, or a name for one"
                f" ({error.strerror})"
            ) from error
        self.directory: Final = directory
        self._config: Final = config
        self._watch: Final = FailureWatch()
        self._log: Final = _TestLog()

    def pytest_sessionstart(self) -> None:
        """Watch the brokers, and the log of minibroker, from now on."""
        Watched.watch = self._watch
        logging.getLogger("minibroker").addHandler(self._log)

    def pytest_sessionfinish(self) -> None:
        """End what `pytest_sessionstart` began."""
        Watched.watch = None
        logging.getLogger("minibroker").removeHandler(self._log)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin a test: its page of an earlier run goes."""
        self._watch.begin_test()
        self._log.lines.clear()
        earlier_page = self.path_of(item.nodeid)
        if earlier_page.is_file():
            earlier_page.unlink()

    # The innermost wrapper: the plugin's own forgets the faults of the test afterwards.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the page of a test that failed and used a broker, and name it in its report."""
        report = yield
        if report.failed and report.when != "teardown":
            views = self._watch.all_views(brokers_of(item))
            if views:
                self._add(item, report, views)
        return report

    def _add(self, item: pytest.Item, report: pytest.TestReport, views: list[View]) -> None:
        path = self.path_of(item.nodeid)
        failed = FailedTest(
            test_id=item.nodeid,
            at_ms=SystemClock().now_ms(),
            duration_ms=report.duration * 1000,
            phase="test" if report.when == "call" else str(report.when),
            error=report.longreprtext,
            views=views,
            log_lines=list(self._log.lines),
        )
        try:
            path.write_text(page(failed), encoding="utf-8")
        except OSError as error:
            report.sections.append((_SECTION, f"{path} cannot be written: {error.strerror}"))
            return
        report.sections.append((_SECTION, str(path)))
        place = os.path.relpath(path, self._config.invocation_params.dir).replace(os.sep, "/")
        item.user_properties.append((PROPERTY, place))
        if self._config.pluginmanager.has_plugin("html"):
            _link(report, path, self._config)

    def path_of(self, test_id: str) -> Path:
        """Return the file of a test's page: its id in letters of a file name, and a digest."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", test_id)[:_NAME_MAX].strip("-")
        digest = sha256(test_id.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
        return self.directory / f"{plain}-{digest}.html"


def _link(report: pytest.TestReport, path: Path, config: pytest.Config) -> None:
    """Give pytest-html a link to the page, and the page in a frame."""
    from pytest_html import extras  # noqa: PLC0415  only where the plugin is

    html_path = config.getoption("htmlpath")
    if not html_path:
        return
    place = os.path.relpath(path, Path(html_path).absolute().parent).replace(os.sep, "/")
    frame = f'<iframe src="{place}" title="brokers" width="100%" height="600"></iframe>'
    links = [extras.url(place, name="minibroker"), extras.html(frame)]
    vars(report)["extras"] = [*getattr(report, "extras", []), *links]


class _TestLog(logging.Handler):
    """The last log lines of minibroker in a test, at the levels that logging is set to."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(_LOG_FORMAT, "%H:%M:%S"))
        self.lines: deque[str] = deque(maxlen=_LINES_MAX)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
