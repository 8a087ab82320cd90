"""Records of a topic on their way to its partitions: placed, gathered into batches, sent, repeated.

    lines ──add_values──┐
    pairs ──add_pairs───┼─► a partition's records ─► a batch, numbered ─► produce.ProduceQueue
    records ──add───────┘

A record with a key goes where Java's producer puts it (murmur2). Those without one fill a batch of
one partition, then one of the next. With acks=-1 the batches are numbered, if the broker takes
that (from Kafka 0.11 on), so none is stored twice. An older broker gets messages of the format that
it knows.

Source: Kafka KafkaProducer, BuiltInPartitioner, RecordAccumulator; KIP-98, KIP-480, KIP-679.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.patience import Patience
from minibroker.client.produce import (
    ALL_REPLICAS,
    IN_FLIGHT_MAX,
    OutgoingBatch,
    ProduceLimits,
    ProduceQueue,
)
from minibroker.client.produce import VERSIONS as V2_VERSIONS
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.kafka.records.batch import add_to_sequence
from minibroker.kafka.records.builder import build_batch, seal_batch
from minibroker.kafka.records.bulk import RECORDS_MAX, encode_records
from minibroker.kafka.records.compression import CODEC_IDS, NONE, compress
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.partitioner import partition_of
from minibroker.kafka.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from minibroker.client.client import Client, PartitionLeader

INIT_VERSIONS: Final = (0, 4)
BATCH_BYTES: Final = 900_000
"""Bytes of keys, values and headers of a batch, about: below the max.message.bytes of a topic."""
_OVERHEAD_BYTES: Final = 20
"""Bytes of a record beside its content, about."""
MAKING_S: Final = 30.0
"""Time for brokers to make a topic that is written to."""
_KEYS_KEPT: Final = 1 << 16
"""Keys whose partitions are remembered."""
_MAKING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
"""Errors of a topic that a broker makes just now."""


class WriteOptions(NamedTuple):
    """The way in which records are written."""

    acks: int = ALL_REPLICAS
    codec: str = "none"
    level: int | None = None
    """Level of the codec, None: its default."""
    is_idempotent: bool = True
    """Batches are numbered, with acks=-1 and from Kafka 0.11 on."""
    patience_s: float = 120.0
    """Time without an acknowledgement after which it has failed (delivery.timeout.ms)."""
    batch_bytes: int = BATCH_BYTES


class _PartitionBatch:
    """Records of a partition that are not sent yet: whole ones, or values and perhaps keys."""

    __slots__ = ("keys", "records", "size_bytes", "values")

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = None
        self.records: list[Record] = []
        self.size_bytes = 0

    @property
    def count(self) -> int:
        return len(self.records) or len(self.values)


class TopicWriter:
    """Writes records to a topic; used by one thread. `open` makes one."""

    def __init__(
        self,
        client: Client,
        topic: str,
        options: WriteOptions,
        on_written: Callable[[TopicPartition, int, int], None] | None = None,
    ) -> None:
        """`on_written` takes a partition, the first offset of records that are stored there (-1:
        unknown) and their count.
        """
        self._client = client
        self._topic = topic
        self._options = options
        self._on_written = on_written
        self._codec = CODEC_IDS[options.codec]
        self._count = 0
        """Partitions of the topic."""
        self._magic = 2
        self._producer = (-1, -1)
        """Producer id and epoch; -1: batches are not numbered."""
        self._sequences: dict[int, int] = {}
        self._batches: dict[int, _PartitionBatch] = {}
        self._keyless = 0
        """The partition of records without a key, until its batch is full."""
        self._partition_of_key: dict[bytes, int] = {}
        self._queue: ProduceQueue
        self.written = 0
        """Records that are acknowledged."""

    @classmethod
    def open(
        cls,
        client: Client,
        topic: str,
        options: WriteOptions,
        on_written: Callable[[TopicPartition, int, int], None] | None = None,
    ) -> TopicWriter:
        """Return a writer; a topic that is missing is waited for, if brokers make it (`Client`).

        Raises:
            KafkaError: there is no such topic, or it may not be written.
            OSError, ProtocolError, ConfigError: as `Client.leader`.
        """
        writer = cls(client, topic, options, on_written)
        writer._start()
        return writer

    @property
    def topic(self) -> str:
        """Return the name of the topic."""
        return self._topic

    def _start(self) -> None:
        options = self._options
        leader = self._first_leader()
        self._keyless = random.randrange(self._count)
        connection = self._client.connection(leader.address)
        newest = connection.version_for(ProduceRequest, 0, V2_VERSIONS[1])
        self._client.give_back(connection)
        self._magic = 2 if newest >= V2_VERSIONS[0] else min(newest, 2) // 2
        if self._magic < 2 and options.codec == "zstd":
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs a broker from Kafka 2.1 on"
            )
        versions = V2_VERSIONS if self._magic == 2 else (0, newest)
        if options.acks == ALL_REPLICAS and options.is_idempotent and self._magic == 2:
            self._producer = self._new_producer()
        limits = ProduceLimits(
            IN_FLIGHT_MAX, options.batch_bytes, options.patience_s, options.acks, versions
        )
        self._queue = ProduceQueue(self._client, None, limits, self._take_written)

    def _first_leader(self) -> PartitionLeader:
        """Return the leader of partition 0, once there is one; take the number of partitions."""
        patience = Patience(min(self._options.patience_s, MAKING_S))
        is_new = False
        while True:
            try:
                leader = self._client.leader(self._topic, 0)
                self._count = self._client.partition_count(self._topic)
                break
            except KafkaError as error:
                is_new = self._client.creates_topics and error.code in _MAKING
                if not is_new or patience.is_over:
                    raise
            patience.pause()
        if is_new:
            from minibroker.client import admin  # noqa: PLC0415  seldom needed

            places = [TopicPartition(self._topic, number) for number in range(self._count)]
            admin.wait_until_served(self._client, places, patience)
        return leader

    def _new_producer(self) -> tuple[int, int]:
        """Return a producer id and its epoch, -1 and -1 if the broker has none.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        patience = Patience(self._options.patience_s)
        while True:
            try:
                answer = self._client.ask_any(request, InitProducerIdResponse, INIT_VERSIONS)
            except BrokerRefusedError:
                return (-1, -1)
            code = ErrorCode(answer.error_code)
            if not code:
                return (answer.producer_id, answer.producer_epoch)
            if not code.retriable or patience.is_over:
                raise KafkaError(code, "an id of a producer, for idempotence")
            patience.pause()

    # Records.

    def add_values(self, values: Sequence[bytes | None]) -> None:
        """Write values without keys, dated now. Raises KafkaError, OSError, ProtocolError,
        ConfigError.
        """
        start = 0
        while start < len(values):
            batch = self._batch(self._keyless, has_records=False)
            room = min(RECORDS_MAX - batch.count, len(values) - start)
            fitting = self._fitting(batch, values, start, start + room)
            batch.values += values[start:fitting] if start or fitting < len(values) else values
            if batch.keys is not None:
                batch.keys += [None] * (fitting - start)
            start = fitting
            if start < len(values) or self._is_full(batch):
                self._send([self._keyless])

    def _fitting(
        self, batch: _PartitionBatch, values: Sequence[bytes | None], start: int, stop: int
    ) -> int:
        """Return the end of the values that fit into a batch, at least one into an empty batch."""
        room = self._options.batch_bytes - batch.size_bytes
        for at in range(start, stop):
            size = _OVERHEAD_BYTES + len(values[at] or b"")
            if size > room and (batch.count or at > start):
                return at
            room -= size
            batch.size_bytes += size
        return stop

    def add_pair(self, key: bytes | None, value: bytes | None) -> None:
        """Write a record with a key, dated now. Raises KafkaError, OSError, ProtocolError,
        ConfigError.
        """
        partition = self._keyless if key is None else self._partition_of(key)
        size = _OVERHEAD_BYTES + len(value or b"") + len(key or b"")
        batch = self._room(partition, size, has_records=False)
        if batch.keys is None:
            batch.keys = [None] * len(batch.values)
        batch.keys.append(key)
        batch.values.append(value)
        batch.size_bytes += size
        if self._is_full(batch):
            self._send([partition])

    def add(self, record: Record, partition: int | None = None) -> None:
        """Write a record with its timestamp and headers.

        Args:
            record: its offset does not count.
            partition: None: the one of its key.

        Raises KafkaError for a partition that the topic does not have, and as `flush`.
        """
        key = record.key
        if partition is None:
            partition = self._keyless if key is None else self._partition_of(key)
        elif partition >= self._count:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {self._topic} has partitions 0 to {self._count - 1}, not {partition}",
            )
        if record.headers and self._magic < 2:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                "headers need a broker from Kafka 0.11 on",
            )
        size = _OVERHEAD_BYTES + len(record.value or b"") + len(key or b"")
        size += sum(len(name) + len(value or b"") + 10 for name, value in record.headers)
        batch = self._room(partition, size, has_records=True)
        batch.records.append(record)
        batch.size_bytes += size
        if self._is_full(batch):
            self._send([partition])

    def _partition_of(self, key: bytes) -> int:
        partition = self._partition_of_key.get(key)
        if partition is None:
            if len(self._partition_of_key) >= _KEYS_KEPT:
                self._partition_of_key.clear()
            partition = self._partition_of_key[key] = partition_of(key, self._count)
        return partition

    def _room(self, partition: int, size: int, *, has_records: bool) -> _PartitionBatch:
        """Return the batch of a partition, with room for `size` bytes unless it is empty."""
        batch = self._batch(partition, has_records=has_records)
        if batch.count and batch.size_bytes + size > self._options.batch_bytes:
            self._send([partition])
            batch = self._batch(partition, has_records=has_records)
        return batch

    def _batch(self, partition: int, *, has_records: bool) -> _PartitionBatch:
        batch = self._batches.get(partition)
        if batch is not None and (batch.values if has_records else batch.records):
            self._send([partition])
            batch = None
        if batch is None:
            batch = self._batches[partition] = _PartitionBatch()
        return batch

    def _is_full(self, batch: _PartitionBatch) -> bool:
        return batch.count >= RECORDS_MAX or batch.size_bytes >= self._options.batch_bytes

    # Batches.

    def push(self) -> None:
        """Send what is gathered, without waiting until it is acknowledged. Raises KafkaError,
        OSError, ProtocolError, ConfigError.
        """
        self._send(list(self._batches))

    def flush(self) -> None:
        """Send what is gathered, and wait until every record is acknowledged.

        Raises:
            KafkaError: a broker refuses records, or a partition is not there.
            OSError: no broker answers for `patience_s`, or it takes no login.
            ProtocolError: answers are malformed, again and again.
            ConfigError: the settings of TLS.
        """
        self.push()
        self._queue.flush()

    def close(self) -> None:
        """Give the connections back; records that are not flushed may be lost."""
        self._queue.close()

    def __enter__(self) -> TopicWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, partitions: Iterable[int]) -> None:
        outgoing = []
        for partition in partitions:
            batch = self._batches.pop(partition, None)
            if batch is not None and batch.count:
                outgoing.append(self._outgoing(partition, batch))
            if partition == self._keyless:
                self._keyless = (partition + 1) % self._count
        if outgoing:
            self._queue.send(outgoing)

    def _outgoing(self, partition: int, batch: _PartitionBatch) -> OutgoingBatch:
        place, count, now_ms = TopicPartition(self._topic, partition), batch.count, _now_ms()
        if self._magic < 2:
            return OutgoingBatch(place, self._message_set(batch, now_ms), count)
        producer_id, epoch = self._producer
        sequence = -1
        if producer_id >= 0:
            sequence = self._sequences.get(partition, 0)
            self._sequences[partition] = add_to_sequence(sequence, count)
        if batch.records:
            encoded = build_batch(
                batch.records,
                codec=self._options.codec,
                level=self._options.level,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
            )
            return OutgoingBatch(place, encoded, count)
        payload = encode_records(batch.values, batch.keys)
        if self._codec != NONE:
            payload = compress(self._codec, payload, self._options.level)
        encoded = seal_batch(
            payload,
            attributes=self._codec,
            base_offset=0,
            leader_epoch=-1,
            last_delta=count - 1,
            timestamps=(now_ms, now_ms),
            producer=(producer_id, epoch, sequence),
            count=count,
        )
        return OutgoingBatch(place, encoded, count)

    def _message_set(self, batch: _PartitionBatch, now_ms: int) -> bytearray:
        """Return the records as messages of format 0 or 1, which have no headers."""
        keys = batch.keys or [None] * len(batch.values)
        records = [
            record._replace(offset=at, headers=()) for at, record in enumerate(batch.records)
        ] or [
            Record(at, now_ms, key, value)
            for at, (key, value) in enumerate(zip(keys, batch.values, strict=True))
        ]
        return bytearray(build_message_set(records, magic=self._magic, codec=self._codec))

    def _take_written(self, batch: OutgoingBatch, first_offset: int) -> None:
        self.written += batch.rows
        if self._on_written is not None:
            self._on_written(batch.place, first_offset, batch.rows)


def _now_ms() -> int:
    return SystemClock().now_ms()
