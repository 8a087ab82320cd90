"""The state of one partition's idempotent and transactional producers.

Stands between `validator` and the write: `append` decides whether a batch with a producer id is
new, a repetition, or out of order. Batches without a producer id never come here.

Theory of operation. Per producer id there is one immutable `ProducerEntry`: the epoch, the last
five batches, the open transaction. An append replaces the entry at once, so that the next batch of
the same socket read is judged against it although nothing is on disk yet. The first change of an
entry since the last `commit` keeps the entry it replaced; `rollback` puts those back when the write
of the staged batches failed, `commit` drops them when it succeeded. (Rejected: applying on commit
and looking at both states meanwhile: every check would ask two maps, to save one dictionary entry
per producer and write.)

A repetition of a batch that is itself still staged is answered like any other; its answer must not
leave before that write succeeded, as with the batch itself.

In a crash this memory is lost. It comes back from the newest `.snapshot` (only the last batch of
each producer is in it, as in Kafka) and from the batches behind it, through `append` with origin
"replication". The batches before that are read when one of them may be repeated
(`producer_state`).

Batches before the snapshot. A snapshot has the last batch of each producer, as Kafka's has. An
idempotent producer may have five in flight. If a kill takes their answers, it sends all five again,
and each must be known. The four others are in the log, so nothing more is written for them. They
are read when a batch comes that may repeat one of them: most starts read none. `EarlierBatches` is
what the loop knows of them, `producers.EarlierBatchesLoad` reads them beside the loop. All loads
after one start read `BATCHES_MAX` headers together, some seconds of one worker at most. Kafka
forgets those batches with the process, and answers OUT_OF_ORDER_SEQUENCE_NUMBER to their
repetition.

Source: Kafka ProducerStateManager, ProducerAppendInfo, ProducerStateEntry, UnifiedLog; KIP-98,
KIP-360. Differs from Kafka: snapshot entries are ordered by producer id (Kafka: by hash; readers do
not care).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import Final, Literal, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.ids import NO_PRODUCER_EPOCH, NO_SEQUENCE
from minibroker.kafka.records.batch import SEQUENCE_MAX, BatchHeader, subtract_from_sequence
from minibroker.kafka.records.control import TransactionMarker
from minibroker.kafka.records.crc import crc32c
from minibroker.kafka.records.turns import in_turns

BATCHES_KEPT: Final = 5
"""As many requests as an idempotent producer may have in flight."""
BATCHES_MAX: int = 1_000_000
"""Headers that are read for one log after one start. The repetition of a batch that stands further
back is refused, as Kafka refuses it."""


class RecentBatch(NamedTuple):
    """One appended batch; `timestamp` is its largest, in ms. First and last are inclusive."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return subtract_from_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @classmethod
    def of(cls, header: BatchHeader) -> RecentBatch:
        """Return the batch that has this header."""
        delta = header.last_offset_delta
        return cls(header.last_sequence, header.base_offset + delta, delta, header.max_timestamp)


