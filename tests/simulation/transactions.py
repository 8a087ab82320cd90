"""Transactional producers of a run, a reader with read_committed, and all that is known of each
transaction.

A producer says how a transaction ends only when its coordinator has confirmed it. A commit whose
answer it never got may have happened or not, but wholly.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from minibroker.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from minibroker.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import read_marker
from minibroker.kafka.records.record import Record, decode_records
from tests.simulation.connections import FAILURES, Connections, RefusedError
from tests.simulation.loop import START_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.kafka.ids import TopicPartition
    from tests.simulation.world import World

TIMEOUT_MS = 3000
READ_COMMITTED = 1
TRANSACTION = 1
ATTEMPTS = 12
RETRIED = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
PRODUCE, ADD_PARTITIONS, INIT, END, FIND = 9, 3, 4, 3, 3
"""Versions of the requests: those of a client of Kafka 3.0."""


class Outcome(Enum):
    """Ends of a transaction, as far as its client knows."""

    OPEN = "open"
    COMMITTING = "a commit was asked for"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "committed or aborted"


class Transaction:
    """One transaction: what was acknowledged, and how it ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome = Outcome.OPEN
        self.appended: list[tuple[TopicPartition, int, bytes]] = []
        """Partition, offset and value of each acknowledged record."""

    @property
    def may_be_visible(self) -> bool:
        return self.outcome not in (Outcome.OPEN, Outcome.ABORTED)


class Transactions:
    """All transactions of a run."""

    def __init__(self) -> None:
        self.all: list[Transaction] = []
        self.by_value: dict[bytes, Transaction] = {}

    def check_visible(self, value: bytes, reader: str) -> None:
        """Raises AssertionError where a reader must not see this value."""
        transaction = self.by_value.get(value)
        assert transaction is None or transaction.may_be_visible, (
            f"{reader} sees {value!r} of transaction {transaction.name}, which is"
            f" {transaction.outcome.value}"
        )

    def check_at_end(
        self, committed: dict[TopicPartition, dict[bytes, int]], starts: dict[TopicPartition, int]
    ) -> None:
        """Check that each transaction is there wholly, once, or not at all. Raises AssertionError.

        `committed`: value → offset of what a reader with read_committed sees. `starts`: partition →
        offset of its first record; the records below were deleted.
        """
        for transaction in self.all:
            kept_records = [
                record for record in transaction.appended if record[1] >= starts[record[0]]
            ]
            visible = [record for record in kept_records if record[2] in committed[record[0]]]
            outcome = transaction.outcome
            if outcome is Outcome.COMMITTED:
                assert visible == kept_records, (
                    f"of committed {transaction.name} {visible} is there of {kept_records}"
                )
            elif transaction.may_be_visible:
                assert visible in ([], kept_records), (
                    f"of {transaction.name} {visible} is there of {kept_records}"
                )
            else:
                assert not visible, f"{transaction.name} is {outcome.value}, and {visible} is there"


class TransactionalProducer:
    """A producer with a transactional id, and one transaction after the other."""

    def __init__(
        self,
        world: World,
        transactions: Transactions,
        partitions: Sequence[TopicPartition],
        number: int,
    ) -> None:
        self._world = world
        self._transactions = transactions
        self._partitions = partitions
        self._number = number
        self._id = f"transactional-{number}"
        self._connections = Connections(world, self._id)
        self._coordinator = -1
        self._producer_id = self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._count = 0

    async def run(self) -> None:
        """Begin, write and end transactions until this is cancelled."""
        while True:
            try:
                if self._epoch < 0:
                    await self._init()
                await self._transaction()
            except FAILURES as error:
                self._world.note(f"{self._id} begins anew: {error}")
                self._epoch = -1
                await self._connections.rest(0.05, 0.3)
            await self._connections.rest(0, 0.2)

    async def _ask(self, request: Any, response: Any, version: int) -> Any:
        """Return the answer of the coordinator. Raises FAILURES."""
        if self._coordinator < 0:
            answer = await self._connections.call(
                self._connections.any_broker(),
                FindCoordinatorRequest(key=self._id, key_type=TRANSACTION),
                FindCoordinatorResponse,
                FIND,
            )
            if answer.error_code:
                raise RefusedError(answer.error_code)
            self._coordinator = answer.node_id
        try:
            return await self._connections.call(self._coordinator, request, response, version)
        except FAILURES:
            self._coordinator = -1
            raise

    async def _ask_until_done(self, request: Any, response: Any, version: int) -> Any:
        """Ask again while the error says so. Raises FAILURES."""
        for attempt in range(ATTEMPTS):
            try:
                answer = await self._ask(request, response, version)
                code = _code_of(answer)
                if not code:
                    return answer
                if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                    self._coordinator = -1
                raise RefusedError(code)
            except FAILURES as error:
                is_final = isinstance(error, RefusedError) and error.code not in RETRIED
                if is_final or attempt == ATTEMPTS - 1:
                    raise
            await self._connections.rest(0.05, 0.3)
        raise AssertionError

    async def _init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS
        )
        answer = await self._ask_until_done(request, InitProducerIdResponse, INIT)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences = {}

    async def _transaction(self) -> None:
        """Do one transaction. Raises FAILURES where the producer has to begin anew."""
        chance = self._connections.chance
        self._count += 1
        transaction = Transaction(f"{self._number}-{self._count}")
        self._transactions.all.append(transaction)
        is_whole = True
        for turn in range(chance.randrange(1, 4)):
            name = chance.choice(self._partitions)
            try:
                await self._add(name)
                await self._write(transaction, name, turn)
            except FAILURES as error:
                is_whole = False
                if isinstance(error, RefusedError) and error.code not in RETRIED:
                    transaction.outcome = Outcome.ABORTED
                    raise
                break
            await self._connections.rest(0, 0.1)
        is_commit = is_whole and chance.random() < 0.7
        transaction.outcome = Outcome.COMMITTING if is_commit else Outcome.ABORTED
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=is_commit,
        )
        try:
            await self._ask_until_done(request, EndTxnResponse, END)
        except FAILURES:
            if is_commit:
                transaction.outcome = Outcome.UNKNOWN
            raise
        if is_commit:
            transaction.outcome = Outcome.COMMITTED
        if not is_whole:
            self._epoch = -1  # it is not known which sequences the partitions have

    async def _add(self, name: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name.topic, partitions=[name.partition])
            ],
        )
        await self._ask_until_done(request, AddPartitionsToTxnResponse, ADD_PARTITIONS)

    async def _write(self, transaction: Transaction, name: TopicPartition, turn: int) -> None:
        """Append some records, with the same sequence until it is known. Raises FAILURES."""
        chance = self._connections.chance
        count = chance.randrange(1, 4)
        values = [b"x%s.%d.%d" % (transaction.name.encode(), turn, n) for n in range(count)]
        for value in values:
            self._transactions.by_value[value] = transaction
        sequence = self._sequences.get(name, 0)
        for attempt in range(ATTEMPTS):
            try:
                offset = await self._append(name, values, sequence)
                break
            except FAILURES as error:
                is_final = isinstance(error, RefusedError) and error.code not in RETRIED
                if is_final or attempt == ATTEMPTS - 1:
                    raise
            await self._connections.rest(0.05, 0.3)
        self._sequences[name] = sequence + count
        transaction.appended += [(name, offset + n, value) for n, value in enumerate(values)]

    async def _append(self, name: TopicPartition, values: list[bytes], sequence: int) -> int:
        """Return the first offset. Raises FAILURES."""
        batch = build_batch(
            [Record(0, START_MS, None, value) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=name.partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=name.topic, partition_data=[data])],
        )
        leader = self._connections.leader_of(name)
        answer = await self._connections.call(leader, request, ProduceResponse, PRODUCE)
        partition = answer.responses[0].partition_responses[0]
        if partition.error_code:
            raise RefusedError(partition.error_code)
        offset: int = partition.base_offset
        return offset


