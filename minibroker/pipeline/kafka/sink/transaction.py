"""One transaction of one task of the sink: the rows and the task's marker, both or neither.

    open ──► fences every older writer of this task and ends what it left open
    read_marker ──► what this task wrote last, in transactions that are over
    begin ── send ── send ── … ── commit(marker)
    close ──► aborts what is not committed

The first two come in this order, so that a marker can be trusted: every other writer of it is
fenced before it is read. `marker` says where markers are.

The tasks' own client writes (`wire_transaction`); this one does, with librdkafka, where a setting
or a login is librdkafka's alone. librdkafka delivers in the background. A failure there fails the
transaction, and `commit` raises it.
"""

from __future__ import annotations

import logging
import warnings
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import with_token
from minibroker.pipeline.kafka.sink.columns import rows_of
from minibroker.pipeline.kafka.sink.marker import Marker, parse_marker
from minibroker.pipeline.kafka.sink.options import RECORD_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    import pyarrow as pa

    from minibroker.pipeline.kafka.sink.columns import Arguments, Columns
    from minibroker.pipeline.kafka.sink.delivered_places import DeliveredPlaces
    from minibroker.pipeline.kafka.sink.marker import Position
    from minibroker.pipeline.kafka.sink.options import SinkOptions

CARRIER_PARTITION: Final = 0
ANSWER_TIMEOUT_S: Final = 60.0
"""Time for an answer: enough for a broker that is started again."""
ATTEMPT_TIMEOUT_S: Final = 10.0
"""Time for one question to a coordinator: a busy broker may lose one, then it is asked again."""
TOPIC_WAIT_S: Final = 30.0
"""Time for a topic: a busy broker may need some seconds to make it."""
QUEUE_WAIT_S: Final = 0.01
"""Wait for room in librdkafka's queue."""
PENDING_WAIT_S: Final = 0.02
"""Wait for the group's coordinator to apply a transaction that has ended."""
FAILED_BEFORE: Final = (KafkaError._FATAL, KafkaError._STATE)
"""librdkafka's errors for a record whose transaction has ended for another reason."""
STARTING_COORDINATOR: Final = (
    KafkaError._TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)
GONE_LEADERS: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)

logger = logging.getLogger("minibroker.pipeline.librdkafka")
logger.addHandler(logging.NullHandler())
logger.propagate = False


