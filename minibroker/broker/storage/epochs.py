"""The leader epochs of one partition: which epoch began at which offset.

`LeaderEpochs` is the history and pure: OffsetForLeaderEpoch and Fetch's divergence check ask it,
every append that brings a new epoch extends it, and it is cut with the log. `to_text` and
`from_text` are the content of `leader-epoch-checkpoint`. Both epochs and start offsets grow from
entry to entry. After a crash the checkpoint may hold epochs that the log lost; the log truncates
the history to its own start and end when it opens, which repairs that.

`LogEpochs` is the history of a log that is served. The worker writes the file, every flush makes
sure of it. Until then a start finds the epochs in batches that are not synced yet.

`with_earlier_epochs` reads epochs before the first one that a log knows from the batches. Needed by
a start after a crash: retention cuts the epochs with the log and stores them at once; the names of
the deleted segments are synced later. A power cut between the two brings segments back whose epochs
are forgotten. The name of a new checkpoint can be lost, too. Differs from Kafka, whose LogLoader
adds epochs behind the recovery point only: to a follower it names no epoch for such records.

Source: Kafka LeaderEpochFileCache, LeaderEpochCheckpointFile; KIP-101, KIP-320.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from minibroker.broker.storage.batch_walks import checked_batches
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.tasks import EpochsTask
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import NO_LEADER_EPOCH

if TYPE_CHECKING:
    from minibroker.broker.storage.segment import Segment, Segments


NO_OFFSET: Final = -1

_VERSION: Final = "0"


class LeaderEpochs:
    """Epochs and their start offsets, ascending. `latest_epoch` is -1 while there is none.

    Every method that changes the history tells whether it did: then the checkpoint has to be
    written. All fields belong to the loop, or to the start that loads the log.
    """

    __slots__ = ("_epochs", "_starts", "latest_epoch")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest_epoch = NO_LEADER_EPOCH

    @property
    def entries(self) -> list[tuple[int, int]]:
        """Return (epoch, start offset), ascending."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`; the latest epoch keeps an earlier start.

        Entries that are not below the new one, by epoch or by offset, go: they belong to records
        that were truncated. Raises ValueError for a negative epoch or offset.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch}, offset {start_offset}: both must be 0 or more")
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and starts[-1] <= start_offset:
            return False
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self.latest_epoch = epoch
        return True

    def correct(self, epoch: int, offset: int) -> bool:
        """Note that the batch at `offset` is of `epoch`; return whether the history said otherwise.

        After a power cut a batch may be back that was truncated, while the epoch of what came in
        its place is durable. Epochs above its own begin behind it, or did not begin.
        """
        epochs, starts = self._epochs, self._starts
        first, end = bisect_right(epochs, epoch), bisect_right(starts, offset)
        if first >= end:
            return False
        del epochs[first:end]
        del starts[first:end]
        if not first or epochs[first - 1] != epoch:
            epochs.insert(first, epoch)
            starts.insert(first, offset)
        self.latest_epoch = epochs[-1]
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest known epoch <= `epoch`, offset behind its last record); (-1, -1) when unknown.

        An epoch before the first known one answers itself and the first start offset: what it wrote
        is gone.
        """
        if epoch == NO_LEADER_EPOCH or not self._epochs:
            return NO_LEADER_EPOCH, NO_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return NO_LEADER_EPOCH, NO_OFFSET
        floor_epoch = self._epochs[above - 1] if above else epoch
        return floor_epoch, self._starts[above]

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that begin at `end_offset` or behind it: the log now ends there."""
        keep = bisect_left(self._starts, end_offset)
        if end_offset < 0 or keep == len(self._starts):
            return False
        del self._epochs[keep:]
        del self._starts[keep:]
        self.latest_epoch = self._epochs[-1] if self._epochs else NO_LEADER_EPOCH
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget epochs before the one that wrote `start_offset`, which now begins there."""
        below = bisect_right(self._starts, start_offset) - 1
        if below < 0 or (below == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:below]
        del self._starts[:below]
        self._starts[0] = start_offset
        return True

    def clear(self) -> bool:
        """Forget everything."""
        had_entries = bool(self._epochs)
        self._epochs.clear()
        self._starts.clear()
        self.latest_epoch = NO_LEADER_EPOCH
        return had_entries

    def to_text(self) -> str:
        """Return the checkpoint file: version, number of entries, then one `epoch offset` line
        each.
        """
        lines = [_VERSION, str(len(self._epochs))]
        lines += [f"{epoch} {start}" for epoch, start in self.entries]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_text(cls, text: str) -> LeaderEpochs:
        """Return the history a checkpoint file holds.

        Raises CorruptionError for an empty file, another version, a line that is not two numbers,
        or a wrong count. Differs from Kafka's CheckpointFile, to which a file that ends before its
        count holds nothing: readers would lose the history, and be served past a truncation.
        """
        history = cls()
        lines = text.splitlines()
        if not lines:
            raise CorruptionError("leader epoch checkpoint is empty")
        if lines[0] != _VERSION:
            raise CorruptionError(
                f"leader epoch checkpoint has version {lines[0]!r}, expected {_VERSION}"
            )
        if len(lines) < 2:
            raise CorruptionError("leader epoch checkpoint ends before its number of entries")
        for line in lines[2:]:
            numbers = line.split()
            if len(numbers) != 2 or not all(_is_number(number) for number in numbers):
                raise CorruptionError(
                    f"leader epoch checkpoint has the line {line!r}, expected 'epoch offset'"
                )
            history.assign(int(numbers[0]), int(numbers[1]))
        if lines[1] != str(len(lines) - 2):
            raise CorruptionError(
                f"leader epoch checkpoint announces {lines[1]!r} entries and holds {len(lines) - 2}"
            )
        return history


def _is_number(text: str) -> bool:
    """Return whether it is decimal digits alone: `int` takes signs, blanks and underscores, too."""
    return text.isascii() and text.isdigit()


class LogEpochs:
    """Leader epochs that are stored whenever they change. Belongs to the loop."""

    __slots__ = ("_disk", "_place", "history")

    def __init__(self, disk: Disk, place: PartitionDirectory, epochs: LeaderEpochs) -> None:
        """Begin with what is `epochs` from the file, and own it. `place` is that of the log."""
        self._disk = disk  # constant after construction, as `_place`
        self._place = place
        self.history = epochs
        """To be asked by everybody, and changed only here."""

    def store(self) -> None:
        """Have the worker write the checkpoint."""
        self._place.epochs_content = self.history.to_text().encode("ascii")
        self._disk.worker.run_later(EpochsTask(self._place))

    def begin(self, epoch: int, start_offset: int) -> None:
        """Do `assign`, and leave the file to the next `store`."""
        self.history.assign(epoch, start_offset)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Do `LeaderEpochs.assign`."""
        self._store_if(self.history.assign(epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> None:
        """Do `LeaderEpochs.truncate_from_end`."""
        self._store_if(self.history.truncate_from_end(end_offset))

    def truncate_from_start(self, start_offset: int) -> None:
        """Do `LeaderEpochs.truncate_from_start`."""
        self._store_if(self.history.truncate_from_start(start_offset))

    def clear(self) -> None:
        """Forget everything."""
        self._store_if(self.history.clear())

    def _store_if(self, has_changed: bool) -> None:
        if has_changed:
            self.store()


def with_earlier_epochs(
    disk: Disk, segments: Segments, epochs: LeaderEpochs, *, start_offset: int, end_offset: int
) -> LeaderEpochs:
    """Return `epochs` with the epochs of the batches before it; `epochs` itself where it reaches
    back to the log's start, or where these batches have none.

    `start_offset`, `end_offset`: of the log. Reads batch headers only, and of a log that has
    messages of formats 0 or 1 there at most the segment with the last of them. Raises OSError.
    """
    entries = epochs.entries
    until = min(entries[0][1], end_offset) if entries else end_offset
    if until <= start_offset:
        return epochs
    earlier: list[tuple[int, int]] = []
    for segment in reversed(segments.since(start_offset)):
        if segment.base_offset < until:
            batch_epochs, has_old_formats = _epochs_in(disk, segment, start_offset, until)
            earlier = [*batch_epochs, *earlier]
            if has_old_formats:
                break  # these formats have no epochs, and an append of one ends the history
    if not earlier:
        return epochs
    whole = LeaderEpochs()
    for epoch, first_offset in (*earlier, *entries):
        whole.assign(epoch, first_offset)
    return whole


def _epochs_in(
    disk: Disk, segment: Segment, start_offset: int, until: int
) -> tuple[list[tuple[int, int]], bool]:
    """Return (epoch, first offset) of the batches of a segment from `start_offset` to `until`, and
    whether there are messages of formats 0 or 1; then only of the batches behind them.
    """
    entries: list[tuple[int, int]] = []
    has_old_formats = False
    batches = checked_batches(
        disk,
        segment.log_path,
        0,
        segment.size_bytes,
        expected_offset=segment.base_offset,
        max_offset=segment.max_offset,
        trusted_below=until,
    )
    for _, fields in batches:
        base_offset, epoch, magic, last_offset = (
            fields[0],
            fields[2],
            fields[3],
            fields[0] + fields[6],
        )
        if base_offset >= until:
            break
        if last_offset < start_offset:
            continue
        if magic < 2:
            entries.clear()
            has_old_formats = True
        elif epoch >= 0 and (not entries or epoch > entries[-1][0]):
            entries.append((epoch, max(base_offset, start_offset)))
    return entries, has_old_formats
