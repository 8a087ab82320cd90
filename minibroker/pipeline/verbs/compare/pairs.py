"""The two sides of a partition beside each other: records that are the same are not hashed.

    A ── batches ─┐                    ┌─ the same ─► their number
                  ├► pieces of both ───┤
    B ── batches ─┘  of equal length   └─ differ ───► their digests

Arrow compares the columns of a piece, many bytes at a time. A copy has the records of a partition
in the same order as a rule, so almost all pieces are the same, whatever the borders of the batches
and their compression. Behind a record that is only on one side every piece differs, and all of it
is hashed: the digests tell then which keys are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from minibroker.pipeline.verbs.compare.digests import Digester


def digest_pair(
    sides: Sequence[Iterator[pa.RecordBatch]],
    digesters: Sequence[Digester],
    columns: Sequence[str],
) -> None:
    """Take the records of both sides into their digesters.

    Args:
        sides: of A and of B, by partition and offset; a batch is of one partition and not empty.
        digesters: of A and of B.
        columns: that have to be the same in two records.
    """
    a, b = (_Records(batches) for batches in sides)
    while a.is_there or b.is_there:
        if a.is_there and b.is_there and a.partition == b.partition:
            rows = min(a.rows, b.rows)
            of_a, of_b = a.take(rows), b.take(rows)
            if all(of_a[name].equals(of_b[name]) for name in columns):
                digesters[0].add_same(of_a)
                digesters[1].add_same(of_b)
            else:
                digesters[0].add(of_a)
                digesters[1].add(of_b)
        elif a.is_there and (not b.is_there or a.partition < b.partition):
            digesters[0].add(a.take(a.rows))
        else:
            digesters[1].add(b.take(b.rows))


class _Records:
    """The records of one side that wait to be taken."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._batch = next(batches, None)

    @property
    def is_there(self) -> bool:
        """Return whether there are records."""
        return self._batch is not None

    @property
    def rows(self) -> int:
        """Return how many records can be taken."""
        return int(self._waiting.num_rows)

    @property
    def partition(self) -> int:
        """Return the partition of these records."""
        return int(self._waiting["partition"][0].as_py())

    @property
    def _waiting(self) -> pa.RecordBatch:
        assert self._batch is not None
        return self._batch

    def take(self, rows: int) -> pa.RecordBatch:
        """Return the first records, `rows` at most, and go on behind them."""
        batch = self._waiting
        is_all = rows >= batch.num_rows
        self._batch = next(self._batches, None) if is_all else batch.slice(rows)
        return batch.slice(0, rows)
