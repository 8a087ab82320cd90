"""One log directory as the broker's other parts see it: its path, its space, the logs in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minibroker.broker.storage.log_directory import LogDirectory
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog


class LogDirectoryView:
    """One log directory as DescribeLogDirs shows it."""

    __slots__ = ("_directory", "_logs")

    def __init__(self, directory: LogDirectory, logs: LogManager) -> None:
        self._directory = directory
        self._logs = logs

    @property
    def path(self) -> str:
        """Absolute path, as Kafka names it."""
        return str(Path(self._directory.path).absolute())

    @property
    def configured_path(self) -> str:
        """Return the path in `log.dirs`."""
        return self._directory.path

    @property
    def is_offline(self) -> bool:
        """Return whether the directory failed, and nothing in it is served."""
        return self._directory.is_offline

    def space(self) -> tuple[int, int]:
        """Return total and usable bytes of its file system. Raises StorageError."""
        return self._logs.space_of(self._directory)

    def logs(self) -> list[PartitionLog]:
        """Return the partitions' logs in it."""
        return self._logs.logs_in(self._directory)
