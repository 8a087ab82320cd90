"""One transaction of one task of the sink: rows and the task's marker, both or neither.

    open ──► fences every older writer of this task and ends what it left open
    read_marker ──► what this task wrote last, in transactions that are over
    begin ── send ── send ── … ── commit(marker)
    close ──► aborts what is not committed

The order of the first two is what makes a marker trustworthy: whoever could still write it has
been fenced before it is read. `sink_marker` says where markers are.

librdkafka delivers in the background; what fails there fails the transaction and is raised by
`commit`.
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
from minibroker.pipeline.sink_marker import Marker, parse_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from minibroker.pipeline.sink_columns import Arguments
    from minibroker.pipeline.sink_marker import Position
    from minibroker.pipeline.sink_options import SinkOptions

CARRIER_PARTITION: Final = 0
ANSWER_TIMEOUT_S: Final = 60.0
"""A broker that is started again has this long."""
ATTEMPT_TIMEOUT_S: Final = 10.0
"""Of a question to a coordinator: one that a busy broker has lost is asked again."""
TOPIC_WAIT_S: Final = 30.0
"""A busy broker may need some seconds to make a topic."""
QUEUE_WAIT_S: Final = 0.01
"""While librdkafka's queue is full."""
PENDING_WAIT_S: Final = 0.02
"""While the group's coordinator still applies a transaction that has ended."""
FAILED_BEFORE: Final = (KafkaError._FATAL, KafkaError._STATE)
"""What librdkafka says of a record when something has ended its transaction."""
STARTING_COORDINATOR: Final = (
    KafkaError._TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)
GONE_LEADERS: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)

_quiet = logging.getLogger("minibroker.pipeline.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class Transaction:
    """A task's producer; used as `with Transaction(…) as transaction`, by one task, once."""

    def __init__(self, options: SinkOptions, position: Position) -> None:
        self._options = options
        self._position = position
        self._is_begun = False
        self._last_error = ""
        settings = {**options.settings, "transactional.id": position.name, "logger": _quiet}
        try:
            self._producer = Producer({**settings, "error_cb": self._on_error})
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
        """Become the one writer of this task.

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
        """A topic that is being made, or moves to a restarted broker, gets time for that."""
        deadline = monotonic() + TOPIC_WAIT_S
        while (error := self._ask()) is not None:
            if monotonic() >= deadline:
                raise PipelineError(
                    f"there is no topic {self._options.topic!r} at {self._options.brokers} "
                    f"({error.str()}): create it or check its name"
                )
            self._producer.poll(PENDING_WAIT_S)

    def _ask(self) -> Any:
        """The broker's error for the topic; None: it is there, or rows say where they go."""
        topic = self._options.topic
        try:
            found = self._producer.list_topics(topic or "", ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise self._failure(error) from error
        return found.topics[topic].error if topic is not None else None

    def read_marker(self, topic: str) -> Marker | None:
        """What this task wrote last. Raises PipelineError: see `read_marker` below."""
        return read_marker(self._options, self._position.name, topic)

    def write_marker(self, marker: Marker) -> None:
        """A marker without rows, in a transaction of its own. Raises PipelineError."""
        self.begin()
        self.commit(marker)

    def begin(self) -> None:
        """From now on `send` counts. Raises PipelineError when another writer took over."""
        self._call(self._producer.begin_transaction)
        self._is_begun = True

    def send(self, rows: Iterable[Arguments]) -> None:
        """Queue rows; waits while the queue is full.

        Raises:
            PipelineError: one cannot be sent, or the transaction has failed in the background.
        """
        produce = self._producer.produce
        try:
            for row in rows:
                try:
                    produce(*row)
                except BufferError:
                    self._send_when_possible(row)
        except KafkaException as error:
            if error.args[0].code() in FAILED_BEFORE:
                self._call(self._producer.begin_transaction)  # says why there is none any more
            raise self._failure(error) from error

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
        """Everything that was sent becomes visible together with `marker`.

        Raises:
            PipelineError: it did not; nothing of it is visible.
        """
        group: dict[str, Any] = {"group.id": self._position.name, "logger": _quiet}
        consumer = Consumer({**self._options.connection, **group})
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
        """Abort what is open and leave.

        A broker that does not answer, or a fenced producer, cannot abort: then the transaction
        ends when this task runs again, or by its time-out.
        """
        if self._is_begun:
            self._is_begun = False
            try:
                self._producer.abort_transaction(ANSWER_TIMEOUT_S)
            except KafkaException as error:
                _quiet.warning("%s is not aborted: %s", self._position, error)
        with warnings.catch_warnings():
            # It tries to abort once more, and warns when that fails as it has failed above.
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                self._producer.close()
            except KafkaException as error:
                _quiet.warning("%s: %s", self._position, error)

    def _until_done(self, call: Callable[[], object], deadline: float) -> None:
        """librdkafka goes on where a call that timed out left."""
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


def explain(error: Any, position: Position, options: SinkOptions, last_error: str) -> str:
    """The sentence for a `KafkaError`; `last_error` is what the connection said before."""
    code = error.code()
    if code in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}:
        return (
            f"{position} was taken over by another writer of this name: let one query at a time "
            "run on a checkpoint"
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
            f"{position} has a record that is too large ({error.str()}): raise the option "
            '"kafka.message.max.bytes" and the topic\'s max.message.bytes'
        )
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return (
            f"the brokers do not allow transactions of {options.settings['transaction.timeout.ms']}"
            ' ms: lower the option "kafka.transaction.timeout.ms" to their '
            "transaction.max.timeout.ms"
        )
    return f"{position} is not written: {error.str()} ({error.name()})"


def read_marker(options: SinkOptions, group: str, topic: str) -> Marker | None:
    """The newest marker of a task's group; one that is committed and still pending is waited for.

    Args:
        group: `Position.name_of` the task.
        topic: where the first marker would be: a group without offsets does not show by itself
            that one is pending.

    Raises:
        PipelineError: no broker answers, or the group may not be read.
    """
    settings: dict[str, Any] = {**options.connection, "logger": _quiet}
    admin = AdminClient(settings)
    first = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, CARRIER_PARTITION)])
    deadline = monotonic() + ANSWER_TIMEOUT_S
    while True:
        found = _committed(admin, options, ConsumerGroupTopicPartitions(group), deadline)
        found = found or _committed(admin, options, first, deadline)
        pending = [one for one in found if one.error is not None]
        if not pending:
            break
        if monotonic() >= deadline:
            raise PipelineError(
                f"the committed offset of group {group} is not readable: {pending[0].error.str()}"
            )
        admin.poll(PENDING_WAIT_S)
    markers = [
        parse_marker(one.topic, one.offset, one.metadata) for one in found if one.offset >= 0
    ]
    return max(markers, key=lambda one: one.next_batch, default=None)


def _committed(
    admin: AdminClient,
    options: SinkOptions,
    request: ConsumerGroupTopicPartitions,
    deadline: float,
) -> list[Any]:
    """Asked again while the group's coordinator is looked for, starts or does not answer."""
    while True:
        futures = admin.list_consumer_group_offsets(
            [request], require_stable=True, request_timeout=ATTEMPT_TIMEOUT_S
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
