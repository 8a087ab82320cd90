"""Transactions of the brokers of this process: the open ones, those that hang, and their end.

A transaction hangs where a partition has it open and its coordinator does not: readers of committed
records wait for it for ever. Kafka's `kafka-transactions` looks for them in the same way.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.internal_topics import TRANSACTIONS_TOPIC
from minibroker.broker.slices import TimeSlice
from minibroker.broker.transactions.state import ONGOING, PREPARED, TransactionMetadata
from minibroker.control.messages import HttpError, in_time
from minibroker.control.shapes import PlaceView
from minibroker.control.transaction_shapes import (
    HangingView,
    ProducerView,
    TransactionsQuery,
    TransactionsView,
    TransactionView,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.api_keys import (
    DESCRIBE_PRODUCERS,
    INIT_PRODUCER_ID,
    WRITE_TXN_MARKERS,
)
from minibroker.kafka.protocol.messages.describe_producers import TopicRequest
from minibroker.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
)
from minibroker.rig.inner_client import check_code

if TYPE_CHECKING:
    from minibroker.broker.app import Broker
    from minibroker.broker.partitions.partition import Partition
    from minibroker.control.scope import ControlScope
    from minibroker.control.transaction_shapes import AbortChoice

PLACES_MAX: Final = 100
"""Partitions of one transaction that are shown."""
SUSPECTS_MAX: Final = 1000
"""Partitions with an open transaction that are looked at for one that hangs."""
ENDED_S: Final = 10.0
"""Longest wait until an aborted transaction has its markers."""
_OPEN: Final = frozenset({ONGOING, *PREPARED})


class TransactionsLook:
    """One look at all transactions. Owned by the loop."""

    def __init__(self, scope: ControlScope, query: TransactionsQuery) -> None:
        self._scope = scope
        self._brokers = scope.brokers
        self._query = query
        self._turn = TimeSlice()
        self._ids: list[tuple[Broker, TransactionMetadata]] = []
        self._open: dict[int, TransactionMetadata] = {}
        """Producer id → its open transaction."""

    async def run(self) -> TransactionsView:
        """Return the transactions. Raises KafkaError, HttpError."""
        await self._gather()
        limit = self._query.limit
        ids = [entry for entry in self._ids if entry[1].state in _OPEN]
        ids.sort(key=lambda entry: entry[1].start_ms)
        if not self._query.only_open:
            ended = [entry for entry in self._ids if entry[1].state not in _OPEN]
            ended.sort(key=lambda entry: -entry[1].last_update_ms)
            ids += ended
        knows_all = self._coordinates_all()
        hanging = await self.hanging(limit + 1) if knows_all else []
        views = []
        for entry in ids[:limit]:
            views.append(self._view(*entry))
            await self._pause()
        return TransactionsView(
            transactions=views,
            hanging=hanging[:limit],
            cut=len(ids) > limit or len(hanging) > limit,
            knows_all=knows_all,
        )

    async def _gather(self) -> None:
        for broker in self._brokers:
            if TRANSACTIONS_TOPIC not in broker.cluster.image.topics:
                continue
            for metadata in list(broker.services.transactions.all()):
                self._ids.append((broker, metadata))
                if metadata.state in _OPEN:
                    self._open[metadata.producer_id] = metadata
                await self._pause()

    def _coordinates_all(self) -> bool:
        """Return whether these brokers coordinate every transaction of the cluster."""
        topic = self._brokers[0].cluster.image.topics.get(TRANSACTIONS_TOPIC)
        ids = {broker.config.broker_id for broker in self._brokers}
        return topic is None or all(state.leader in ids for state in topic.partitions)

    def _view(self, broker: Broker, metadata: TransactionMetadata) -> TransactionView:
        is_open = metadata.state in _OPEN
        now_ms = broker.clock.now_ms()
        places = sorted(metadata.partitions)[:PLACES_MAX]
        return TransactionView(
            transactional_id=metadata.transactional_id,
            broker_id=broker.config.broker_id,
            state=metadata.state.title,
            is_open=is_open,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            timeout_ms=metadata.timeout_ms,
            started_ms=metadata.start_ms if is_open else None,
            age_ms=max(0, now_ms - metadata.start_ms) if is_open else None,
            partitions=[PlaceView(topic=name.topic, partition=name.partition) for name in places],
        )

    async def hanging(self, limit: int) -> list[HangingView]:
        """Return transactions that hang, at most about so many. Raises KafkaError."""
        suspects: list[tuple[Broker, Partition]] = []
        for broker in self._brokers:
            for place in list(broker.logs.logs):
                partition = broker.partitions.find(place.topic, place.partition)
                if partition is not None and _is_open(partition):
                    suspects.append((broker, partition))
                await self._pause()
        hanging: list[HangingView] = []
        for broker, partition in suspects[:SUSPECTS_MAX]:
            hanging += await self.hanging_in(broker, partition.topic, partition.index)
            if len(hanging) >= limit:
                break
        return hanging

    async def hanging_in(self, broker: Broker, topic: str, index: int) -> list[HangingView]:
        """Return the transactions that hang in a partition. Raises KafkaError."""
        name = TopicPartition(topic, index)
        now_ms = broker.clock.now_ms()
        views = []
        for producer in await _producers(self._scope, broker, topic, index):
            owner = self._open.get(producer.producer_id)
            is_known = owner is not None and name in owner.partitions
            if producer.current_txn_start_offset < 0 or is_known:
                continue
            views.append(
                HangingView(
                    topic=topic,
                    partition=index,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    coordinator_epoch=producer.coordinator_epoch,
                    start_offset=producer.current_txn_start_offset,
                    last_timestamp=producer.last_timestamp,
                    age_ms=max(0, now_ms - producer.last_timestamp),
                )
            )
        return views

    async def find_hanging(self, topic: str, index: int, producer_id: int) -> HangingView:
        """Return one that hangs. Raises HttpError, KafkaError."""
        await self._gather()
        if not self._coordinates_all():
            raise HttpError(
                HTTPStatus.CONFLICT,
                "brokers of other processes coordinate some transactions: ask kafka-transactions",
            )
        for broker in self._brokers:
            if broker.partitions.find(topic, index) is not None:
                for view in await self.hanging_in(broker, topic, index):
                    if view.producer_id == producer_id:
                        return view
        raise HttpError(
            HTTPStatus.NOT_FOUND,
            f"no transaction of producer {producer_id} hangs in {topic:.300}-{index}",
        )

    async def _pause(self) -> None:
        if self._turn.is_over:
            await self._turn.pause()


def _is_open(partition: Partition) -> bool:
    """Return whether a transaction may be open in a partition."""
    return partition.log.last_stable_offset < partition.log_end_offset


async def _producers(scope: ControlScope, broker: Broker, topic: str, index: int) -> list[Any]:
    """Return the producers of a partition, as DescribeProducers does. Raises KafkaError."""
    request = TopicRequest(name=topic, partition_indexes=[index])
    response = await scope.client(broker).ask(DESCRIBE_PRODUCERS, topics=[request])
    (result,) = response.topics[0].partitions
    check_code(result.error_code, result.error_message)
    producers: list[Any] = result.active_producers
    return producers


async def producers_of(
    scope: ControlScope, broker: Broker, topic: str, index: int
) -> list[ProducerView]:
    """Return the producers of a partition. Raises KafkaError."""
    return [
        ProducerView(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            transaction_start_offset=(
                producer.current_txn_start_offset
                if producer.current_txn_start_offset >= 0
                else None
            ),
        )
        for producer in await _producers(scope, broker, topic, index)
    ]


async def abort(scope: ControlScope, choice: AbortChoice) -> None:
    """Abort a transaction. Raises HttpError, KafkaError."""
    place = (choice.topic, choice.partition, choice.producer_id)
    if choice.transactional_id is not None and place == (None, None, None):
        await _abort_by_id(scope, choice.transactional_id)
        return
    topic, index, producer_id = place
    if choice.transactional_id is not None or topic is None or index is None or producer_id is None:
        raise HttpError(
            HTTPStatus.BAD_REQUEST,
            "expected transactional_id, or for one that hangs topic, partition and producer_id",
        )
    look = TransactionsLook(scope, TransactionsQuery())
    await _abort_hanging(scope, await look.find_hanging(topic, index, producer_id))


async def _abort_by_id(scope: ControlScope, transactional_id: str) -> None:
    """Abort an open transaction as a new producer with its id does, which fences the old one."""
    broker, metadata = _find(scope, transactional_id)
    if metadata.state not in _OPEN:
        raise HttpError(
            HTTPStatus.CONFLICT,
            f"{transactional_id!r:.300} has no open transaction: it is {metadata.state.title}",
        )
    response = await scope.client(broker).ask(
        INIT_PRODUCER_ID,
        transactional_id=transactional_id,
        transaction_timeout_ms=metadata.timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
    )
    if response.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:  # its markers are on their way
        check_code(response.error_code, None)

    def has_ended() -> bool:
        return broker.services.transactions.describe(transactional_id).state not in _OPEN

    await in_time(scope.nodes.until(has_ended, f"{transactional_id!r:.300} has ended", ENDED_S))


def _find(scope: ControlScope, transactional_id: str) -> tuple[Broker, TransactionMetadata]:
    """Return the coordinator of an id, and its state. Raises KafkaError."""
    failure = KafkaError(
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        f"there is no transactional id {transactional_id!r:.300}",
    )
    for broker in scope.brokers:
        if TRANSACTIONS_TOPIC not in broker.cluster.image.topics:
            continue
        try:
            return broker, broker.services.transactions.describe(transactional_id)
        except KafkaError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                failure = error
    raise failure


async def _abort_hanging(scope: ControlScope, hanging: HangingView) -> None:
    """Write the marker that the coordinator never will. Raises KafkaError."""
    broker = next(
        broker
        for broker in scope.brokers
        if broker.partitions.find(hanging.topic, hanging.partition) is not None
    )
    marker = WritableTxnMarker(
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        transaction_result=False,
        coordinator_epoch=max(0, hanging.coordinator_epoch),
        topics=[WritableTxnMarkerTopic(name=hanging.topic, partition_indexes=[hanging.partition])],
    )
    response = await scope.client(broker).ask(WRITE_TXN_MARKERS, markers=[marker])
    (result,) = response.markers[0].topics[0].partitions
    check_code(result.error_code, None)
