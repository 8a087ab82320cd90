"""What a task does: read one range of offsets of one partition, exactly to its end.

The end was the end of the partition, or its last stable offset, when the driver planned. What lies
before it may hold no record: compaction leaves gaps, a transaction ends with a marker, and an
aborted one is skipped by a reader of committed data. So the task is through when it has seen a
record at or behind the end, or when the broker says that it has given all there is up to it
(librdkafka's partition EOF, whose offset counts what was skipped; its `position()` does not).

    Consumer ──messages──► ColumnBuilder ──Arrow batches──► Spark
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from minibroker.pipeline.consumer import range_consumer
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.reader_columns import ColumnBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from confluent_kafka import Consumer

    from minibroker.pipeline.offsets import OffsetRange
    from minibroker.pipeline.options import SourceOptions

MESSAGES_MAX: Final = 2_000
"""Of one call; more than fit in the caches cost twice as much each."""
WAIT_S: Final = 0.05
"""For a call to be full; a shorter rest of a range waits no longer than this."""
SUSPICION_S: Final = 1.0
"""After a silence so long the broker is asked whether it still has the partition, and again after
twice and four times that."""
TIMES_UNKNOWN: Final = 3
"""In a row, until that is believed: a broker that has just started knows no topic for a moment."""

_ERROR = Message.error

_GONE: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)
_PASSING: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""librdkafka goes on trying; and of the group, which it asks about unbidden, nothing is needed."""


def read_range(options: SourceOptions, one: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of `one` in order, in batches of `reader_columns.ROWS_MAX` at most.

    Raises:
        PipelineError: records of the range are gone and `failOnDataLoss` is on; the broker
            refused; nothing came for `kafkaConsumer.pollTimeoutMs`.
    """
    if one.size <= 0:
        return
    reader = _RangeReader(options, one)
    # Nothing made here forms a cycle, and looking for some takes a tenth of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        yield from reader.batches()
    finally:
        if collects:
            gc.enable()
        reader.close()


class _RangeReader:
    """One consumer and how far it is."""

    def __init__(self, options: SourceOptions, one: OffsetRange) -> None:
        self._options = options
        self._range = one
        self._position = one.start
        self._last_error: KafkaError | None = None
        self._suspicion_s = SUSPICION_S
        self._times_unknown = 0
        self._patience_s = options.poll_timeout_ms / 1000
        self._consumer: Consumer = range_consumer(options, one, self._note_error)

    def close(self) -> None:
        """Leave the broker; no offset is committed."""
        self._consumer.close()

    def _note_error(self, error: KafkaError) -> None:
        self._last_error = error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See `read_range`."""
        one = self._range
        columns = ColumnBuilder(
            one.topic, one.partition, include_headers=self._options.include_headers
        )
        heard_s = time.monotonic()
        while self._position < one.end:
            before = self._position
            wanted = min(MESSAGES_MAX, columns.room, one.end - before)
            records = self._records_of(self._consumer.consume(wanted, WAIT_S))
            if records:
                columns.add(records)
                if columns.is_full:
                    yield columns.take()
            if self._position > before:
                # After the batch was taken: that Spark was slow is not the broker's silence.
                heard_s = time.monotonic()
            else:
                self._on_silence(time.monotonic() - heard_s)
        if columns.rows:
            yield columns.take()

    def _records_of(self, messages: list[Message]) -> list[Message]:
        """Those within the range; moves the position over them and over what the broker skipped."""
        end = self._range.end
        reached = self._position
        if any(map(_ERROR, messages)):
            for message in messages:
                error = message.error()
                if error is not None:
                    reached = max(reached, self._offset_after(error, message))
            messages = [message for message in messages if message.error() is None]
        if messages:
            last = _offset_of(messages[-1])
            if last >= end:
                messages = [message for message in messages if _offset_of(message) < end]
            reached = max(reached, last + 1)
        self._position = reached
        return messages

    def _offset_after(self, error: KafkaError, message: Message) -> int:
        """How far the partition is read according to an event; raises if it says that it is not."""
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            return _offset_of(message)
        if code in _GONE:
            return self._go_on_after_loss(error)
        if code in _PASSING or error.retriable():
            self._last_error = error
            return self._position
        raise PipelineError(f"cannot read {self._where()}: {error.str()}")

    def _go_on_after_loss(self, error: KafkaError) -> int:
        """The first offset of the range that is still there, or its end."""
        if self._options.fail_on_data_loss:
            raise PipelineError(
                f"records of {self._where()} are gone ({error.str()}): they were deleted by "
                "retention, or the topic was made anew; start behind them, or set "
                "failOnDataLoss=false to go on without them"
            )
        one = self._range
        partition = TopicPartition(one.topic, one.partition)
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return one.end
        try:
            first, _ = self._consumer.get_watermark_offsets(partition, timeout=self._patience_s)
        except KafkaException as failure:
            if failure.args[0].code() in _GONE:
                return one.end
            raise PipelineError(
                f"cannot find what is left of {self._where()}: {failure.args[0].str()}"
            ) from failure
        if not self._position < first < one.end:
            return one.end
        partition.offset = first
        self._consumer.assign([partition])
        return first

    def _on_silence(self, silent_s: float) -> None:
        """Find out why nothing comes; raises when that has lasted too long."""
        if silent_s >= self._suspicion_s:
            self._suspicion_s *= 2
            self._times_unknown = 0 if self._is_known() else self._times_unknown + 1
            if self._times_unknown >= TIMES_UNKNOWN:
                self._position = self._go_on_after_loss(
                    KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
                )
                return
        if silent_s < self._patience_s:
            return
        why = f"; the client's last word: {self._last_error.str()}" if self._last_error else ""
        raise PipelineError(
            f"nothing came for {silent_s:.0f} s (kafkaConsumer.pollTimeoutMs) while reading "
            f"{self._where()}{why}; is the broker up, and does the topic still reach that far?"
        )

    def _is_known(self) -> bool:
        """Whether the partition exists: of one that does not librdkafka says nothing."""
        one = self._range
        try:
            topic = self._consumer.list_topics(one.topic, timeout=SUSPICION_S).topics[one.topic]
        except KafkaException as error:
            self._last_error = error.args[0]
            return True
        if topic.error is not None:
            return topic.error.code() not in _GONE
        return one.partition in topic.partitions

    def _where(self) -> str:
        one = self._range
        return (
            f"{one.topic}-{one.partition} from offset {self._position} to before offset {one.end}"
        )


def _offset_of(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "a message of a partition has an offset"
    return offset
