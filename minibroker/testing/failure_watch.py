"""`FailureWatch`: looks at the brokers of a test that fails, before they are gone.

With `--kafka-report` every broker that a test starts is shown to the watch. A broker of a fixture
lives until the report of the test is made. A broker of a `with` block ends when the exception
leaves the block, so it is looked at there.

    Broker, Cluster ─ begin, end ─► FailureWatch ─ views ─► failure_reports ─► the page
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakSet

from minibroker.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.rig.node import Node
    from minibroker.rig.snapshot import Snapshot
    from minibroker.testing.broker_faults import Faults


class Visible(Protocol):
    """Brokers that can be looked at: `in_process.InProcess` is."""

    faults: Faults

    @property
    def nodes(self) -> Sequence[Node]:
        """Return the nodes of all brokers, for their loop."""

    def snapshot(self, since_ms: float = 0.0) -> Snapshot:
        """Return all that can be seen of the brokers now."""

    def secrets(self) -> set[str]:
        """Return passwords that no report may show."""


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


class FailureWatch:
    """The brokers of this process, and how they were. Belongs to the thread of the tests."""

    def __init__(self) -> None:
        self.running: list[Visible] = []
        """Brokers and clusters that serve; loops of brokers add and remove themselves."""
        self.views: list[View] = []
        """Views of brokers that this test has ended by its failure."""
        self.since_ms = 0
        """The start of the test, by the machine's clock."""
        self.of_fixtures: WeakSet[Visible] = WeakSet()
        """The brokers that fixtures of minibroker made, of whatever test."""
        self._started: WeakSet[Visible] = WeakSet()
        """Brokers that began since the start of the test."""

    def begin_test(self) -> None:
        """Forget the test before."""
        self.since_ms = SystemClock().now_ms()
        self.views.clear()
        self._started.clear()
        for brokers in self.running:
            brokers.faults.history.clear()

    def begin(self, brokers: Visible) -> None:
        """Describe the requests of brokers that begin to serve. Called on their loop."""
        for node in brokers.nodes:
            node.request_log.watch()
        self.running.append(brokers)
        self._started.add(brokers)

    def end(self, brokers: Visible) -> None:
        """Forget brokers that end. Called on their loop."""
        self.running.remove(brokers)

    def look(self, brokers: Visible) -> None:
        """Add a view of brokers that end because their test fails."""
        self.views.append(self.view_of(brokers))

    def all_views(self, of_fixtures: Sequence[Visible]) -> list[View]:
        """Return a view of each broker that the test used, those that are gone first.

        `of_fixtures`: those that its fixtures of minibroker have. Of the brokers that no fixture of
        minibroker made, the test used those that it started, and those that were asked meanwhile.
        """
        others = [
            brokers
            for brokers in self.running
            if brokers not in self.of_fixtures
            and (brokers in self._started or self._was_used(brokers))
        ]
        return [*self.views, *map(self.view_of, of_fixtures), *map(self.view_of, others)]

    def _was_used(self, brokers: Visible) -> bool:
        return any(
            node.request_log and node.request_log[-1].machine_ms >= self.since_ms
            for node in brokers.nodes
        )

    def view_of(self, brokers: Visible) -> View:
        """Return a view of brokers that run; the reason where it cannot be taken."""
        count = len(brokers.nodes)
        title = "Broker" if count == 1 else f"Cluster of {count} brokers"
        secrets = frozenset(brokers.secrets())
        try:
            return View(title, brokers.snapshot(self.since_ms), "", secrets)
        except Exception as error:  # the page says it; the test's own failure is what counts
            return View(title, None, f"{type(error).__name__}: {error}", secrets)
