"""The rows of an Arrow batch of records by their partition; nearly every batch has only one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator


def rows_by_partition(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield topic, partition and rows, in their order, of each partition in a batch."""
    topics = pc.unique(batch["topic"]).to_pylist()
    for topic in topics:
        of_topic = batch if len(topics) == 1 else batch.filter(pc.equal(batch["topic"], topic))
        partitions = pc.unique(of_topic["partition"]).to_pylist()
        for partition in partitions:
            if len(partitions) == 1:
                yield topic, partition, of_topic
                continue
            yield topic, partition, of_topic.filter(pc.equal(of_topic["partition"], partition))
