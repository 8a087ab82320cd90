"""The rows of a batch by their partition, each in the order that they had."""

from __future__ import annotations

import pyarrow as pa

from minibroker.pipeline.kafka.partition_rows import rows_by_partition


def test_rows_come_by_topic_and_partition_in_their_order() -> None:
    rows = [("a", 1, 5), ("b", 0, 6), ("a", 1, 7), ("a", 0, 8), ("b", 0, 4)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_pydict(
        dict(zip(("topic", "partition", "offset"), columns, strict=True))
    )
    found = [
        (topic, partition, part["offset"].to_pylist())
        for topic, partition, part in rows_by_partition(batch)
    ]
    assert found == [("a", 1, [5, 7]), ("a", 0, [8]), ("b", 0, [6, 4])]
    assert not list(rows_by_partition(batch.slice(0, 0)))


def test_a_batch_of_one_partition_is_not_copied() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["a", "a"], "partition": [0, 0]})
    [(_, _, part)] = rows_by_partition(batch)
    assert part is batch
