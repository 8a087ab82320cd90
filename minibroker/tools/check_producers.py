"""The producers of a partition under `check-log`: batches against transaction index and snapshots.

The walk reports every batch with a producer id. The transaction index must name exactly the aborted
transactions. A producer snapshot must not lack anything that the log has before its offset. If the
log begins behind a producer's first batches, or compaction removed some, the files may know more
than the log: then only certain facts are compared.

Source: Kafka ProducerStateManager, TransactionIndex, LogCleaner.
"""

from typing import Final, NamedTuple

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.producer_state import ProducerEntry, parse_snapshot
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import BatchHeader
from minibroker.tools.dump_indexes import TXN_ENTRY
from minibroker.tools.findings import Findings
from minibroker.tools.log_file import FileBatch
from minibroker.tools.log_records import control_of, records_of

_ABORT: Final = 0


class SeenProducer(NamedTuple):
    """The last data batch of a producer so far."""

    epoch: int
    last_sequence: int
    last_offset: int


class AbortMarker(NamedTuple):
    """A marker of an abort; `first_offset` is the transaction's first batch in the log, None
    without one.
    """

    producer_id: int
    first_offset: int | None


class ProducerHistory:
    """The producers of one partition; gets every batch in order."""

    __slots__ = ("_findings", "_log_start", "_open", "_producers", "aborts")

    def __init__(self, findings: Findings, log_start_offset: int) -> None:
        """Begin at `log_start_offset`: a broker may have forgotten everything below it."""
        self._findings = findings
        self._log_start = log_start_offset
        self._producers: dict[int, SeenProducer] = {}
        self._open: dict[int, int] = {}
        self.aborts: dict[int, AbortMarker] = {}
        """Offset of an abort marker in the current segment → the transaction that it ended."""

    def begin_segment(self) -> None:
        """Forget the markers of the last segment."""
        self.aborts = {}

    def note(self, batch: FileBatch, path: str) -> None:
        """Take one batch of format 2 with a producer id. Raises CorruptionError, OSError."""
        header = batch.header
        if header.is_control:
            self._note_marker(batch, path)
            return
        if header.last_offset < self._log_start:
            return
        producer_id = header.producer_id
        entry = self._producers.get(producer_id)
        if entry is not None and header.producer_epoch < entry.epoch:
            self._findings.broken(
                "producer-epoch",
                path,
                batch.position,
                f"producer {producer_id} has epoch {header.producer_epoch} at offset "
                f"{header.base_offset}, after epoch {entry.epoch}",
            )
        self._producers[producer_id] = SeenProducer(
            header.producer_epoch, header.last_sequence, header.last_offset
        )
        if header.is_transactional:
            self._open.setdefault(producer_id, header.base_offset)

    def _note_marker(self, batch: FileBatch, path: str) -> None:
        header = batch.header
        record = next(records_of(batch), None)
        if record is None:
            return  # compaction took the marker's record
        control = control_of(record)
        if control.coordinator_epoch is None:
            return
        first = self._open.pop(header.producer_id, None)
        if control.type_id == _ABORT:
            self.aborts[header.last_offset] = AbortMarker(header.producer_id, first)
        entry = self._producers.get(header.producer_id)
        if entry is not None and header.producer_epoch > entry.epoch:
            # A marker of a newer epoch: sequences begin anew.
            del self._producers[header.producer_id]

    def check_txn_index(self, path: str, torn_at: int | None = None) -> None:
        """Compare the `.txnindex` of the segment that was just walked.

        `torn_at`: the walk stopped at that offset; later transactions are unknown. Raises OSError.
        """
        try:
            content = REAL_FILES.read_all(path)
        except FileNotFoundError:
            content = b""
        odd = len(content) % TXN_ENTRY.size
        whole = len(content) - odd
        if odd:
            self._findings.broken(
                "txnindex-size", path, whole, f"{odd} bytes behind the last whole entry"
            )
        missing = {
            offset for offset, abort in self.aborts.items() if abort.first_offset is not None
        }
        previous = -1
        for number, fields in enumerate(TXN_ENTRY.iter_unpack(content[:whole])):
            position = number * TXN_ENTRY.size
            last_offset = fields[3]
            if torn_at is not None and last_offset >= torn_at:
                break
            self._check_aborted(path, position, fields, previous)
            missing.discard(last_offset)
            previous = last_offset
        for offset in sorted(missing):
            self._findings.broken(
                "txnindex-missing",
                path,
                None,
                f"the transaction of producer {self.aborts[offset].producer_id} that was aborted "
                f"at offset {offset} has no entry: readers of committed records would see it",
            )

    def _check_aborted(
        self, path: str, position: int, fields: tuple[int, ...], previous: int
    ) -> None:
        version, producer_id, first_offset, last_offset, _ = fields
        broken = self._findings.broken
        if version != 0:
            broken("txnindex-version", path, position, f"version {version}, expected 0")
        if last_offset <= previous:
            broken(
                "txnindex-order", path, position, f"offset {last_offset} follows offset {previous}"
            )
        abort = self.aborts.get(last_offset)
        if abort is None or abort.producer_id != producer_id:
            broken(
                "txnindex-marker",
                path,
                position,
                f"no abort of producer {producer_id} at offset {last_offset} in the segment",
            )
        elif abort.first_offset is not None and first_offset > abort.first_offset:
            broken(
                "txnindex-start",
                path,
                position,
                f"the transaction is said to begin at offset {first_offset}, its first batch is at "
                f"{abort.first_offset}",
            )
        if first_offset > last_offset:
            broken(
                "txnindex-start",
                path,
                position,
                f"first offset {first_offset}, last offset {last_offset}",
            )

    def check_snapshot(self, path: str, offset: int) -> None:
        """Compare a `.snapshot` with the batches below `offset`, which `note` has all had.

        Raises OSError.
        """
        try:
            producers = parse_snapshot(REAL_FILES.read_all(path))
        except CorruptionError as error:
            self._findings.broken("snapshot", path, None, str(error))
            return
        for producer_id, entry in producers.items():
            self._compare(path, offset, producer_id, entry)

    def _compare(self, path: str, offset: int, producer_id: int, entry: ProducerEntry) -> None:
        last_offset = entry.batches[-1].last_offset if entry.batches else -1
        if last_offset >= offset:
            self._differs(path, producer_id, f"last offset {last_offset}, beyond the file's name")
        open_start = self._open.get(producer_id)
        if open_start is not None and not 0 <= entry.transaction_start <= open_start:
            self._differs(
                path,
                producer_id,
                f"transaction start {entry.transaction_start}, the log has one open since "
                f"{open_start}",
            )
        state = self._producers.get(producer_id)
        if state is None or entry.epoch > state.epoch:
            return
        if entry.epoch < state.epoch or last_offset < state.last_offset:
            self._differs(
                path,
                producer_id,
                f"epoch {entry.epoch} and last offset {last_offset}, the log has epoch "
                f"{state.epoch} and offset {state.last_offset}",
            )
        elif last_offset == state.last_offset and entry.last_sequence != state.last_sequence:
            self._differs(
                path,
                producer_id,
                f"last sequence {entry.last_sequence}, the log has {state.last_sequence} at offset "
                f"{last_offset}",
            )

    def _differs(self, path: str, producer_id: int, detail: str) -> None:
        self._findings.broken("snapshot-state", path, None, f"producer {producer_id}: {detail}")


def has_producer(header: BatchHeader) -> bool:
    """Return whether `ProducerHistory.note` takes the batch."""
    return header.magic == 2 and header.producer_id >= 0
