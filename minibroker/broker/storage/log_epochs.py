"""The leader epochs of one log, and the checkpoint that has to follow each change of them.

`LeaderEpochs` is the history and pure; this is the one of a log that is served. The worker writes
the file, every flush makes sure of it. Until then a start finds the epochs in batches that are not
synced yet.

Source: Kafka LeaderEpochFileCache.
"""

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.tasks import EpochsTask


class LogEpochs:
    """Leader epochs that are stored whenever they change. Belongs to the loop.

    Methods that change them return whether they did.
    """

    __slots__ = ("_disk", "_place", "history")

    def __init__(self, disk: Disk, place: PartitionDirectory, known: LeaderEpochs) -> None:
        """Begin with what is `known` from the file, and own it. `place` is that of the log."""
        self._disk = disk  # constant after construction, as `_place`
        self._place = place
        self.history = known
        """To be asked by everybody, and changed only here."""

    def store(self) -> None:
        """Have the worker write the checkpoint."""
        self._place.epochs_content = self.history.to_text().encode("ascii")
        self._disk.run_later(EpochsTask(self._place))

    def begin(self, epoch: int, start_offset: int) -> bool:
        """Do `assign`, and leave the file to the next `store`."""
        return self.history.assign(epoch, start_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Do `LeaderEpochs.assign`."""
        return self._stored(self.history.assign(epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> bool:
        """Do `LeaderEpochs.truncate_from_end`."""
        return self._stored(self.history.truncate_from_end(end_offset))

    def truncate_from_start(self, start_offset: int) -> bool:
        """Do `LeaderEpochs.truncate_from_start`."""
        return self._stored(self.history.truncate_from_start(start_offset))

    def clear(self) -> bool:
        """Forget everything."""
        return self._stored(self.history.clear())

    def _stored(self, has_changed: bool) -> bool:
        if has_changed:
            self.store()
        return has_changed
