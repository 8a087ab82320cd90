"""The producers of one log, loaded when somebody asks, and their snapshots in its directory.

`ProducerState` is what is in memory; `producer_files` reads and writes the files. This module knows
which of both a log has: state for the log's end or none yet, the newest snapshot, and the ones that
the next flush has to sync. Whoever asks for producers of a log asks here: `require`, then `loaded`.

Source: Kafka ProducerStateManager.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from minibroker.broker.storage import producer_files
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.producer_state import ProducersAt, ProducerState, encode_snapshot
from minibroker.broker.storage.producers_load import ProducersLoad
from minibroker.broker.storage.segments import Segments
from minibroker.clock import Clock
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import BatchHeader

if TYPE_CHECKING:
    from minibroker.broker.storage.earlier_batches_load import EarlierBatchesLoad


class Extent(Protocol):
    """How far the log of the producers goes at this moment. On the loop."""

    @property
    def log_start_offset(self) -> int:
        """Return the first offset that a reader may ask for."""

    @property
    def high_watermark(self) -> int:
        """Return the offset below which a reader may see everything."""


class LogProducers:
    """The producers of one log, owned by the loop. Methods raise StorageError, but for
    `write_unsynced`.
    """

    __slots__ = (
        "_clock",
        "_disk",
        "_earlier_load",
        "_extent",
        "_failure",
        "_load",
        "_place",
        "_segments",
        "_unsynced",
        "known_to",
        "snapshot_offset",
        "state",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        place: PartitionDirectory,
        segments: Segments,
        extent: Extent,
        *,
        log_end_offset: int,
        snapshot_offset: int,
    ) -> None:
        """`place`, `segments` and `extent` are those of the log; `extent` is not asked here."""
        self._disk = disk  # constant after construction, as the next four
        self._clock = clock
        self._place = place
        self._segments = segments
        self._extent = extent
        self._load: ProducersLoad | None = None
        # The task that is under way.
        self._earlier_load: EarlierBatchesLoad | None = None
        # The same for batches before the snapshot.
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

    # --- from the disk into memory ----------------------------------------------------------------

    @property
    def is_on_disk(self) -> bool:
        """Return whether they are on the disk only. A log that had no record when it was opened has
        none there.
        """
        return self.state is None and self.known_to > 0

    def loaded(self) -> ProducerState:
        """Return the producers and transactions at the log's end. Where they are on the disk only,
        this waits for it; `require` does not.
        """
        if self.state is None:
            self._load_now()
            assert self.state is not None
        return self.state

    def require(self, header: BatchHeader | None = None) -> None:
        """Raise ColdError while they are on the disk only: its task loads them. Do the same while a
        batch with this `header` may repeat one that was not read yet. Raises StorageError where a
        load went wrong.
        """
        state = self.state
        if state is not None and (header is None or not state.may_repeat_earlier(header)):
            return
        try:
            self._check_failure()
            if self.is_on_disk:
                raise self._disk.cold(f"the producers of {self._place.name}", self.loading())
            if state is not None and header is not None:
                load = self._loading_earlier(state, header.producer_id)
                raise self._disk.cold(f"earlier batches of {self._place.name}", load)
        except (OSError, CorruptionError) as error:
            raise self._place.failed("load the producers of", error) from error

    def loaded_for(self, header: BatchHeader) -> ProducerState:
        """Return the producers with all batches that one with this `header` may repeat. Where some
        are on the disk only, this waits for it; `require` does not.
        """
        state = self.loaded()
        while state.may_repeat_earlier(header):
            try:
                self._check_failure()
                load = self._loading_earlier(state, header.producer_id)
                load()
                load.apply()
                self._check_failure()
            except (OSError, CorruptionError) as error:
                raise self._place.failed("load the producers of", error) from error
        return state

    def _loading_earlier(self, state: ProducerState, producer_id: int) -> "EarlierBatchesLoad":
        """Return the task that reads earlier batches: the one that is under way, or a new one.
        Raises OSError.
        """
        # Most starts need none of it.
        from minibroker.broker.storage.earlier_batches_load import EarlierBatchesLoad  # noqa: PLC0415

        assert state.earlier is not None
        if self._earlier_load is None:
            self._earlier_load = EarlierBatchesLoad(
                self._disk.files,
                self._place.path,
                self._segments,
                earlier=state.earlier,
                producer_id=producer_id,
                now_ms=self._clock.now_ms(),
                on_loaded=self._note_earlier,
            )
        return self._earlier_load

    def _note_earlier(self, load: "EarlierBatchesLoad") -> None:
        """Take earlier batches, but not where the log was truncated since."""
        if self._earlier_load is load:
            self._earlier_load = None
            self._failure = load.failure
            if load.failure is None:
                load.earlier.note_read(load.start, load.header_count, load.batches)

    def _load_now(self) -> None:
        """Load them on this thread."""
        try:
            self._check_failure()
            if not self.is_on_disk:
                self.state = ProducerState(self._place.name)
                return
            load = self.loading()
            load()
            load.apply()
            self._check_failure()
        except (OSError, CorruptionError) as error:
            raise self._place.failed("load the producers of", error) from error

    def loading(self) -> ProducersLoad:
        """Return the task that loads them: the one that is under way, or a new one. Raises
        OSError.
        """
        if self._load is None:
            self._load = ProducersLoad(
                self._disk.files,
                self._place.name,
                self._place.path,
                self._segments,
                log_start_offset=self._extent.log_start_offset,
                end_offset=self.known_to,
                now_ms=self._clock.now_ms(),
                expiration_ms=self._disk.producer_expiration_ms,
                on_loaded=self._note_loaded,
            )
        return self._load

    def _note_loaded(self, load: ProducersLoad) -> None:
        """Take the result of a task, but not where the log was truncated since."""
        if self._load is load:
            self._load = None
            self._failure = load.failure
            self.adopt(load.state)
            if load.state is not None and load.state.producers:
                self._disk.on_producers_loaded()

    def _check_failure(self) -> None:
        """Raise the error of the last load, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def adopt(self, state: ProducerState | None) -> None:
        """Take over what is known of the producers at the log's end; None: they are on the disk
        only. Transactions that ended below the high watermark are decided.
        """
        self.state = state
        if state is not None:
            state.on_high_watermark(self._extent.high_watermark)

    # --- what is forgotten ------------------------------------------------------------------------

    def remove_expired(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        """Forget producers silent for `expiration_ms`, in short steps.

        The last step yields the number of producers that stay in memory, the others 0.
        """
        state = self.state
        if state is not None:
            for _ in state.remove_expired(now_ms, expiration_ms):
                yield 0
            yield len(state.producers)

    def truncate_to(self, offset: int, log_start_offset: int) -> None:
        """Follow a log that is from `log_start_offset` to `offset` now: later snapshots go, all of
        them where it is empty. The state is loaded when somebody asks.

        Source: Kafka UnifiedLog.rebuildProducerState, ProducerStateManager.truncateAndReload.
        """
        kept_to = offset if offset > log_start_offset else -1
        files, directory = self._disk.files, self._place.path
        self.state = self._load = self._earlier_load = self._failure = None
        self.known_to = offset
        try:
            with self._disk.names_lock:
                offsets = producer_files.snapshot_offsets(files, directory)
                beyond = [found for found in offsets if found > kept_to]
                producer_files.remove_snapshots(files, directory, beyond)
        except OSError as error:
            raise self._place.failed("remove producer snapshots of", error) from error
        self.snapshot_offset = max(set(offsets) - set(beyond), default=0)
        self._unsynced = {
            found: producers for found, producers in self._unsynced.items() if found <= kept_to
        }

    # --- snapshots --------------------------------------------------------------------------------

    def at_end(self) -> ProducersAt:
        """Return a function for the producers at the log's end, which a flush writes. Where they
        are on the disk only, it loads them: no batch of a producer has come since.
        """
        if self.is_on_disk:
            try:
                return self.loading().producers
            except OSError as error:
                raise self._place.failed("load the producers of", error) from error
        producers = dict(self.loaded().producers)
        return lambda: producers

    def stage_snapshot(self, offset: int) -> None:
        """Have the next flush write a snapshot for `offset`, the log's end, if it is newer than the
        last.
        """
        if offset > self.snapshot_offset:
            self._unsynced[offset] = self.at_end()
            self.snapshot_offset = offset

    def write_unsynced(self) -> None:
        """Write what the next flush would write, and sync nothing. Raises OSError,
        CorruptionError.
        """
        for offset, producers in self._unsynced.items():
            path = producer_files.snapshot_path(self._place.path, offset)
            content = encode_snapshot(producers())  # may read files
            with self._disk.names_lock:
                producer_files.write_content(self._disk.files, path, content)

    @property
    def unsynced(self) -> dict[int, ProducersAt]:
        """Return what a flush has to write: offset → producers, which nobody changes."""
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

    def note_snapshot(self, offset: int) -> str | None:
        """Remember a snapshot that a worker wrote for `offset`. Return the path of the one before
        it, if it is not the snapshot of a segment.
        """
        old = self.snapshot_offset
        if offset <= old:
            return None  # a roll wrote a newer one meanwhile
        self.snapshot_offset = offset
        segment = self._segments.floor(old)
        is_needed = segment is not None and segment.base_offset == old
        if old == 0 or is_needed:
            return None
        return producer_files.snapshot_path(self._place.path, old)
