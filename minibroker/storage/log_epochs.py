"""The leader epochs of one log, and the checkpoint that has to follow each change of them.

`LeaderEpochs` is the history and pure; this is the one of a log that is served. The worker writes
the file, every flush makes sure of it. Until then a start finds the epochs in batches that are not
synced yet.

Source: Kafka LeaderEpochFileCache.
"""

from minibroker.storage.disk import Disk
from minibroker.storage.epochs import LeaderEpochs
from minibroker.storage.partition_directory import PartitionDirectory
from minibroker.storage.tasks import EpochsTask


class LogEpochs(LeaderEpochs):
    """Leader epochs that are stored whenever they change. Belongs to the loop."""

    __slots__ = ("_disk", "_place")

    def __init__(self, disk: Disk, place: PartitionDirectory, known: LeaderEpochs) -> None:
        """Begin with what is `known` from the file. `place` is that of the log."""
        super().__init__()
        self._disk = disk  # constant after construction, as `_place`
        self._place = place
        for epoch, start_offset in known.entries:
            super().assign(epoch, start_offset)

    def store(self) -> None:
        """Have the worker write the checkpoint."""
        self._place.epochs_content = self.to_text().encode("ascii")
        self._disk.run_later(EpochsTask(self._place))

    def begin(self, epoch: int, start_offset: int) -> bool:
        """Do `assign`, and leave the file to the next `store`."""
        return super().assign(epoch, start_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        return self._stored(super().assign(epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> bool:
        return self._stored(super().truncate_from_end(end_offset))

    def truncate_from_start(self, start_offset: int) -> bool:
        return self._stored(super().truncate_from_start(start_offset))

    def clear(self) -> bool:
        return self._stored(super().clear())

    def _stored(self, has_changed: bool) -> bool:
        if has_changed:
            self.store()
        return has_changed
