"""The producers of one log, loaded when somebody asks, and their snapshots in its directory.

`ProducerState` is what is in memory; `producer_files` reads and writes the files. This module knows
which of both a log has: state for the log's end or none yet, the newest snapshot, and the ones that
the next flush has to sync.

Source: Kafka ProducerStateManager.
"""

from collections.abc import Callable, Mapping

from minibroker.errors import CorruptionError
from minibroker.ids import TopicPartition
from minibroker.storage import producer_files
from minibroker.storage.disk import Disk
from minibroker.storage.producer_state import ProducersAt, ProducerState, encode_snapshot
from minibroker.storage.producers_load import ProducersLoad
from minibroker.storage.segments import Segments


class LogProducers:
    """The producers of one log, owned by the loop. Methods raise OSError, CorruptionError."""

    __slots__ = (
        "_disk",
        "_failure",
        "_load",
        "_name",
        "_unsynced",
        "known_to",
        "snapshot_offset",
        "state",
    )

    def __init__(
        self,
        disk: Disk,
        name: TopicPartition,
        *,
        log_end_offset: int,
        snapshot_offset: int,
    ) -> None:
        self._disk = disk  # constant after construction, as `_name`
        self._name = name
        self._load: ProducersLoad | None = None
        # The task that is under way.
        self._failure: OSError | CorruptionError | None = None
        # The error of the last one, until somebody asks again.
        self.state: ProducerState | None = None
        """The producers in memory; None: they are on the disk only."""
        self.known_to = log_end_offset
        """The log's end when it was opened or cut. A batch that came since without a producer id
        changes nothing, and an append with one loads the state first."""
        self.snapshot_offset = snapshot_offset
        """Offset of the newest snapshot, 0: there is none."""
        self._unsynced: dict[int, ProducersAt] = {}
        """Snapshots that a flush has to write and to sync: offset → the producers there."""

    @property
    def is_on_disk(self) -> bool:
        """Return whether they are on the disk only. A log that had no record when it was opened has
        none there.
        """
        return self.state is None and self.known_to > 0

    def loading(
        self,
        directory: str,
        segments: Segments,
        *,
        log_start_offset: int,
        now_ms: int,
        on_loaded: Callable[[ProducersLoad], None],
    ) -> ProducersLoad:
        """Return the task that loads them: the one that is under way, or a new one. Its `apply`
        calls `on_loaded`, which has `note_loaded` take the result.
        """
        if self._load is None:
            self._load = ProducersLoad(
                self._disk.files,
                self._name,
                directory,
                segments,
                log_start_offset=log_start_offset,
                end_offset=self.known_to,
                now_ms=now_ms,
                expiration_ms=self._disk.producer_expiration_ms,
                on_loaded=on_loaded,
            )
        return self._load

    def note_loaded(self, load: ProducersLoad) -> bool:
        """Take the result of a task. Return whether there was one to take: not where the log was
        truncated since. An error is raised by the next `check_loaded`.
        """
        if self._load is not load:
            return False
        self._load = None
        self.state = load.state
        self._failure = load.failure
        return self.state is not None

    def check_loaded(self) -> None:
        """Raise the error of the last load, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def truncate_to(self, directory: str, offset: int, log_start_offset: int) -> None:
        """Follow a log that is from `log_start_offset` to `offset` now: later snapshots go, all of
        them where it is empty. The state is loaded when somebody asks.

        Source: Kafka UnifiedLog.rebuildProducerState, ProducerStateManager.truncateAndReload.
        """
        kept_to = offset if offset > log_start_offset else -1
        files = self._disk.files
        self.state = self._load = self._failure = None
        self.known_to = offset
        with self._disk.names_lock:
            offsets = producer_files.snapshot_offsets(files, directory)
            beyond = [found for found in offsets if found > kept_to]
            producer_files.remove_snapshots(files, directory, beyond)
        self.snapshot_offset = max(set(offsets) - set(beyond), default=0)
        self._unsynced = {
            found: producers for found, producers in self._unsynced.items() if found <= kept_to
        }

    # --- snapshots --------------------------------------------------------------------------------

    def stage_snapshot(self, offset: int, producers: ProducersAt) -> None:
        """Have the next flush write a snapshot for `offset`, the log's end."""
        self._unsynced[offset] = producers
        self.snapshot_offset = offset

    def write_unsynced(self, directory: str) -> None:
        """Write what the next flush would write, and sync nothing."""
        for offset, producers in self._unsynced.items():
            path = producer_files.snapshot_path(directory, offset)
            with self._disk.names_lock:
                content = encode_snapshot(producers())
                producer_files.write_content(self._disk.files, path, content)

    @property
    def unsynced(self) -> dict[int, ProducersAt]:
        """Snapshots that a flush has to write: offset → producers, which nobody changes."""
        return dict(self._unsynced)

    def note_synced(self, snapshots: Mapping[int, ProducersAt]) -> None:
        """Note that these snapshots are on the disk. One for the same offset that was staged since
        is not.
        """
        for offset, producers in snapshots.items():
            if self._unsynced.get(offset) is producers:
                del self._unsynced[offset]

    def forget_snapshot(self, offset: int) -> None:
        """Forget the snapshot of a segment that goes: nobody needs it."""
        self._unsynced.pop(offset, None)

    def note_snapshot(self, directory: str, segments: Segments, offset: int) -> str | None:
        """Remember a snapshot that a worker wrote for `offset`. Return the path of the one before
        it, if it is not the snapshot of a segment.
        """
        old = self.snapshot_offset
        if offset <= old:
            return None  # a roll wrote a newer one meanwhile
        self.snapshot_offset = offset
        segment = segments.floor(old)
        is_needed = segment is not None and segment.base_offset == old
        return None if old == 0 or is_needed else producer_files.snapshot_path(directory, old)
