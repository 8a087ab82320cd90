"""The driver's questions to the brokers: their order, where it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.options import Bound
from minibroker.pipeline.kafka.source.topics import TopicOffsets
from minibroker.pipeline.offsets import LATEST, Offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "a,b"}


class GrowingTopics(TopicOffsets):
    """Topics that get a record after each question."""

    def __init__(self, ends: Offsets, at: Offsets) -> None:
        super().__init__(options.parse(OPTIONS, streaming=True))
        self._ends = ends
        self._at = at

    def _list_offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        is_end = set(times.values()) == {LATEST}
        offsets = {place: (self._ends if is_end else self._at)[place] for place in times}
        self._ends = {place: end + 1 for place, end in self._ends.items()}
        return offsets


def test_a_record_between_two_questions_is_not_skipped() -> None:
    """No record of B is so late: it begins at the end that it had before that answer."""
    topics = GrowingTopics({A: 5, B: 7}, {A: 3, B: -1})
    bound = Bound(timestamp_ms=1000)
    assert topics.at(bound, [A, B], side="starting", where_none=LATEST) == {A: 3, B: 7}


def test_a_time_without_records_is_refused_unless_the_end_is_meant() -> None:
    topics = GrowingTopics({A: 5}, {A: -1})
    with pytest.raises(PipelineError, match="a-0 has no record at that time or later"):
        topics.at(Bound(timestamp_ms=1000), [A], side="starting", where_none=0)
