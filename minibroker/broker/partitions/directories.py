"""Log directories that fail.

Every part that is told of a `StorageError` (an append, a checkpoint on the worker) hands it to
`FailedDirectories.note`. If the disk will refuse again, the directory goes offline: its partitions
answer KAFKA_STORAGE_ERROR, the cluster is told that they have no replica here, and everything else
is served on. Without a directory left, or without the one that holds the metadata, the broker ends,
as Kafka's does.

Source: Kafka ReplicaManager.handleLogDirFailure, LogDirFailureChannel.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.kafka.errors import StorageError
    from minibroker.kafka.ids import TopicPartition

logger = logging.getLogger(__name__)


class FailedDirectories:
    """Takes directories offline. Belongs to the loop's thread."""

    __slots__ = ("_essential", "_logs", "_on_fatal", "_on_offline", "_partitions")

    def __init__(
        self,
        *,
        logs: LogManager,
        partitions: PartitionManager,
        on_offline: Callable[[list[TopicPartition]], None],
        on_fatal: Callable[[str], None],
        essential: str | None = None,
    ) -> None:
        """`on_offline` gets the partitions that were lost, `on_fatal` the reason to end.

        `essential`: the directory without which there is no broker, None: any one will do.
        """
        self._logs = logs
        self._partitions = partitions
        self._on_offline = on_offline
        self._on_fatal = on_fatal
        self._essential = essential

    def note(self, error: StorageError) -> None:
        """Take note of what a disk refused; the caller has said so in the log already."""
        path = error.log_directory
        if path is None or not error.is_lasting:
            return
        lost = self._logs.fail_directory(path)
        if lost is None:
            return
        self._partitions.take_offline(lost)
        logger.error(
            "the log directory %s failed and is offline with its %d partitions: %s",
            path,
            len(lost),
            error,
        )
        if not self._logs.live_directories:
            self._on_fatal(f"all log directories have failed; the last one is {path}: {error}")
        elif path == self._essential:
            self._on_fatal(f"the log directory {path}, which holds the metadata, failed: {error}")
        elif lost:
            self._on_offline(lost)
