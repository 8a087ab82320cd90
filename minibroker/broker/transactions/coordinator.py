"""The transaction coordinator: asks the state machine, writes its journal, has markers brought.

Stands between the handlers of transactions and `partitions/`. It is responsible for the
transactional ids whose hash names a partition of `__transaction_state` that this broker leads.
Every change is a record in the journal before anybody is answered; after a restart the journal is
read, and a transaction whose outcome was decided is brought to its end.

    handler ─► `state` step ─► journal ─► answer
                                  └─ PrepareCommit, PrepareAbort ─► `marker_sender` ─► Complete…

Two clocks tick here, and only while there is something to watch: transactions that are open longer
than their owner's `transaction.timeout.ms` are aborted (looked for every
`transaction.abort.timed.out.transaction.cleanup.interval.ms`), ids that nobody used for
`transactional.id.expiration.ms` are forgotten.

Source: Kafka TransactionCoordinator, TransactionStateManager; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.broker.slices import run_in_slices
from minibroker.broker.transactions import state
from minibroker.broker.transactions.marker_sender import RETRY_MS, MarkerSender
from minibroker.broker.transactions.state import (
    ONGOING,
    PREPARED,
    VERSION_OF_EPOCH_BUMP,
    TransactionMetadata,
    TransactionState,
)
from minibroker.broker.transactions.store import TransactionStore
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterator

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.partitions.journal import Journal
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.partitions.markers import MarkerWriter
    from minibroker.broker.timers import Timer, Timers
    from minibroker.broker.transactions.broker_requests import BrokerRequests
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock

logger = logging.getLogger(__name__)


class TransactionCoordinator:
    """Owns the transactional ids of this broker; belongs to the loop's thread."""

    __slots__ = (
        "_abort_timer",
        "_clock",
        "_cluster",
        "_dynamic",
        "_expiration_timer",
        "_fence_tasks",
        "_sender",
        "_store",
        "_timers",
        "markers",
        "peers",
    )

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        clock: Clock,
        timers: Timers,
        dynamic: DynamicConfig,
        worker: Runner,
        markers: MarkerWriter,
        peers: BrokerRequests,
    ) -> None:
        """`worker` decodes what is loaded. Call `start` next."""
        self._cluster = cluster
        self._clock = clock
        self._timers = timers
        self._dynamic = dynamic
        self._abort_timer: Timer | None = None
        self._expiration_timer: Timer | None = None
        self._fence_tasks: set[asyncio.Task[None]] = set()
        self.markers = markers
        """Writes the markers that other coordinators (and admin clients) ask for, too."""
        self.peers = peers
        """Other coordinators, for what they coordinate."""
        self._sender = MarkerSender(
            writer=markers, cluster=cluster, timers=timers, send=peers.send_markers
        )
        self._store = TransactionStore(
            cluster=cluster,
            partitions=partitions,
            clock=clock,
            config=dynamic.broker,
            worker=worker,
            timers=timers,
            on_change=self._follow_up,
            on_unloaded=self._sender.forget,
        )

    @property
    def journal(self) -> Journal:
        """`__transaction_state`: FindCoordinator creates it and asks where an id belongs."""
        return self._store.journal

    def start(self) -> None:
        """Load what this broker leads of `__transaction_state`, and follow the cluster."""
        self._store.journal.start()

    async def close(self) -> None:
        """Bring no more markers; the journal has everything."""
        for task in self._fence_tasks:
            task.cancel()
        await asyncio.gather(*self._fence_tasks, return_exceptions=True)
        await self._sender.close()

    # InitProducerId.

    async def initialize(
        self, transactional_id: str, timeout_ms: int, client_identity: tuple[int, int] | None
    ) -> tuple[int, int]:
        """Return the producer id and epoch for a (new or recovering) session of a transactional id.

        `client_identity`: producer id and epoch that the client has, None for a new session. Raises
        KafkaError: INVALID_TRANSACTION_TIMEOUT, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
        CONCURRENT_TRANSACTIONS (also after aborting what an earlier session left open),
        PRODUCER_FENCED, and the journal's.
        """
        if not 0 < timeout_ms <= self._dynamic.broker.transaction_max_timeout_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms={timeout_ms}: expected 1 to transaction.max.timeout.ms="
                f"{self._dynamic.broker.transaction_max_timeout_ms}",
            )
        index, metadata = self._store.find(transactional_id)
        if metadata is not None:
            state.check_initializable(metadata, client_identity)
        new_producer_id = NO_PRODUCER_ID
        if metadata is None or metadata.is_epoch_exhausted:
            new_producer_id = await self._next_producer_id()
            index, metadata = self._store.find(transactional_id)  # others went on meanwhile
        if metadata is None:
            metadata = TransactionMetadata(transactional_id, new_producer_id)
        elif metadata.state == ONGOING:
            state.check_initializable(metadata, client_identity)
            self._fence(index, metadata, new_producer_id)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        new_metadata = state.initialize(
            metadata,
            timeout_ms=timeout_ms,
            client_identity=client_identity,
            new_producer_id=new_producer_id,
            now_ms=self._clock.now_ms(),
        )
        self._store.write(index, new_metadata)
        logger.info(
            "transactional id %s has producer id %d, epoch %d",
            transactional_id,
            new_metadata.producer_id,
            new_metadata.producer_epoch,
        )
        return new_metadata.producer_id, new_metadata.producer_epoch

    async def _next_producer_id(self) -> int:
        """Return a new producer id.

        Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS), as Kafka does, while none can be had.
        """
        producer_id = self._cluster.producer_ids.next()
        return producer_id if isinstance(producer_id, int) else await producer_id

    def _fence(self, index: int, metadata: TransactionMetadata, new_producer_id: int) -> None:
        """Abort an open transaction without its owner. Raises the journal's KafkaError."""
        self._store.write(
            index,
            state.fence(
                metadata,
                broker_version=self._store.transaction_version,
                new_producer_id=new_producer_id,
                now_ms=self._clock.now_ms(),
            ),
        )

    # Within a transaction.

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        client_version: int,
    ) -> None:
        """Add `partitions` to the transaction; the first partition begins it.

        `client_version`: 2 where the request is one of the second protocol. Raises KafkaError:
        INVALID_REQUEST, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_PRODUCER_ID_MAPPING,
        PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, and the journal's.
        """
        index, metadata = self._store.get(transactional_id)
        new_metadata = state.add_partitions(
            metadata,
            producer_id,
            producer_epoch,
            partitions,
            client_version=client_version,
            now_ms=self._clock.now_ms(),
        )
        if new_metadata is not None:
            self._store.write(index, new_metadata)

    def partitions_not_added(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> list[TopicPartition]:
        """Return those of `partitions` that the transaction does not cover (KIP-890, verification).

        Raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        _, metadata = self._store.get(transactional_id)
        return state.partitions_not_added(metadata, producer_id, producer_epoch, partitions)

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        client_version: int,
    ) -> tuple[int, int] | Awaitable[tuple[int, int]]:
        """Decide the transaction (EndTxn); the markers follow behind the answer.

        Returns the producer id and epoch of the next transaction in the second protocol, (-1, -1)
        in the first; an awaitable where a new producer id has to be fetched. Raises KafkaError (so
        may the awaitable): INVALID_REQUEST, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE,
        and the journal's.
        """
        _, metadata = self._store.get(transactional_id)

        def end_now(new_producer_id: int) -> tuple[int, int]:
            return self._end(
                transactional_id,
                producer_id,
                producer_epoch,
                is_commit=is_commit,
                client_version=client_version,
                new_producer_id=new_producer_id,
            )

        if client_version < VERSION_OF_EPOCH_BUMP or not metadata.is_epoch_exhausted:
            return end_now(NO_PRODUCER_ID)

        async def end_with_new_producer_id() -> tuple[int, int]:
            return end_now(await self._next_producer_id())

        return end_with_new_producer_id()

    def _end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        client_version: int,
        new_producer_id: int,
    ) -> tuple[int, int]:
        index, metadata = self._store.get(transactional_id)
        new_metadata = state.end(
            metadata,
            producer_id,
            producer_epoch,
            is_commit=is_commit,
            client_version=client_version,
            new_producer_id=new_producer_id,
            now_ms=self._clock.now_ms(),
        )
        if new_metadata is not None:
            self._store.write(index, new_metadata)
        if client_version < VERSION_OF_EPOCH_BUMP:
            return NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        next_metadata = metadata if new_metadata is None else state.complete(new_metadata, 0)
        return next_metadata.producer_id, next_metadata.producer_epoch

    def visible(self, transactional_id: str) -> Awaitable[None] | None:
        """Return None if every record of the id is visible, else an awaitable that ends then.

        Before that no answer tells of the records, and no batch of a new transaction is appended:
        a coordinator that forgot the transaction would never end it. Raises KafkaError if this
        broker loses the id, or if followers do not have the records in time.
        """
        return self._store.visible(transactional_id)

    # Looking.

    def describe(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of an id.

        Raises KafkaError: INVALID_REQUEST, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
        TRANSACTIONAL_ID_NOT_FOUND.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        _, metadata = self._store.find(transactional_id)
        if metadata is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return metadata

    def all(self) -> Iterator[TransactionMetadata]:
        """Return every id of this broker's.

        Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while any partition is being loaded.
        """
        return self._store.all()

    # Consequences of a new state.

    def _follow_up(self, index: int, metadata: TransactionMetadata) -> None:
        """Send markers for a decided transaction; watch the time of an open one."""
        if metadata.state in PREPARED:
            self._bring_markers(index, metadata)
        elif metadata.state == ONGOING and self._abort_timer is None:
            self._arm_abort_timer()
        if self._expiration_timer is None:
            self._arm_expiration_timer()

    def _bring_markers(self, index: int, metadata: TransactionMetadata) -> None:
        marker = EndOfTransaction(
            metadata.producer_id,
            metadata.producer_epoch,
            self._store.journal.leader_epoch_of(index),
            metadata.state == TransactionState.PREPARE_COMMIT,
            metadata.client_version,
        )
        self._sender.add(
            metadata.transactional_id,
            marker,
            metadata.partitions,
            lambda: self._complete(index, metadata),
        )

    def _complete(self, index: int, metadata: TransactionMetadata) -> None:
        """End a transaction whose every partition has its marker."""
        if not self._store.is_current(index, metadata):
            return  # not ours any more, whoever has it goes on
        try:
            self._store.write(index, state.complete(metadata, self._clock.now_ms()))
        except KafkaError as error:
            logger.debug("the end of %s is written later: %s", metadata.transactional_id, error)
            self._timers.after(RETRY_MS, lambda: self._complete(index, metadata))

    # Time.

    def _arm_abort_timer(self) -> None:
        interval_ms = (
            self._dynamic.broker.transaction_abort_timed_out_transaction_cleanup_interval_ms
        )
        self._abort_timer = self._timers.after(interval_ms, self._abort_overdue)

    def _abort_overdue(self) -> None:
        """Abort transactions that are open for too long; look again later if any is open."""
        self._abort_timer = None
        run_in_slices(self._abort_steps(self._clock.now_ms()))

    def _abort_steps(self, now_ms: int) -> Iterator[None]:
        for metadata in self._store.ongoing_ids():
            try:
                if metadata.is_overdue(now_ms):
                    self._abort(metadata)
            except Exception:  # a bug of ours: others are aborted, and the next look tries again
                logger.exception("the transaction of %s is not aborted", metadata.transactional_id)
            yield
        if self._store.has_ongoing and self._abort_timer is None:
            self._arm_abort_timer()

    def _abort(self, metadata: TransactionMetadata) -> None:
        logger.info(
            "the transaction of %s is aborted: open since %d, transaction.timeout.ms=%d",
            metadata.transactional_id,
            metadata.start_ms,
            metadata.timeout_ms,
        )
        if metadata.is_epoch_exhausted:
            task = asyncio.get_running_loop().create_task(self._fence_exhausted(metadata))
            self._fence_tasks.add(task)
            task.add_done_callback(self._fence_tasks.discard)
        else:
            self._fence_overdue(metadata, NO_PRODUCER_ID)

    async def _fence_exhausted(self, metadata: TransactionMetadata) -> None:
        try:
            new_producer_id = await self._next_producer_id()
        except KafkaError as error:
            logger.warning("%s is not fenced yet: %s", metadata.transactional_id, error)
            return
        self._fence_overdue(metadata, new_producer_id)

    def _fence_overdue(self, metadata: TransactionMetadata, new_producer_id: int) -> None:
        """Fence one overdue transaction; on an error the next check tries again."""
        index = self._store.journal.partition_of(metadata.transactional_id)
        if not self._store.is_current(index, metadata):
            return
        try:
            self._fence(index, metadata, new_producer_id)
        except KafkaError as error:
            logger.warning("%s is not fenced yet: %s", metadata.transactional_id, error)

    def _arm_expiration_timer(self) -> None:
        interval_ms = (
            self._dynamic.broker.transaction_remove_expired_transaction_cleanup_interval_ms
        )
        self._expiration_timer = self._timers.after(interval_ms, self._forget_expired)

    def _forget_expired(self) -> None:
        """Write tombstones for ids that nobody used; look again later if any id remains."""
        self._expiration_timer = None
        oldest_ms = self._clock.now_ms() - self._dynamic.broker.transactional_id_expiration_ms
        run_in_slices(self._expiration_steps(oldest_ms))

    def _expiration_steps(self, oldest_ms: int) -> Iterator[None]:
        try:
            yield from self._store.forget_unused(oldest_ms)
        except Exception:  # a bug of ours: the next look tries again
            logger.exception("transactional ids are not expired")
        if self._store.has_ids and self._expiration_timer is None:
            self._arm_expiration_timer()