class Transaction:
    """A producer of a task; used once, as `with Transaction(…) as transaction`."""

    def __init__(self, options: SinkOptions, position: Position) -> None:
        self._options = options
        self._position = position
        self._is_begun = False
        self._last_error = ""
        settings = {
            "message.max.bytes": RECORD_BYTES_MAX,
            **options.settings,
            "transactional.id": position.name,
            "logger": logger,
        }
        try:
            self._producer = Producer(with_token({**settings, "error_cb": self._on_error}))
        except KafkaException as error:
            raise PipelineError(
                f"the sink's producer does not take its settings: {error.args[0].str()}; see the "
                "options kafka.*"
            ) from error

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> None:
        """Become the only writer of this task.

        Raises:
            PipelineError: no broker answers, or the topic is missing.
        """
        deadline = monotonic() + ANSWER_TIMEOUT_S
        # librdkafka leaves its bootstrap connection after the first answer. Asked again, it is on
        # the connection that stays; not asked, the next call waits 500 ms for its timer.
        self._ask()
        self._check_topic()
        self._until_done(
            lambda: self._producer.init_transactions(max(1.0, deadline - monotonic())), deadline
        )

    def _check_topic(self) -> None:
        """Wait for a topic that is being made, or that moves to a restarted broker."""
        deadline = monotonic() + TOPIC_WAIT_S
        while (error := self._ask()) is not None:
            if monotonic() >= deadline:
                raise no_topic(self._options, error.str())
            self._producer.poll(PENDING_WAIT_S)

    def _ask(self) -> Any:
        """Return the broker's error for the topic, None if it exists or if rows name topics."""
        topic = self._options.topic
        try:
            found = self._producer.list_topics(topic or "", ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise self._failure(error) from error
        return found.topics[topic].error if topic is not None else None

    def read_marker(self, topic: str) -> Marker | None:
        """Return the last marker of this task. Raises PipelineError: see `read_marker` below."""
        return read_marker(self._options, self._position.name, topic)

    def write_marker(self, marker: Marker) -> None:
        """Write a marker without rows, in a transaction of its own. Raises PipelineError."""
        self.begin()
        self.commit(marker)

    def begin(self) -> None:
        """Begin the transaction for `send`. Raises PipelineError if another writer took over."""
        self._call(self._producer.begin_transaction)
        self._is_begun = True

    def send_batch(
        self, batch: pa.RecordBatch, found: Columns, places: DeliveredPlaces | None
    ) -> None:
        """Queue the rows of an Arrow batch, as `send`.

        Args:
            batch: with the columns of `columns`.
            found: `columns.columns` of it.
            places: takes the offsets that the rows get.
        """
        rows = rows_of(found)
        self.send(rows if places is None else places.noting(batch, rows))

    def send(self, rows: Iterable[Arguments]) -> None:
        """Queue rows; waits while the queue is full.

        Raises:
            PipelineError: a row cannot be sent, or the transaction has failed in the background.
        """
        produce = self._producer.produce
        try:
            for row in rows:
                try:
                    produce(*row)
                except BufferError:
                    self._send_when_possible(row)
            self._producer.poll(0)  # takes reports, where somebody asked for them
        except KafkaException as error:
            if error.args[0].code() in FAILED_BEFORE:
                self._call(self._producer.begin_transaction)  # says why there is none any more
            raise self._failure(error) from error

    def flush(self) -> None:
        """Wait until every record is delivered, with its report. Raises PipelineError."""
        timeout_s = float(self._options.settings["transaction.timeout.ms"]) / 1000
        if left := self._producer.flush(timeout_s):
            raise PipelineError(
                f"{self._options.brokers} takes no more records of {self._position}, {left} are "
                f"left: {self._reason()}"
            )

    def _send_when_possible(self, row: Arguments) -> None:
        deadline = monotonic() + float(self._options.settings["transaction.timeout.ms"]) / 1000
        while monotonic() < deadline:
            self._producer.poll(QUEUE_WAIT_S)
            try:
                return self._producer.produce(*row)
            except BufferError:
                continue
        raise PipelineError(
            f"{self._options.brokers} takes no records of {self._position}: {self._reason()}"
        )

    def commit(self, marker: Marker) -> None:
        """Make everything that was sent visible together with `marker`.

        Raises:
            PipelineError: the commit failed; no row is visible.
        """
        group: dict[str, Any] = {"group.id": self._position.name, "logger": logger}
        consumer = Consumer(with_token({**self._options.connection, **group}))
        try:
            metadata = consumer.consumer_group_metadata()
        finally:
            consumer.close()
        carrier = TopicPartition(
            marker.topic, CARRIER_PARTITION, marker.next_batch, marker.metadata
        )
        timeout_s = float(self._options.settings["transaction.timeout.ms"]) / 1000
        deadline = monotonic() + timeout_s
        self._until_done(
            lambda: self._producer.send_offsets_to_transaction([carrier], metadata, timeout_s),
            deadline,
        )
        self._until_done(lambda: self._producer.commit_transaction(timeout_s), deadline)
        self._is_begun = False

    def close(self) -> None:
        """Abort an open transaction and close the producer.

        A broker that does not answer, or a fenced producer, cannot abort: then the transaction
        ends when this task runs again, or by its time-out.
        """
        if self._is_begun:
            self._is_begun = False
            try:
                self._producer.abort_transaction(ANSWER_TIMEOUT_S)
            except KafkaException as error:
                logger.warning("%s is not aborted: %s", self._position, error)
        with warnings.catch_warnings():
            # It tries to abort once more, and warns when that fails as it has failed above.
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                self._producer.close()
            except KafkaException as error:
                logger.warning("%s: %s", self._position, error)

    def _until_done(self, call: Callable[[], object], deadline: float) -> None:
        """Repeat a call that timed out: librdkafka goes on where the last call stopped."""
        while True:
            try:
                call()
            except KafkaException as error:
                if error.args[0].retriable() and monotonic() < deadline:
                    continue
                raise self._failure(error) from error
            return

    def _call(self, call: Callable[[], object]) -> None:
        self._until_done(call, 0.0)

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()

    def _reason(self) -> str:
        return self._last_error or "no answer"

    def _failure(self, error: KafkaException) -> PipelineError:
        return PipelineError(explain(error.args[0], self._position, self._options, self._reason()))


def no_topic(options: SinkOptions, reason: str) -> PipelineError:
    """Return the error about the topic of all rows, which is not there; `reason`: the broker's."""
    return PipelineError(
        f"there is no topic {options.topic!r} at {options.brokers} ({reason}): create it or check "
        "its name"
    )


def explain(error: Any, position: Position, options: SinkOptions, last_error: str) -> str:
    """Return the sentence for a `KafkaError`; `last_error` is the connection's error before it."""
    code = error.code()
    if code in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}:
        return (
            f"{position} was taken over by another writer of this name, or its transaction was "
            f"open for more than {options.settings['transaction.timeout.ms']} ms: let one query "
            "at a time run on a checkpoint, and let batches be small enough for "
            '"kafka.transaction.timeout.ms"'
        )
    if code in {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}:
        return (
            f"no broker answers at {options.brokers} ({last_error}): start one or check the "
            'option "kafka.bootstrap.servers"'
        )
    if code in {KafkaError._UNKNOWN_PARTITION, *GONE_LEADERS}:
        return (
            f"{position} writes to a topic or partition that is not there ({error.str()}): create "
            "the topic, with enough partitions, or change the columns 'topic' and 'partition'"
        )
    if code in {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}:
        return (
            f"{position} has a record that is too large ({error.str()}): raise the topic's "
            'max.message.bytes, and the option "kafka.message.max.bytes" where it is lower'
        )
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return (
            f"the brokers do not allow transactions of {options.settings['transaction.timeout.ms']}"
            ' ms: lower the option "kafka.transaction.timeout.ms" to their '
            "transaction.max.timeout.ms"
        )
    return f"{position} is not written: {error.str()} ({error.name()})"


