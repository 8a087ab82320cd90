"""`FailureWatch`: looks at the brokers of a test that fails, before they are gone.

With `--kafka-report` every broker and proxy that a test starts is shown to the watch. One of a
fixture lives until the report of the test is made. One of a `with` block ends when the exception
leaves the block, so it is looked at there.

    Broker, Cluster, Proxy ─ begin, end ─► FailureWatch ─ views ─► failure_reports ─► the page
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol
from weakref import WeakSet

from minibroker.clock import SystemClock
from minibroker.testing.loop_thread import InThread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from minibroker.rig.request_log import RequestLog
    from minibroker.rig.snapshot import FaultSnapshot, Snapshot
    from minibroker.testing.broker_faults import Faults


class View(NamedTuple):
    """One broker or cluster as it was when its test failed."""

    title: str
    """`Broker`, `Cluster of 3 brokers`."""
    snapshot: Snapshot | None
    """None: it could not be taken."""
    reason: str
    """The error that kept it from being taken."""
    secrets: frozenset[str] = frozenset()
    """Texts that no page may show."""


class Visible(Protocol):
    """Something that a page can show."""

    @property
    def title(self) -> str:
        """Return the kind of thing."""

    def snapshot(self, since_ms: float = 0.0) -> Snapshot:
        """Return all that can be seen of it now."""

    def secrets(self) -> set[str]:
        """Return passwords that no report may show."""


class Watched(InThread, ABC):
    """Brokers or a proxy of this process, which a watch can see."""

    watch: ClassVar[FailureWatch | None] = None
    """With `--kafka-report`: looks at whatever serves a test that fails."""
    faults: Faults
    is_of_fixture = False
    """True: a fixture of minibroker made it, and says which tests use it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the kind of thing."""

    @abstractmethod
    def snapshot(self, since_ms: float = 0.0) -> Snapshot:
        """Return all that can be seen of it now. Raises RuntimeError.

        `since_ms`: requests that came before are left out, by the machine's clock.
        """

    @abstractmethod
    def request_logs(self) -> Sequence[RequestLog]:
        """Return the logs of its brokers, for their loop."""

    def secrets(self) -> set[str]:
        """Return passwords that no report may show."""
        return set()

    def _note_failure(self) -> None:
        if self.watch is not None:
            self.watch.look(self)

    @asynccontextmanager
    async def _in_sight(self, serving: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
        """Serve inside of the context, in sight of the watch."""
        watch = self.watch
        async with serving:
            if watch is not None:
                watch.begin(self)
            try:
                yield
            finally:
                if watch is not None:
                    watch.end(self)


class FailureWatch:
    """All that serves tests in this process, and how it was. Belongs to the thread of the tests."""

    def __init__(self) -> None:
        self.running: list[Watched] = []
        """Everything that serves; the loops of brokers add and remove themselves."""
        self.views: list[View] = []
        """Views of brokers that this test has ended by its failure."""
        self.since_ms = 0
        """The start of the test, by the machine's clock."""
        self._started: WeakSet[Watched] = WeakSet()
        """Brokers that began since the start of the test."""

    def begin_test(self) -> None:
        """Forget the test before."""
        self.since_ms = SystemClock().now_ms()
        self.views.clear()
        self._started.clear()
        for brokers in self.running:
            brokers.faults.history.clear()

    def begin(self, brokers: Watched) -> None:
        """Follow the requests of brokers that begin to serve. Called on their loop."""
        for log in brokers.request_logs():
            log.follow(every=True)
        self.running.append(brokers)
        self._started.add(brokers)

    def end(self, brokers: Watched) -> None:
        """Forget brokers that end. Called on their loop."""
        self.running.remove(brokers)

    def look(self, brokers: Watched) -> None:
        """Add a view of brokers that end because their test fails."""
        self.views.append(self.view_of(brokers))

    def all_views(self, of_fixtures: Iterable[Visible]) -> list[View]:
        """Return a view of each broker that the test used, those that are gone first.

        `of_fixtures`: those that its fixtures of minibroker have. Of the brokers that no fixture of
        minibroker made, the test used those that it started, and those that were asked meanwhile.
        """
        others = [
            brokers
            for brokers in self.running
            if not brokers.is_of_fixture and (brokers in self._started or self._was_used(brokers))
        ]
        return [*self.views, *map(self.view_of, of_fixtures), *map(self.view_of, others)]

    def _was_used(self, brokers: Watched) -> bool:
        return any(log and log[-1].machine_ms >= self.since_ms for log in brokers.request_logs())

    def view_of(self, brokers: Visible) -> View:
        """Return a view of brokers that run; the reason where it cannot be taken."""
        secrets = frozenset(brokers.secrets())
        try:
            return View(brokers.title, brokers.snapshot(self.since_ms), "", secrets)
        except Exception as error:  # the page says it; the test's own failure is what counts
            return View(brokers.title, None, f"{type(error).__name__}: {error}", secrets)


def fault_snapshots(faults: Faults) -> list[FaultSnapshot]:
    """Return the rules of a test, those that are removed too, in the order of their addition."""
    from minibroker.rig.snapshot import FaultSnapshot  # noqa: PLC0415  only who asks pays

    return [FaultSnapshot.of(rule) for rule in dict.fromkeys((*faults.history, *faults))]
