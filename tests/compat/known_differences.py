"""Where minibroker and Apache Kafka answer differently, and why that is right.

A line here is a promise in both directions: what it names must differ, in every version it names. A
difference that is gone fails the test until its line is gone as well.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

NEWEST = 99


class Difference(NamedTuple):
    """One accepted difference."""

    scenario: str
    path: str
    """Pattern of the places in the transcript, as `fnmatch` reads it (`[` is literal here)."""
    reason: str
    since: int = 0
    until: int = NEWEST
    peer: str | None = None
    """Only against this peer (`3.9.1`, `4.4.0`); None: against both."""

    def covers(self, path: str) -> bool:
        """Whether this line is about `path`."""
        return fnmatchcase(path, self.path.replace("[", "[[]"))


KNOWN_DIFFERENCES: list[Difference] = []


def differences_of(scenario: str, version: int, peer: str) -> list[Difference]:
    """The lines that a run of `scenario` at `version` against `peer` must prove."""
    return [
        line
        for line in KNOWN_DIFFERENCES
        if line.scenario == scenario
        and line.since <= version <= line.until
        and line.peer in {None, peer}
    ]