def read_marker(options: SinkOptions, group: str, topic: str) -> Marker | None:
    """Return the newest marker of a task's group; wait for one that is committed and still pending.

    Args:
        group: `Position.name_of` the task.
        topic: the topic of the first marker: a group without offsets does not show a pending one by
            itself.

    Raises:
        PipelineError: no broker answers, or the group may not be read.
    """
    settings = with_token({**options.connection, "logger": logger})
    admin = AdminClient(settings)
    first = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, CARRIER_PARTITION)])
    deadline = monotonic() + ANSWER_TIMEOUT_S
    while True:
        whole = ConsumerGroupTopicPartitions(group)
        found = _committed(admin, options, whole, deadline, is_stable=True)
        found = found or _committed(admin, options, first, deadline, is_stable=True)
        pending = [partition for partition in found if partition.error is not None]
        if not pending:
            break
        if monotonic() >= deadline:
            raise PipelineError(
                f"the committed offset of group {group} is not readable: {pending[0].error.str()}"
            )
        admin.poll(PENDING_WAIT_S)
    return _newest_of(found)


def last_markers(options: SinkOptions, groups: Iterable[str]) -> Iterator[Marker | None]:
    """Yield the newest marker of each group, whatever is pending. Raises as `read_marker`."""
    admin = AdminClient(with_token({**options.connection, "logger": logger}))
    for group in groups:
        deadline = monotonic() + ANSWER_TIMEOUT_S
        whole = ConsumerGroupTopicPartitions(group)
        yield _newest_of(_committed(admin, options, whole, deadline, is_stable=False))


def _newest_of(found: Iterable[Any]) -> Marker | None:
    return newest_marker(
        parse_marker(partition.topic, partition.offset, partition.metadata)
        for partition in found
        if partition.offset >= 0
    )


def newest_marker(markers: Iterable[Marker]) -> Marker | None:
    """Return the marker of the latest batch; a task may have markers at several topics."""
    return max(markers, key=lambda marker: marker.next_batch, default=None)


def _committed(
    admin: AdminClient,
    options: SinkOptions,
    request: ConsumerGroupTopicPartitions,
    deadline: float,
    *,
    is_stable: bool,
) -> list[Any]:
    """Return committed offsets; ask again while the coordinator is unknown, starts or is silent.

    `is_stable`: partitions of open transactions have an error in place of an offset.
    """
    while True:
        futures = admin.list_consumer_group_offsets(
            [request], require_stable=is_stable, request_timeout=ATTEMPT_TIMEOUT_S
        )
        try:
            return list(futures[request.group_id].result().topic_partitions)
        except KafkaException as error:
            if error.args[0].code() in STARTING_COORDINATOR and monotonic() < deadline:
                admin.poll(PENDING_WAIT_S)
                continue
            raise PipelineError(
                f"the committed offset of group {request.group_id} is not readable at "
                f"{options.brokers}: {error.args[0].str()}"
            ) from error
