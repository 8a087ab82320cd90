"""The transactional ids of this broker: their journal and its image in memory.

`write` is the one way to change anything: a record in `__transaction_state` first, then the value
in memory, through the function that replays records when a partition of the journal is loaded. The
consequences begin when the record is visible (`partitions/coordinator_runtime`). `coordinator`
decides, this module remembers.

Source: Kafka TransactionStateManager.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.features import TRANSACTION_VERSION
from minibroker.broker.cluster.internal_topics import TRANSACTIONS_TOPIC
from minibroker.broker.partitions.coordinator_runtime import CoordinatorRuntime, WriteTimeout
from minibroker.broker.slices import run_in_slices
from minibroker.broker.transactions.records import decode, encode_key, encode_value
from minibroker.broker.transactions.state import ONGOING, PREPARED, TransactionMetadata
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.timers import Timers
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock
    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.record import Record

logger = logging.getLogger(__name__)

IDS_AT_ONCE: Final = 32
"""Ids that one step of `forget_unused` looks at; expiring one takes some 10 us."""


class TransactionShard:
    """The transactional ids of one partition of `__transaction_state`."""

    __slots__ = ("_store", "decided_ids", "ids", "index", "ongoing_ids")

    def __init__(self, index: int, store: TransactionStore) -> None:
        self.index = index
        self._store = store
        self.ids: dict[str, TransactionMetadata] = {}
        self.ongoing_ids: set[str] = set()
        """Ids with an open transaction."""
        self.decided_ids: set[str] = set()
        """Ids with a decided transaction whose markers are not all visible."""

    def replay(self, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        """Apply one record, just written or read again; None: the id has expired."""
        if metadata is None:
            self.ids.pop(transactional_id, None)
        else:
            self.ids[transactional_id] = metadata
        state = None if metadata is None else metadata.state
        if state == ONGOING:
            self.ongoing_ids.add(transactional_id)
        else:
            self.ongoing_ids.discard(transactional_id)
        if state in PREPARED:
            self.decided_ids.add(transactional_id)
        else:
            self.decided_ids.discard(transactional_id)

    # `CoordinatorShard`.

    def replay_batch(self, header: BatchHeader, records: Sequence[Any]) -> None:
        """Apply a batch of the journal."""
        if not header.is_control:
            for transactional_id, metadata in records:
                self.replay(transactional_id, metadata)

    def on_loaded(self) -> None:
        """Go on where the last coordinator of these ids stopped, in slices, once all is visible: a
        decision that the next coordinator may be without is brought nowhere.
        """
        names = [*self.decided_ids, *self.ongoing_ids]
        if not names:
            names = list(islice(self.ids, 1))  # enough to have ids expire
        steps = self._go_on([self.ids[name] for name in names])
        self._store.when_visible(self.index, lambda: run_in_slices(steps))

    def _go_on(self, metadata_list: list[TransactionMetadata]) -> Iterator[None]:
        """Give these states to `on_change`, except those that have changed meanwhile."""
        for metadata in metadata_list:
            if self._store.is_current(self.index, metadata):
                self._store.on_change(self.index, metadata)
            yield

    def on_unloaded(self) -> None:
        """Tell of each decided transaction: another broker goes on with it."""
        for transactional_id in self.decided_ids:
            self._store.on_unloaded(transactional_id)


class TransactionStore:
    """Transactional id → `TransactionMetadata`; belongs to the loop's thread."""

    __slots__ = ("_cluster", "_runtime", "journal", "on_change", "on_unloaded")

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        clock: Clock,
        config: BrokerConfig,
        worker: Runner,
        timers: Timers,
        on_change: Callable[[int, TransactionMetadata], None],
        on_unloaded: Callable[[str], None],
    ) -> None:
        """Let an answer wait for followers for `request.timeout.ms`, as Kafka's append does.

        `on_change` gets every state once it is visible, with its partition. When a partition is
        loaded, it gets the open and decided states, or at least one state. `on_unloaded` gets every
        decided transaction that this broker no longer coordinates.
        """
        self._cluster = cluster
        self.on_change = on_change
        self.on_unloaded = on_unloaded
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            TRANSACTIONS_TOPIC,
            make_shard=lambda index: TransactionShard(index, self),
            cluster=cluster,
            partitions=partitions,
            clock=clock,
            config=config,
            worker=worker,
            decode=_decode_batch,
            write_timeout=WriteTimeout(timers, config.request_timeout_ms),
        )
        self.journal = self._runtime.journal

    @property
    def transaction_version(self) -> int:
        """Return the level of `transaction.version` that is in force."""
        return self._cluster.features.level(TRANSACTION_VERSION)

    def find(self, transactional_id: str) -> tuple[int, TransactionMetadata | None]:
        """Return the partition of the journal, and the state of the id if there is one.

        Raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        index = self.journal.partition_of(transactional_id)
        return index, self._runtime.get(index).ids.get(transactional_id)

    def get(self, transactional_id: str) -> tuple[int, TransactionMetadata]:
        """Return the partition and the state, like `find`, of an id that must exist.

        Raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_REQUEST for an
        empty id, INVALID_PRODUCER_ID_MAPPING for an unknown one.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        index, metadata = self.find(transactional_id)
        if metadata is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return index, metadata

    def is_current(self, index: int, metadata: TransactionMetadata) -> bool:
        """Return whether this is still the state of the id, and this broker its coordinator."""
        shard = self._runtime.find(index)
        return shard is not None and shard.ids.get(metadata.transactional_id) is metadata

    def all(self) -> Iterator[TransactionMetadata]:
        """Yield every id of this broker's. Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS)."""
        if self.journal.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        for shard in self._runtime.active():
            yield from shard.ids.values()

    @property
    def has_ongoing(self) -> bool:
        """Return whether any transaction is open."""
        return any(shard.ongoing_ids for shard in self._runtime.active())

    def ongoing_ids(self) -> Iterator[TransactionMetadata]:
        """Yield every open transaction. They may change, come and go meanwhile."""
        for shard in self._runtime.active():
            for name in list(shard.ongoing_ids):
                if name in shard.ongoing_ids:
                    yield shard.ids[name]

    @property
    def has_ids(self) -> bool:
        """Return whether any transactional id is known."""
        return any(shard.ids for shard in self._runtime.active())

    def write(self, index: int, metadata: TransactionMetadata) -> None:
        """Write to the journal, then to memory; call `on_change` when the record is visible.

        Raises KafkaError with the journal's code; nothing changed then.
        """
        transactional_id = metadata.transactional_id
        shard = self._runtime.get(index)
        record = encode_key(transactional_id), encode_value(metadata, self.transaction_version)
        self._runtime.write(
            index,
            [record],
            replay=lambda _offset: shard.replay(transactional_id, metadata),
            then=lambda: self.on_change(index, metadata),
        )

    def visible(self, transactional_id: str) -> Awaitable[None] | None:
        """Call `CoordinatorRuntime.visible` for the partition that keeps the id: after
        `request.timeout.ms` the wait for followers ends with COORDINATOR_NOT_AVAILABLE."""
        return self._runtime.visible(self.journal.partition_of(transactional_id))

    def when_visible(self, index: int, then: Callable[[], None]) -> None:
        """Call `then` when all that a partition of the journal has now is visible, or lost."""
        self._runtime.when_visible(index, then)

    def forget_unused(self, oldest_ms: int) -> Iterator[None]:
        """Expire ids that nobody used since `oldest_ms`, in short steps.

        Ids may be used, and partitions come and go, between two of them. An id whose tombstone is
        refused stays.
        """
        for shard in self._runtime.active():
            try:
                for _ in self._forget_unused(shard, oldest_ms):
                    yield
            except KafkaError as error:
                logger.warning("transactional ids are not expired yet: %s", error)

    def _forget_unused(self, shard: TransactionShard, oldest_ms: int) -> Iterator[None]:
        """Yield after each step. Raises KafkaError with the journal's code."""
        names = list(shard.ids)
        for start in range(0, len(names), IDS_AT_ONCE):
            if self._runtime.find(shard.index) is not shard:
                return
            expired_ids = []
            for name in names[start : start + IDS_AT_ONCE]:
                metadata = shard.ids.get(name)
                if metadata is not None and metadata.expires_before(oldest_ms):
                    expired_ids.append(name)
            if expired_ids:
                self._forget(shard, expired_ids)
            yield

    def _forget(self, shard: TransactionShard, names: Sequence[str]) -> None:
        """Write tombstones for `names`. Raises KafkaError with the journal's code."""

        def replay(_offset: int) -> None:
            for name in names:
                shard.replay(name, None)

        tombstones = [(encode_key(name), None) for name in names]
        self._runtime.write(shard.index, tombstones, replay=replay, then=_do_nothing)
        for name in names:
            logger.info("transactional id %r is deleted: %s", name, _UNUSED)


_UNUSED: Final = "nobody used it for transactional.id.expiration.ms"
"""The evidence for the deletion of a transactional id's state, for the log."""


def _do_nothing() -> None:
    """Do nothing: nobody waits for it."""


def _decode_batch(
    header: BatchHeader, records: list[Record]
) -> list[tuple[str, TransactionMetadata | None]]:
    """Return the decoded records, on the worker. A broken one is logged and passed over."""
    if header.is_control:
        return []
    entries = []
    for record in records:
        try:
            entry = decode(record.key, record.value)
        except CorruptionError as error:
            logger.error("offset %d: %s", record.offset, error)
            continue
        if entry is None:
            logger.warning("offset %d: a record of a later version is passed over", record.offset)
            continue
        entries.append(entry)
    return entries
