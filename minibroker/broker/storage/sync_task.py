"""A sync of a log that is written to: everything durable, and a start near its end.

A flush alone bounds what a power cut takes. Recovery after a kill also replays the producers, from
the newest snapshot on. So a sync writes a snapshot for the offset where it ends: the next start
looks at nothing below that offset. `partitions/syncing.py` decides when a log is synced.

The snapshot before it is superseded, if it is not the one of a segment. It may go when the
checkpoint names the new recovery point.

Source: Kafka ProducerStateManager.takeSnapshot, which Kafka calls at a roll and at a clean stop.
"""

from collections.abc import Callable

from minibroker.broker.storage.tasks import FlushTask


class SyncTask:
    """A worker calls it, then the loop calls `apply`."""

    __slots__ = ("_flush", "_note_snapshot", "offset")

    def __init__(self, flush: FlushTask, note_snapshot: Callable[[int], str | None] | None) -> None:
        """`note_snapshot`: of the log, where `flush` writes a snapshot for the offset where it
        ends; None: there is one.
        """
        self._flush = flush
        self._note_snapshot = note_snapshot
        self.offset = flush.end

    def __call__(self) -> None:
        """Write the snapshot, sync it and the log. Raises StorageError."""
        self._flush()

    def apply(self) -> str | None:
        """Tell the log that it is synced. Return the path of the snapshot that nobody needs once
        the recovery point is checkpointed, None: there is none. On the loop.
        """
        self._flush.apply()
        if self._note_snapshot is None or not self._flush.is_current:
            return None
        return self._note_snapshot(self.offset)
