"""Open transactions along a walk over the log: records to drop, and markers that still matter.

Both passes of a round tell it every batch in order. Records of aborted transactions go at once,
whatever their keys. A marker may go (after its delete horizon) once no batch of its transaction is
left before it; until then it stays, and for an abort the entry of the transaction index with it.

The walk stays below the last stable offset, so every transaction it meets is decided, and the
transaction index tells the aborted ones ahead of time.

Source: Kafka CleanedTransactionMetadata; KIP-98.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from minibroker.broker.storage.txn_index import AbortedTransaction
from minibroker.kafka.records.batch import BatchHeader
from minibroker.kafka.records.control import TransactionMarker


class CleanedTransactions:
    """One walk; made anew for the next."""

    __slots__ = ("_aborted", "_committed", "_expected", "kept_aborts")

    def __init__(self) -> None:
        self._committed: set[int] = set()
        # Producer id → its aborted transaction, and whether a batch of it was met.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._expected: list[tuple[int, AbortedTransaction]] = []
        self.kept_aborts: list[AbortedTransaction] = []
        """Entries for the transaction index of the segment that is being written; whoever begins
        one empties it."""

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take the transactions that the walk is about to come to. One that spans segments may be
        named again.
        """
        for transaction in aborted:
            heappush(self._expected, (transaction.first_offset, transaction))

    def note_batch(self, header: BatchHeader) -> bool:
        """Note a batch of records; True: it belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        found = self._aborted.get(header.producer_id)
        if found is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = found[0], True
        return True

    def note_control(self, header: BatchHeader, marker: TransactionMarker | None) -> bool:
        """Note a control batch; True: nothing of its transaction is left, it may go.

        `marker` is None for an empty control batch, whose marker went before, and for control
        records of another kind, which stay.
        """
        self._begin_up_to(header.last_offset)
        if marker is None:
            return header.count == 0
        if marker.is_commit:
            if header.producer_id not in self._committed:
                return True
            self._committed.remove(header.producer_id)
            return False
        found = self._aborted.pop(header.producer_id, None)
        if found is None or not found[1]:
            return True
        self.kept_aborts.append(found[0])
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._expected and self._expected[0][0] <= offset:
            _, transaction = heappop(self._expected)
            self._aborted.setdefault(transaction.producer_id, (transaction, False))
