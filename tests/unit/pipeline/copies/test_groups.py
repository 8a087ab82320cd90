"""Offsets of groups never go back."""

from __future__ import annotations

import pyarrow as pa

from minibroker.pipeline.copies.groups import forward, rows_in


def test_only_moves_forward_are_made() -> None:
    moves = {("t", 0): 5, ("t", 1): 7, ("t", 2): 9, ("u", 0): 0}
    there = {"t": {0: 6, 1: 7, 2: 8}}
    assert forward(moves, there) == {("t", 2): 9, ("u", 0): 0}


def test_rows_of_batches_are_counted() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2]})
    assert rows_in([batch, batch]) == 4
    assert rows_in([]) == 0
