"""A sync of a log that is written to: everything durable, and a start near its end.

A flush alone bounds what a power cut takes. Recovery after a kill also replays the producers, from
the newest snapshot on. So a sync writes a snapshot for the offset where it ends: the next start
looks at nothing below that offset. `partitions/syncing.py` decides when a log is synced.

The snapshot before it is superseded, if it is not the one of a segment. It may go when the
checkpoint names the new recovery point.

Source: Kafka ProducerStateManager.takeSnapshot, which Kafka calls at a roll and at a clean stop.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minibroker.errors import StorageError
from minibroker.storage import producer_files
from minibroker.storage.producer_state import ProducerEntry, encode_snapshot
from minibroker.storage.tasks import FlushTask

if TYPE_CHECKING:
    from minibroker.storage.durable_log import DurableLog


class SyncTask:
    """A worker calls it, then the loop calls `apply`."""

    __slots__ = ("_directory", "_flush", "_log", "_producers", "_truncation_count", "offset")

    def __init__(
        self, log: "DurableLog", flush: FlushTask, producers: Mapping[int, ProducerEntry] | None
    ) -> None:
        """`producers`: those at the offset where `flush` ends, nobody changes the mapping. None:
        there is a snapshot for that offset already.
        """
        self._log = log
        self._flush = flush
        self._producers = producers
        self._directory = log.directory
        self._truncation_count = log.truncation_count
        self.offset = flush.end

    def __call__(self) -> None:
        """Sync the log, write and sync the snapshot. Raises StorageError."""
        self._flush()
        if self._producers is None:
            return
        log = self._log
        try:
            self._write(encode_snapshot(self._producers))
        except OSError as error:
            if log.is_deleted:
                return  # the directory went away underneath: nothing to keep
            raise StorageError(
                f"cannot write the producers of {log.name} in {log.directory}: {error}",
                log_directory=log.log_directory,
            ) from error

    def _write(self, content: bytes) -> None:
        """Not where the log was truncated or has left its directory: another log may be there."""
        files = self._log.files
        path = producer_files.snapshot_path(self._directory, self.offset)
        with producer_files.changing:
            if not self._is_current:
                return
            producer_files.write_content(files, path, content)
        files.sync_path(path)

    @property
    def _is_current(self) -> bool:
        log = self._log
        return not log.is_deleted and log.truncation_count == self._truncation_count

    def apply(self) -> str | None:
        """Tell the log that it is synced. Return the path of the snapshot that nobody needs once
        the recovery point is checkpointed, None: there is none. On the loop.
        """
        self._flush.apply()
        if self._producers is None or not self._is_current:
            return None
        return self._log.note_snapshot(self.offset)