def _code_of(answer: Any) -> int:
    """Return the first error of an answer."""
    if isinstance(answer, AddPartitionsToTxnResponse):
        results = answer.results_by_topic_v3_and_below[0].results_by_partition
        return int(results[0].partition_error_code)
    return int(answer.error_code)


class CommittedReader:
    """A consumer with read_committed, which leaves aborted records out as clients do."""

    def __init__(
        self, world: World, transactions: Transactions, partitions: Sequence[TopicPartition]
    ) -> None:
        self._world = world
        self._transactions = transactions
        self._partitions = partitions

    async def run(self) -> None:
        """Read from the start to the end, again and again."""
        from tests.simulation.clients import fetch, start_of  # noqa: PLC0415

        connections = Connections(self._world, "committed reader")
        chance = connections.chance
        offsets = dict.fromkeys(self._partitions, 0)
        while True:
            name = chance.choice(self._partitions)
            try:
                answer = await fetch(connections, name, offsets[name], READ_COMMITTED)
                offsets[name] = self._take(name, offsets[name], answer)
            except RefusedError as error:
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    try:
                        offsets[name] = await start_of(connections, name)
                    except FAILURES:
                        await connections.rest(0.01, 0.2)
            except FAILURES:
                await connections.rest(0.01, 0.2)
            await connections.rest(0, 0.2)
            if chance.random() < 0.1:
                offsets[name] = 0

    def _take(self, name: TopicPartition, offset: int, partition: Any) -> int:
        """Check what is visible; return where to go on."""
        records = memoryview(bytes(partition.records or b""))
        waiting = sorted(
            partition.aborted_transactions or (), key=lambda aborted: aborted.first_offset
        )
        aborted: set[int] = set()
        for position, header in iterate_headers(records):
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            offset = header.last_offset + 1
            if header.is_control:
                aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                for record in decode_records(records[position:]):
                    self._transactions.check_visible(
                        record.value or b"", f"a reader of {name} at offset {record.offset}"
                    )
        return offset


def committed_of(log: bytes) -> tuple[dict[bytes, int], dict[int, int]]:
    """Return value → offset of what a reader with read_committed sees of a whole log, and the open
    transactions: producer id → first offset.

    Raises AssertionError where a value is there twice.
    """
    values: dict[bytes, int] = {}
    undecided: dict[int, list[tuple[bytes, int]]] = {}
    for position, header in iterate_headers(memoryview(log)):
        if header.is_control:
            marker = read_marker(log, position, header)
            records = undecided.pop(header.producer_id, [])
            if marker is not None and not marker.is_commit:
                continue
        else:
            records = [
                (record.value or b"", record.offset)
                for record in decode_records(memoryview(log)[position:])
            ]
            if header.is_transactional:
                undecided.setdefault(header.producer_id, []).extend(records)
                continue
        for value, offset in records:
            assert value not in values, f"{value!r} is at offset {values[value]} and at {offset}"
            values[value] = offset
    return values, {producer: records[0][1] for producer, records in undecided.items()}
