"""One transaction of one task of the sink: the rows and the task's marker, both or neither.

    open ──► fences every older writer of this task and ends what it left open
    read_marker ──► what this task wrote last, in transactions that are over
    begin ── send_batch ── send_batch ── … ── commit(marker)
    close ──► aborts what is not committed

The first two come in this order, so that a marker can be trusted: every other writer of it is
fenced before it is read. `marker` says where markers are. Whole batches go to the brokers:

    Arrow batch ─► encoding ─► record batches with sequence numbers ─► client.produce
                                                marker ─► client.transactions
"""

from __future__ import annotations

import logging
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.client import admin
from minibroker.client.client import CLIENT_ERRORS, Client
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.patience import Patience
from minibroker.client.produce import OutgoingBatch, ProduceQueue
from minibroker.client.transactions import ProducerSession
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import SEQUENCE_MAX, TRANSACTIONAL_FLAG
from minibroker.kafka.records.builder import seal_batch
from minibroker.kafka.records.compression import NONE, compress
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.columns import BY_KEY
from minibroker.pipeline.kafka.sink.encoding import RowsToSend, encode, encode_headers
from minibroker.pipeline.kafka.sink.marker import parse_marker
from minibroker.pipeline.kafka.sink.partitions import partitions_of
from minibroker.pipeline.kafka.sink.producer_settings import producer_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from minibroker.client.groups import GroupOffset
    from minibroker.pipeline.kafka.sink.columns import Columns
    from minibroker.pipeline.kafka.sink.delivered_places import DeliveredPlaces
    from minibroker.pipeline.kafka.sink.encoding import EncodedRecords
    from minibroker.pipeline.kafka.sink.marker import Marker, Position
    from minibroker.pipeline.kafka.sink.options import SinkOptions

CARRIER_PARTITION: Final = 0
ANSWER_TIMEOUT_S: Final = 60.0
"""Time for an answer: enough for a broker that is started again."""
TOPIC_WAIT_S: Final = 30.0
"""Time for a topic: a busy broker may need some seconds to make it."""
BLOCK_BYTES: Final = 16 << 20
"""Bytes of rows that are encoded at once, at least one row: Spark's Arrow batches have 10,000 rows,
too few for a hundred partitions.
"""
_END: Final = "\0"
"""Earlier versions wrote with librdkafka, which ends metadata so and needs that to read them."""
_TAKEN_OVER: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})

logger = logging.getLogger(__name__)


class _WaitingRows(NamedTuple):
    """An Arrow batch that is not encoded yet."""

    batch: pa.RecordBatch
    headers: object
    """The last of `columns.columns`."""


