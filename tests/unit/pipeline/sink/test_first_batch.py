"""The check of a run's first batch; with brokers: tests/pipeline/test_sink_writer.py."""

from __future__ import annotations

from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.sink.first_batch import digest_of_ends

RANGES = [OffsetRange("a", 0, 0, 5), OffsetRange("b", 1, 2, 9)]


def test_the_digest_is_of_ends_alone() -> None:
    """A source that has lost its first records gives later starts to a repeated batch."""
    found = digest_of_ends(RANGES)
    assert digest_of_ends(reversed(RANGES)) == found
    assert digest_of_ends([RANGES[0]._replace(start=3), RANGES[1]]) == found
    assert digest_of_ends([RANGES[0]._replace(end=6), RANGES[1]]) != found
    assert digest_of_ends(RANGES[:1]) != found
    assert len(found) == 16