class EpochBatches(NamedTuple):
    """The last batches of one producer in its last epoch, at most five, in log order."""

    epoch: int
    batches: tuple[RecentBatch, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether no batch before these counts. An epoch begins with sequence 0."""
        return len(self.batches) >= BATCHES_KEPT or self.batches[0].first_sequence == 0

    def behind(self, earlier: EpochBatches) -> EpochBatches:
        """Return these batches with those of `earlier`, which stand before them."""
        if earlier.epoch != self.epoch or len(self.batches) >= BATCHES_KEPT:
            return self
        return EpochBatches(self.epoch, (*earlier.batches, *self.batches)[-BATCHES_KEPT:])


BatchesOf = Mapping[int, EpochBatches]
"""Producer id → its batches. Nobody changes it."""


class EarlierBatches:
    """The part of one log that is before the snapshot. Belongs to the loop."""

    __slots__ = ("batches", "room", "snapshot_offset", "start")

    def __init__(self, snapshot_offset: int) -> None:
        """Know nothing yet of what stands before the snapshot at `snapshot_offset`."""
        self.snapshot_offset = snapshot_offset  # constant after construction
        self.start = snapshot_offset
        """The offset below which nothing was read yet."""
        self.room = BATCHES_MAX
        """So many more headers may be read."""
        self.batches: BatchesOf = {}
        """The batches from `start` to the snapshot."""

    def of(
        self, producer_id: int, epoch: int, recent_batches: tuple[RecentBatch, ...]
    ) -> tuple[RecentBatch, ...]:
        """Return the known batches of a producer, as many as count: `recent_batches`, which are
        in memory, and before them those that were read.
        """
        earlier_batches = self.batches.get(producer_id)
        if not recent_batches or earlier_batches is None or earlier_batches.epoch != epoch:
            return recent_batches
        first_offset = recent_batches[0].first_offset
        earlier = (batch for batch in earlier_batches.batches if batch.last_offset < first_offset)
        return (*earlier, *recent_batches)[-BATCHES_KEPT:]

    def may_hold_more(
        self, producer_id: int, epoch: int, recent_batches: tuple[RecentBatch, ...]
    ) -> bool:
        """Return whether batches of a producer before `recent_batches`, those in memory, may
        count, and were not read.
        """
        if (
            len(recent_batches) >= BATCHES_KEPT
            or recent_batches[0].last_offset >= self.snapshot_offset  # the snapshot did not have it
            or recent_batches[0].first_sequence == 0
            or self.room <= 0
            or self.start <= 0
        ):
            return False
        earlier_batches = self.batches.get(producer_id)
        return earlier_batches is None or (
            earlier_batches.epoch == epoch and not earlier_batches.is_complete
        )

    def note_read(self, start: int, header_count: int, batches: BatchesOf) -> None:
        """Take the result of a load: `batches` are those from `start` to the snapshot now."""
        self.start = start
        self.room -= header_count
        self.batches = batches


Origin = Literal["client", "coordinator", "replication"]

NO_OFFSET: Final = -1

_CHECKED_AT_ONCE: Final = 500
"""Producers in one step of a walk over all; a step takes some 0.1 ms."""
_EARLIER_MAX: Final = 1 << 30
"""A sequence so far before another is behind it, on the circle of sequences."""
_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = Struct(">hIi")
"""version, CRC-32C of everything behind the CRC, number of entries."""
_SNAPSHOT_CRC_END: Final = 6
_SNAPSHOT_ENTRY: Final = Struct(">qhiqiqiq")
"""producer id, epoch, last sequence, last offset, offset delta, timestamp (ms), coordinator epoch,
first offset of the open transaction (-1: none)."""


class ProducerEntry(NamedTuple):
    """One producer; never changed, only replaced. `transaction_start` is -1 outside a
    transaction."""

    epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_start: int
    batches: tuple[RecentBatch, ...]

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


Producers = Mapping[int, ProducerEntry]
"""Producer id → what is known of it."""

ProducersAt = Callable[[], Producers]
"""Returns the producers as they were at some offset. Nobody changes them. Raises OSError and
CorruptionError where they have to be read first."""


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended: an entry of the transaction index, if it was aborted.

    `last_offset` is the marker's. `last_stable_offset`: where readers of committed records may read
    to once the marker is replicated.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


class TransactionChange(NamedTuple):
    """A transaction began, or its marker came; `start` is the offset of its first batch."""

    start: int
    producer_id: int
    is_end: bool


_UNKNOWN: Final = ProducerEntry(NO_PRODUCER_EPOCH, -1, -1, NO_OFFSET, ())


class ProducerState:
    """Producers and transactions of one partition. `partition` only names it in messages."""

    __slots__ = (
        "_changes",
        "_ended",
        "_open",
        "_producers",
        "_replaced",
        "earlier",
        "partition",
        "unsure",
    )

    def __init__(self, partition: object) -> None:
        self.partition = partition
        self.earlier: EarlierBatches | None = None
        """The batches before the snapshot that this began with; None: it began with none."""
        self.unsure: set[int] = set()
        """Ids of producers that had one batch in that snapshot, and have not five here yet."""
        self._producers: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}
        """First offset → producer id, ascending: transactions begin at the end of the log."""
        self._ended: dict[int, int] = {}
        """First offset → offset of the marker, until the marker is below the high watermark;
        ascending by markers."""
        self._replaced: dict[int, ProducerEntry] = {}
        self._changes: list[TransactionChange] = []
        """Transactions that began or ended since the last `commit`, for `rollback`."""

    @property
    def producers(self) -> dict[int, ProducerEntry]:
        """Producer id → entry; not to be changed."""
        return self._producers

    @property
    def has_transactions(self) -> bool:
        """Return whether a marker has ended a transaction of a producer that is known."""
        return any(entry.coordinator_epoch >= 0 for entry in self._producers.values())

    @property
    def first_unstable_offset(self) -> int | None:
        """Start of the earliest transaction that is open, or whose marker is not replicated yet."""
        if not self._open and not self._ended:
            return None
        first_open = next(iter(self._open)) if self._open else None
        first_ended = min(self._ended) if self._ended else None
        if first_open is None or first_ended is None:
            return first_ended if first_open is None else first_open
        return min(first_open, first_ended)

    def append(self, header: BatchHeader, origin: Origin = "client") -> RecentBatch | None:
        """Check and note the batch of `header`, whose offsets are final and which has a producer
        id.

        Returns None when it is new, else the batch it repeats: then nothing is to be appended, and
        the answer carries that one's first offset and, as its append time, that one's timestamp.
        Raises KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER (also for a
        repetition older than the last five, as Kafka does since 1.1), INVALID_TXN_STATE.
        """
        producer_id = header.producer_id
        entry = self._producers.get(producer_id, _UNKNOWN)
        recent_batches = entry.batches
        # What nearly every batch is: the next one of a known producer.
        if not (
            recent_batches
            and header.base_sequence == recent_batches[-1].last_sequence + 1
            and header.producer_epoch == entry.epoch
        ):
            duplicate = self._check(header, entry, origin)
            if duplicate is not None:
                return duplicate
            if header.producer_epoch != entry.epoch:
                recent_batches = ()
        start = entry.transaction_start
        if header.is_transactional:
            if start == NO_OFFSET:
                start = self._open_transaction(producer_id, header.base_offset)
        elif start != NO_OFFSET:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has a transaction open in {self.partition} since offset "
                f"{start}, and sent a batch outside it",
            )
        delta = header.last_offset_delta
        timestamp = header.max_timestamp
        new = RecentBatch(header.last_sequence, header.base_offset + delta, delta, timestamp)
        if producer_id not in self._replaced:
            self._replaced[producer_id] = entry
        self._producers[producer_id] = ProducerEntry(
            header.producer_epoch,
            entry.coordinator_epoch,
            timestamp,
            start,
            (*recent_batches[1 - BATCHES_KEPT :], new),
        )
        return None

    def append_marker(
        self, header: BatchHeader, marker: TransactionMarker, origin: Origin = "coordinator"
    ) -> CompletedTransaction | None:
        """Note the control batch of `header`, which holds `marker`; None when no transaction was
        open.

        Raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        producer_id = header.producer_id
        entry = self._producers.get(producer_id, _UNKNOWN)
        epoch = header.producer_epoch
        if origin != "replication":
            if epoch < entry.epoch:
                raise self._stale_epoch(header, entry)
            if marker.coordinator_epoch < entry.coordinator_epoch:
                raise KafkaError(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"marker for producer {producer_id} in {self.partition} comes from coordinator "
                    f"epoch {marker.coordinator_epoch}, the last seen is {entry.coordinator_epoch}",
                )
        batches = entry.batches if entry.epoch == epoch else ()
        self._replaced.setdefault(producer_id, entry)
        self._producers[producer_id] = ProducerEntry(
            epoch, marker.coordinator_epoch, header.max_timestamp, NO_OFFSET, batches
        )
        start = entry.transaction_start
        if start == NO_OFFSET:
            return None
        self._open.pop(start, None)
        self._ended[start] = header.base_offset
        self._changes.append(TransactionChange(start, producer_id, is_end=True))
        stable = next(iter(self._open), header.base_offset + 1)
        return CompletedTransaction(
            producer_id, start, header.base_offset, not marker.is_commit, stable
        )

    def commit(self) -> None:
        """Keep everything that was appended so far: it is written, and is not rolled back any
        more.
        """
        if self._replaced:
            self._replaced = {}
        if self._changes:
            self._changes = []

    def rollback(self) -> None:
        """Forget what was appended since the last `commit`: its bytes did not reach the log."""
        for producer_id, entry in self._replaced.items():
            if entry is _UNKNOWN:
                self._producers.pop(producer_id, None)
            else:
                self._producers[producer_id] = entry
        self._replaced = {}
        changes, self._changes = self._changes, []
        for start, producer_id, is_end in reversed(changes):
            if is_end:
                del self._ended[start]
                self._open[start] = producer_id
            else:
                del self._open[start]
        if changes:  # what came back stands behind later transactions
            self._open = dict(sorted(self._open.items()))

    def on_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker is below `high_watermark` are stable from now on."""
        ended = self._ended
        while ended:
            start, marker = next(iter(ended.items()))
            if marker >= high_watermark:
                return
            del ended[start]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> Iterator[None]:
        """Forget producers silent for `expiration_ms` and without an open transaction.

        Yields between short steps. The state may change between two of them.
        """
        producer_ids = list(self._producers)
        for start in range(0, len(producer_ids), _CHECKED_AT_ONCE):
            for producer_id in producer_ids[start : start + _CHECKED_AT_ONCE]:
                entry = self._producers.get(producer_id)
                if entry is not None and _is_expired(entry, now_ms, expiration_ms):
                    del self._producers[producer_id]
            yield

    def clear(self) -> None:
        """Forget everything: the log was truncated, state is loaded anew."""
        self._producers = {}
        self._open = {}
        self._ended = {}
        self.earlier = None
        self.unsure = set()
        self.commit()

    def to_snapshot(self) -> bytes:
        """Return the content of a `.snapshot` file."""
        return encode_snapshot(self._producers)

    def load_snapshot(self, data: bytes, offset: int, now_ms: int, expiration_ms: int) -> None:
        """Replace everything by what the `.snapshot` file of `offset` holds, without the producers
        that have expired.

        Raises CorruptionError for another version, a wrong CRC or a wrong size; then nothing
        changed.
        """
        producers = parse_snapshot(data)
        self.clear()
        self._producers = {
            producer_id: entry
            for producer_id, entry in producers.items()
            if not _is_expired(entry, now_ms, expiration_ms)
        }
        starts = [(entry.transaction_start, key) for key, entry in self._producers.items()]
        self._open = {start: key for start, key in sorted(starts) if start != NO_OFFSET}
        self.earlier = EarlierBatches(offset)
        self.unsure = set(self._producers)

    def may_repeat_earlier(self, header: BatchHeader) -> bool:
        """Return whether a batch may repeat one that is in the log, but was not read yet."""
        producer_id, earlier = header.producer_id, self.earlier
        entry = self._producers.get(producer_id)
        if (
            earlier is None
            or entry is None
            or not entry.batches
            or not earlier.may_hold_more(producer_id, entry.epoch, entry.batches)
        ):
            self.unsure.discard(producer_id)
            return False
        first_sequence = header.base_sequence
        if first_sequence < 0 or entry.epoch != header.producer_epoch:
            return False
        recent_batches = earlier.of(producer_id, entry.epoch, entry.batches)
        distance = subtract_from_sequence(recent_batches[0].first_sequence, first_sequence)
        return 0 < distance < _EARLIER_MAX

    def _known_batches(self, producer_id: int, entry: ProducerEntry) -> tuple[RecentBatch, ...]:
        """Return the last batches of a producer, as far as they were read."""
        if self.earlier is None or len(entry.batches) >= BATCHES_KEPT:
            return entry.batches
        return self.earlier.of(producer_id, entry.epoch, entry.batches)

    def _check(
        self, header: BatchHeader, entry: ProducerEntry, origin: Origin
    ) -> RecentBatch | None:
        """Return the batch of `entry` that `header` repeats, or None when it may be appended.

        Raises KafkaError when it may not. A producer that is not known here may begin with any
        sequence: its records may all have been deleted, and it cannot know. A known one begins a
        new epoch with 0.
        """
        epoch = header.producer_epoch
        if origin == "client" and epoch == entry.epoch:
            for batch in self._known_batches(header.producer_id, entry):
                if (
                    batch.last_sequence == header.last_sequence
                    and batch.first_sequence == header.base_sequence
                ):
                    return batch
        if origin == "replication":
            return None
        if epoch < entry.epoch:
            raise self._stale_epoch(header, entry)
        first, last = header.base_sequence, entry.last_sequence
        if entry.epoch == NO_PRODUCER_EPOCH or origin != "client":
            return None
        if epoch != entry.epoch:
            if first == 0:
                return None
            reason = f"first sequence of epoch {epoch} is {first}, expected 0"
        else:
            if first == last + 1 or (first == 0 and last == SEQUENCE_MAX):
                return None
            reason = f"first sequence of the batch is {first}, the last one appended is {last}"
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} in {self.partition}, "
            f"offset {header.base_offset}: {reason}",
        )

    def _open_transaction(self, producer_id: int, first_offset: int) -> int:
        self._open[first_offset] = producer_id
        self._changes.append(TransactionChange(first_offset, producer_id, is_end=False))
        return first_offset

    def _stale_epoch(self, header: BatchHeader, entry: ProducerEntry) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} in {self.partition} sent "
            f"epoch {header.producer_epoch}, the last seen is {entry.epoch}",
        )


def _is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.transaction_start == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms


def encode_snapshot(producers: Mapping[int, ProducerEntry]) -> bytes:
    """Return the content of a `.snapshot` file, format version 1, as Kafka 3.9 writes it."""
    body = bytearray(_SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, 0, len(producers)))
    for producer_id in in_turns(sorted(producers)):
        entry = producers[producer_id]
        batch = entry.batches[-1] if entry.batches else RecentBatch(NO_SEQUENCE, -1, 0, -1)
        body += _SNAPSHOT_ENTRY.pack(
            producer_id,
            entry.epoch,
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_start,
        )
    crc = crc32c(bytes(body[_SNAPSHOT_CRC_END:]))
    _SNAPSHOT_HEAD.pack_into(body, 0, _SNAPSHOT_VERSION, crc, len(producers))
    return bytes(body)


def parse_snapshot(data: bytes) -> dict[int, ProducerEntry]:
    """Producer id → entry, from the content of a `.snapshot` file.

    Raises CorruptionError for another version, a wrong CRC or a wrong size.
    """
    if len(data) < _SNAPSHOT_HEAD.size:
        raise CorruptionError(f"producer snapshot has {len(data)} bytes, too few for its header")
    version, stored_crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptionError(
            f"producer snapshot has version {version}, expected {_SNAPSHOT_VERSION}"
        )
    crc = crc32c(data[_SNAPSHOT_CRC_END:])
    if crc != stored_crc:
        raise CorruptionError(f"producer snapshot has CRC {stored_crc}, its bytes have {crc}")
    if len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
        raise CorruptionError(f"producer snapshot announces {count} entries in {len(data)} bytes")
    producers: dict[int, ProducerEntry] = {}
    for fields in in_turns(_SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :])):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = fields
        batches = (RecentBatch(sequence, offset, delta, timestamp),) if offset >= 0 else ()
        producers[producer_id] = ProducerEntry(
            epoch, coordinator_epoch, timestamp, max(start, NO_OFFSET), batches
        )
    return producers
