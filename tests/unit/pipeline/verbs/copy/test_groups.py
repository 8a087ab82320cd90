"""Offsets of groups never go back."""

from __future__ import annotations

import pyarrow as pa

from minibroker.pipeline.offsets import TopicPartition
from minibroker.pipeline.verbs.copy.groups import forward, rows_in


def test_only_moves_forward_are_made() -> None:
    first, second, third = (TopicPartition("t", number) for number in range(3))
    moves = {first: 5, second: 7, third: 9, TopicPartition("u", 0): 0}
    there = {first: 6, second: 7, third: 8}
    assert forward(moves, there) == {third: 9, TopicPartition("u", 0): 0}


def test_rows_of_batches_are_counted() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2]})
    assert rows_in([batch, batch]) == 4
    assert rows_in([]) == 0
