"""The places where minibroker, Kafka 3.9.1 and Kafka 4.4.0 answer differently, with the reason.

A line here is checked in both directions: each place that it names must differ, with exactly these
values, in every version that it names. A stale line fails the test. One module per group of APIs.
"""

from __future__ import annotations

from tests.compat.known_differences import admin, configs, groups, records, topics
from tests.compat.verdict import KnownDifference

KNOWN_DIFFERENCES: list[KnownDifference] = [
    *admin.LINES,
    *configs.LINES,
    *groups.LINES,
    *records.LINES,
    *topics.LINES,
]


def differences_of(scenario: str, version: int) -> list[KnownDifference]:
    """Return the lines that a run of `scenario` at `version` must prove."""
    return [
        line
        for line in KNOWN_DIFFERENCES
        if line.scenario == scenario and line.since <= version <= line.until
    ]
