"""The means of a row: one running broker."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.children import Child
from benchmarks.plan import Plan
from benchmarks.results import Results


class RowError(Exception):
    """A row could not be measured; the message says why."""


class Session(NamedTuple):
    """A broker that answers on 127.0.0.1:`port`, and where its samples go."""

    broker: str
    child: Child
    port: int
    directory: Path
    has_groups: bool
    plan: Plan
    results: Results

    @property
    def bootstrap(self) -> str:
        """Return the broker's address for a client."""
        return f"127.0.0.1:{self.port}"

    def add(self, metric: str, sample: float) -> None:
        """Add one more sample of this broker."""
        self.results.add(self.broker, metric, sample)