class Transaction:
    """A producer of a task; used once, as `with Transaction(…) as transaction`."""

    def __init__(self, options: SinkOptions, position: Position) -> None:
        """Raise PipelineError for wrong settings."""
        self._options = options
        self._position = position
        self._settings = settings = producer_settings(options.settings)
        self._client = Client(settings.connection, creates_topics=True)
        self._session = ProducerSession(
            self._client, position.name, settings.transaction_timeout_ms
        )
        self._queue = ProduceQueue(self._client, position.name, settings.limits, self._on_written)
        self._places: DeliveredPlaces | None = None
        self._sequences: dict[TopicPartition, int] = {}
        """The next sequence number of each partition that the transaction has."""
        self._added: set[TopicPartition] = set()
        self._checked_topics: set[str] = set()
        """Topics whose partitions were asked for."""
        self._waiting: list[_WaitingRows] = []
        self._waiting_bytes = 0
        """Size of the rows in `_waiting`; above `BLOCK_BYTES` only if they came in one batch."""
        self._is_begun = False

    def __enter__(self) -> Self:
        """Become the only writer of this task.

        Raises:
            PipelineError: no broker answers, or the topic is missing.
        """
        with self._explained():
            self._check_topic()
            self._session.initialise(time.monotonic() + ANSWER_TIMEOUT_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_topic(self) -> None:
        """Wait for the topic of all rows, which may be in the making. Raises PipelineError."""
        topic = self._options.topic
        if topic is None:
            return
        try:
            self._count(topic)
        except KafkaError as error:
            raise PipelineError(
                f"there is no topic {topic!r} at {self._options.brokers} ({error.code.meaning}): "
                "create it or check its name"
            ) from error

    def read_marker(self, topic: str) -> Marker | None:
        """Return the last marker of this task; wait for one that is committed and still pending.

        `topic` is that of the first marker: a group without offsets does not show a pending one by
        itself. Raises PipelineError.
        """
        carrier = TopicPartition(topic, CARRIER_PARTITION)
        with self._explained():
            return newest_of(
                self._session.committed_offsets(carrier, time.monotonic() + ANSWER_TIMEOUT_S)
            )

    def write_marker(self, marker: Marker) -> None:
        """Write a marker without rows, in a transaction of its own. Raises PipelineError."""
        self.begin()
        self.commit(marker)

    def begin(self) -> None:
        """Begin the transaction for `send_batch`."""
        self._is_begun = True
        self._added.clear()
        self._waiting, self._waiting_bytes = [], 0

    def send_batch(
        self, batch: pa.RecordBatch, row_columns: Columns, places: DeliveredPlaces | None
    ) -> None:
        """Send the rows of an Arrow batch, or keep them until there are `BLOCK_BYTES`, or `flush`.

        Waits while enough of them are on their way.

        Args:
            batch: with the columns of `columns`.
            row_columns: `columns.columns` of it, whose headers are used.
            places: takes the offsets that the rows get.

        Raises:
            PipelineError: a row cannot be sent.
        """
        if not batch.num_rows:
            return
        self._places = places
        if self._waiting_bytes + batch.nbytes > BLOCK_BYTES:
            self._send_waiting()
        self._waiting.append(_WaitingRows(batch, row_columns[-1]))
        self._waiting_bytes += batch.nbytes

    def flush(self) -> None:
        """Send what is left and wait until every record is acknowledged. Raises PipelineError."""
        self._send_waiting()
        with self._explained():
            self._queue.flush()

    def commit(self, marker: Marker) -> None:
        """Make everything that was sent visible together with `marker`.

        Raises:
            PipelineError: the commit failed; no row is visible.
        """
        deadline = time.monotonic() + self._settings.transaction_timeout_ms / 1000
        self.flush()
        with self._explained():
            carrier = TopicPartition(marker.topic, CARRIER_PARTITION)
            self._session.commit_offset(
                self._position.name, carrier, marker.next_batch, marker.metadata + _END, deadline
            )
            self._session.commit(deadline)
        self._is_begun = False

    def close(self) -> None:
        """Abort an open transaction and give the connections back.

        A broker that does not answer, or a fenced producer, cannot abort: then the transaction
        ends when this task runs again, or by its time-out.
        """
        self._queue.close()
        if not self._is_begun:
            return
        self._is_begun = False
        try:
            self._session.abort(time.monotonic() + ANSWER_TIMEOUT_S)
        except CLIENT_ERRORS as error:
            logger.warning("%s is not aborted: %s", self._position, error)

    # Rows.

    def _send_waiting(self) -> None:
        """Send the rows that wait. Raises PipelineError."""
        if not self._waiting:
            return
        headers = _headers(self._waiting)
        table = pa.Table.from_batches([waiting.batch for waiting in self._waiting])
        (batch,) = table.combine_chunks().to_batches()
        size_bytes = self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0
        with self._explained():
            rows = self._rows(batch, headers)
            step = max(1, batch.num_rows * BLOCK_BYTES // max(1, size_bytes))
            for start in range(0, batch.num_rows, step):
                self._send(rows.part(start, step))

    def _rows(self, batch: pa.RecordBatch, headers: pa.Array | None) -> RowsToSend:
        """Return the rows with their partitions. Raises KafkaError."""
        names = batch.schema.names
        keys = _binary(batch["key"]) if "key" in names else None
        topics: Any = self._options.topic
        if topics is None:
            topics = batch["topic"].cast(pa.string())
        return RowsToSend(
            topics=topics,
            partitions=self._partitions(batch, topics, keys),
            keys=keys,
            values=_binary(batch["value"]),
            times=_times(batch),
            headers=headers,
        )

    def _partitions(self, batch: pa.RecordBatch, topics: Any, keys: pa.Array | None) -> pa.Array:
        """Return the partition of each row: its own, or the one of its key."""
        own = pa.nulls(batch.num_rows, pa.int32())
        if "partition" in batch.schema.names:
            own = batch["partition"].cast(pa.int32())
            own = pc.if_else(pc.equal(own, BY_KEY), pa.scalar(None, pa.int32()), own)
        if isinstance(topics, str):
            return self._of_topic(topics, own, keys)
        partitions = pa.nulls(batch.num_rows, pa.int32())
        for topic in topics.unique().to_pylist():
            is_there = pc.equal(topics, topic)
            some = None if keys is None else keys.filter(is_there)
            numbers = self._of_topic(topic, own.filter(is_there), some)
            partitions = pc.replace_with_mask(partitions, is_there, numbers)
        return partitions

    def _of_topic(self, topic: str, own: pa.Array, keys: pa.Array | None) -> pa.Array:
        count = self._count(topic)
        bounds = pc.min_max(own)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if high is not None and (low < 0 or high >= count):
            wrong = low if low < 0 else high
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{wrong}"
            )
        if own.null_count == 0:
            return own
        if keys is not None:
            own = pc.coalesce(own, partitions_of(keys, count))
        if own.null_count:
            # Rows without a key go together, as with a producer's sticky partition.
            own = pc.fill_null(own, random.choice(self._client.led_partitions(topic)))
        return own

    def _count(self, topic: str) -> int:
        """Return how many partitions a topic has; wait for one that is being made.

        Raises:
            KafkaError: nobody makes it.
            OSError, ProtocolError, ConfigError: as `Client.leader`.
        """
        if topic in self._checked_topics:
            return self._client.partition_count(topic)
        patience = Patience(TOPIC_WAIT_S)
        self._client.forget(topic)
        is_new = False
        while True:
            try:
                count = self._client.partition_count(topic)
                break
            except KafkaError as error:
                if not error.code.retriable or patience.is_over:
                    raise
            is_new = True
            patience.pause()
        if is_new:
            places = [TopicPartition(topic, number) for number in range(count)]
            admin.wait_until_served(self._client, places, patience)
        self._checked_topics.add(topic)
        return count

    def _send(self, rows: RowsToSend) -> None:
        size_bytes_max = min(self._settings.batch_bytes, self._queue.accepted_bytes)
        encoded = list(encode(rows, size_bytes_max, self._settings.batch_records))
        new = {records.place for records in encoded} - self._added
        if new:
            deadline = time.monotonic() + self._settings.limits.patience_s
            self._session.add_partitions(sorted(new), deadline)
            self._added |= new
        self._queue.send([self._sealed(records) for records in encoded])

    def _sealed(self, records: EncodedRecords) -> OutgoingBatch:
        """Return a batch with the next sequence number of its partition."""
        if len(records.payload) > self._settings.record_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{len(records.payload)} bytes, at most {self._settings.record_bytes}",
            )
        payload: bytes | memoryview = records.payload
        if self._settings.codec != NONE:
            payload = compress(self._settings.codec, payload, self._settings.level)
        sequence = self._sequences.get(records.place, 0)
        self._sequences[records.place] = (sequence + records.rows) % (SEQUENCE_MAX + 1)
        sealed = seal_batch(
            payload,
            attributes=self._settings.codec | TRANSACTIONAL_FLAG,
            base_offset=0,
            leader_epoch=-1,
            last_delta=records.rows - 1,
            timestamps=(records.base_time_ms, records.max_time_ms),
            producer=(self._session.producer_id, self._session.epoch, sequence),
            count=records.rows,
        )
        return OutgoingBatch(records.place, sealed, records.rows)

    def _on_written(self, batch: OutgoingBatch, first: int) -> None:
        if self._places is not None:
            self._places.note_batch(batch.place, first, batch.rows)

    # Errors.

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise PipelineError for what the client raises."""
        try:
            yield
        except KafkaError as error:
            raise PipelineError(refusal(error, self._position, self._options)) from error
        except (BrokerRefusedError, ConfigError) as error:
            raise PipelineError(f"{self._position} is not written: {error}") from error
        except (OSError, ProtocolError) as error:
            raise PipelineError(
                f"no broker answers at {self._options.brokers} ({error}): start one or check the "
                'option "kafka.bootstrap.servers"'
            ) from error


def refusal(error: KafkaError, position: Position, options: SinkOptions) -> str:
    """Return the sentence for an error of a broker."""
    code, reason = error.code, error.detail or error.code.meaning
    timeout_ms = options.settings["transaction.timeout.ms"]
    if code in _TAKEN_OVER:
        return (
            f"{position} was taken over by another writer of this name, or its transaction was "
            f"open for more than {timeout_ms} ms: let one query at a time run on a checkpoint, and "
            'let batches be small enough for "kafka.transaction.timeout.ms"'
        )
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return (
            f"{position} writes to a topic or partition that is not there ({reason}): create the "
            "topic, with enough partitions, or change the columns 'topic' and 'partition'"
        )
    if code == ErrorCode.MESSAGE_TOO_LARGE:
        return (
            f"{position} has a record that is too large ({reason}): raise the topic's "
            'max.message.bytes, and the option "kafka.message.max.bytes" where it is lower'
        )
    if code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return (
            f"the brokers do not allow transactions of {timeout_ms} ms: lower the option "
            '"kafka.transaction.timeout.ms" to their transaction.max.timeout.ms'
        )
    return f"{position} is not written: {reason} ({code.name})"


def newest_of(offsets: Iterable[GroupOffset]) -> Marker | None:
    """Return the newest marker among the committed offsets of a task's group.

    A task may have markers at several topics.
    """
    markers = [
        parse_marker(place.topic, place.offset, place.metadata.rstrip(_END)) for place in offsets
    ]
    return max(markers, key=lambda marker: marker.next_batch, default=None)


def _headers(waiting: list[_WaitingRows]) -> pa.Array | None:
    """Return the encoded headers of all rows, None if no row has one."""
    rows: list[list[tuple[str, bytes | None]] | None] = []
    for batch, headers in waiting:
        rows += headers if isinstance(headers, list) else [None] * batch.num_rows
    return pa.array(map(encode_headers, rows), pa.binary()) if any(rows) else None


def _binary(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    return column.cast(pa.large_binary()) if pa.types.is_large_string(column.type) else column


def _times(batch: pa.RecordBatch) -> pa.Array | int:
    """Return the times of the rows, in ms: of writing where a row has none, as in `columns`."""
    now_ms = SystemClock().now_ms()
    if "timestamp" not in batch.schema.names:
        return now_ms
    column = batch["timestamp"]
    times = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    return pc.if_else(pc.greater(pc.fill_null(times, 0), 0), times, now_ms)
