"""What this broker knows of its transactional ids: the journal and its image in memory.

`write` is the one way to change anything: a record in `__transaction_state` first, then the value
in memory, through the function that replays records when a partition of the journal is loaded.
`coordinator` decides, this module remembers.

Source: Kafka TransactionStateManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from minibroker.cluster.features import TRANSACTION_VERSION
from minibroker.cluster.internal_topics import TRANSACTIONS_TOPIC
from minibroker.error_codes import ErrorCode
from minibroker.errors import CorruptionError, KafkaError
from minibroker.partitions.journal import Journal
from minibroker.transactions.records import decode, encode_key, encode_value
from minibroker.transactions.state import ONGOING, TransactionMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from minibroker.clock import Clock
    from minibroker.cluster.cluster import Cluster
    from minibroker.config.broker import BrokerConfig
    from minibroker.partitions.manager import PartitionManager
    from minibroker.records.batch import BatchHeader
    from minibroker.records.record import Record

logger = logging.getLogger(__name__)

_TOMBSTONES_PER_BATCH: Final = 500
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class TransactionStore:
    """Transactional id → `TransactionMetadata`; belongs to the loop's thread."""

    __slots__ = ("_cluster", "_on_change", "_on_unloaded", "_ongoing", "_shards", "journal")

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        clock: Clock,
        config: BrokerConfig,
        run_later: Callable[[Callable[[], None]], None],
        on_change: Callable[[int, TransactionMetadata], None],
        on_unloaded: Callable[[str], None],
    ) -> None:
        """`on_change` is told of every state written, and of every state found when a partition was
        loaded, with its partition; `on_unloaded` of every id that this broker has no more.
        """
        self._cluster = cluster
        self._on_change = on_change
        self._on_unloaded = on_unloaded
        self._shards: dict[int, dict[str, TransactionMetadata]] = {}
        # Ids with an open transaction → their partition of the journal.
        self._ongoing: dict[str, int] = {}
        self.journal = Journal(
            TRANSACTIONS_TOPIC,
            cluster=cluster,
            partitions=partitions,
            clock=clock,
            config=config,
            run_later=run_later,
            listener=self,
            decode=_decode_batch,
        )

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version` that is in force."""
        return self._cluster.features.level(TRANSACTION_VERSION)

    def find(self, transactional_id: str) -> tuple[int, TransactionMetadata | None]:
        """(partition of the journal, what is known of the id).

        Raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        index = self.journal.partition_of(transactional_id)
        self.journal.check_active(index)
        return index, self._shards[index].get(transactional_id)

    def get(self, transactional_id: str) -> tuple[int, TransactionMetadata]:
        """As `find`. Raises KafkaError also: INVALID_REQUEST for an empty id,
        INVALID_PRODUCER_ID_MAPPING for one that is not known.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        index, found = self.find(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return index, found

    def is_current(self, index: int, metadata: TransactionMetadata) -> bool:
        """Whether this very state is still the one that counts, and ours to change."""
        return self._shards.get(index, {}).get(metadata.transactional_id) is metadata

    def all(self) -> Iterator[TransactionMetadata]:
        """Every id of this broker's. Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS)."""
        if self.journal.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        for index in self.journal.active_indexes():
            yield from self._shards[index].values()

    @property
    def has_ongoing(self) -> bool:
        """Whether any transaction is open."""
        return bool(self._ongoing)

    def overdue(self, now_ms: int) -> list[TransactionMetadata]:
        """Transactions that are open for longer than their owner said they would be."""
        active = set(self.journal.active_indexes())
        found = [
            self._shards[index][name] for name, index in self._ongoing.items() if index in active
        ]
        return [one for one in found if one.is_overdue(now_ms)]

    def write(self, index: int, metadata: TransactionMetadata) -> None:
        """Journal first, then memory. Raises KafkaError as `Journal.stage`, and
        UNKNOWN_SERVER_ERROR for a state larger than a record may be; nothing changed then.
        """
        value = encode_value(metadata, self.transaction_version)
        try:
            self.journal.append(index, [(encode_key(metadata.transactional_id), value)])
        except KafkaError as error:
            if error.code in _TOO_LARGE:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.detail) from error
            raise
        self._apply(index, metadata.transactional_id, metadata)
        self._on_change(index, metadata)

    def forget_unused(self, oldest_ms: int) -> bool:
        """Expire what nobody used since `oldest_ms`; whether any id is left."""
        for index in self.journal.active_indexes():
            expired = [
                name for name, one in self._shards[index].items() if one.expires_before(oldest_ms)
            ]
            for start in range(0, len(expired), _TOMBSTONES_PER_BATCH):
                names = expired[start : start + _TOMBSTONES_PER_BATCH]
                try:
                    self.journal.append(index, [(encode_key(name), None) for name in names])
                except KafkaError as error:
                    logger.warning("transactional ids are not expired yet: %s", error)
                    break
                for name in names:
                    self._apply(index, name, None)
        return any(self._shards.values())

    def _apply(
        self, index: int, transactional_id: str, metadata: TransactionMetadata | None
    ) -> None:
        """One record of the journal, just written or read again."""
        shard = self._shards.setdefault(index, {})
        if metadata is None:
            shard.pop(transactional_id, None)
        else:
            shard[transactional_id] = metadata
        if metadata is not None and metadata.state == ONGOING:
            self._ongoing[transactional_id] = index
        else:
            self._ongoing.pop(transactional_id, None)

    # `JournalListener`.

    def on_batch(self, index: int, header: BatchHeader, records: Sequence[Any]) -> None:
        """Replay."""
        if not header.is_control:
            for transactional_id, metadata in records:
                self._apply(index, transactional_id, metadata)

    def on_loaded(self, index: int) -> None:
        """Go on where the last coordinator of these ids stopped."""
        for metadata in list(self._shards.setdefault(index, {}).values()):
            self._on_change(index, metadata)

    def on_unloaded(self, index: int) -> None:
        """Somebody else goes on."""
        for transactional_id in self._shards.pop(index, {}):
            self._ongoing.pop(transactional_id, None)
            self._on_unloaded(transactional_id)


def _decode_batch(
    header: BatchHeader, records: list[Record]
) -> list[tuple[str, TransactionMetadata | None]]:
    """On the worker: what the records say; a broken one is logged and passed over."""
    if header.is_control:
        return []
    decoded = []
    for record in records:
        try:
            found = decode(record.key, record.value)
        except CorruptionError as error:
            logger.error("offset %d: %s", record.offset, error)
            continue
        if found is None:
            logger.warning("offset %d: a record of a later version is passed over", record.offset)
            continue
        decoded.append(found)
    return decoded
