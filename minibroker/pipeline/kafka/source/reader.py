"""The work of a task: read one range of offsets of one partition, exactly to its end.

The end is the end of the partition, or its last stable offset, at the time of planning. There may
be no record just before it: compaction leaves gaps, a transaction ends with a marker, and a reader
of committed data skips aborted transactions. So a task is done when it has seen a record at or
behind the end, or when the broker reports that no more records precede it. That report is
librdkafka's partition EOF: its offset counts skipped records, `position()` does not.

    Consumer ──messages──► ColumnBuilder ──Arrow batches──► Spark
"""

from __future__ import annotations

import gc
import logging
import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from minibroker.client.client import Client
from minibroker.client.settings import UnservedError, wire_settings
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.pacing import paced
from minibroker.pipeline.kafka.source import range_losses
from minibroker.pipeline.kafka.source.consumer import range_consumer
from minibroker.pipeline.kafka.source.first_answers import first_answers
from minibroker.pipeline.kafka.source.range_reader import read_span
from minibroker.pipeline.kafka.source.reader_columns import ColumnBuilder
from minibroker.pipeline.kafka.source.topics import made_anew
from minibroker.pipeline.kafka.task_process import prepare_for_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from confluent_kafka import Consumer

    from minibroker.client.settings import ClientSettings
    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange

MESSAGES_MAX: Final = 2_000
"""Messages of one call; more than fit into the caches cost twice as much each."""
WAIT_S: Final = 0.05
"""Longest wait of one call for its messages."""
SUSPICION_S: Final = 1.0
"""Silence after which the broker is asked whether it still has the partition.

It is asked again after twice and four times that.
"""
TIMES_UNKNOWN: Final = 3
"""Answers "unknown" in a row until that is believed.

A broker that has just started knows no topic for a moment.
"""

_ERROR = Message.error

logger = logging.getLogger(__name__)
_told: set[str] = set()
"""Reasons for librdkafka that this process has logged."""

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
"""Errors that need no action: librdkafka goes on trying, or asks about a group that nobody needs.
"""


def read_ranges(options: SourceOptions, ranges: Iterable[OffsetRange]) -> Iterator[pa.RecordBatch]:
    """Yield the records of the ranges of a task, one range after the other, each in order.

    Batches have some ten thousand rows or some MiB. With `maxBytesPerSecond` it is not faster than
    the share of one task.

    Raises:
        PipelineError: records of a range are gone and `failOnDataLoss` is on; the broker refused;
            nothing came for `kafkaConsumer.pollTimeoutMs`; `fetchWith=wire` cannot be.
    """
    prepare_for_tasks()
    settings = _wire_settings(options)
    if settings is None:
        spans = [span for span in ranges if span.size > 0]
        for span in spans:
            yield from paced(_read_range(options, span), options.task_bytes_per_second)
        _check_same_topics(options, spans)
        return
    client = Client(settings)
    for span, told in first_answers(options, settings, client, list(ranges)):
        batches = read_span(options, settings, client, span, told)
        yield from paced(batches, options.task_bytes_per_second)


def read_range(options: SourceOptions, span: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Do `read_ranges` for one range."""
    return read_ranges(options, [span])


def _check_same_topics(options: SourceOptions, spans: Sequence[OffsetRange]) -> None:
    """Raise PipelineError if a topic was made anew while librdkafka read it: it knows no ids."""
    anew = made_anew(options, {span.topic for span in spans})
    for span in spans:
        if span.topic in anew:
            raise PipelineError(range_losses.made_anew(span, span.start))


def _wire_settings(options: SourceOptions) -> ClientSettings | None:
    """Return the settings of our own client, None where librdkafka reads. Raises PipelineError."""
    if options.fetch_with == "librdkafka":
        return None
    try:
        return wire_settings(options.settings)
    except UnservedError as reason:
        if options.fetch_with == "wire":
            raise PipelineError(f"option fetchWith=wire: {reason}") from reason
        if str(reason) not in _told:
            _told.add(str(reason))
            logger.info("records are read with librdkafka: %s", reason)
        return None


def _read_range(options: SourceOptions, span: OffsetRange) -> Iterator[pa.RecordBatch]:
    reader = _RangeReader(options, span)
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
    """One consumer and its position."""

    def __init__(self, options: SourceOptions, span: OffsetRange) -> None:
        self._options = options
        self._range = span
        self._position = span.start
        self._last_error: KafkaError | None = None
        self._suspicion_s = SUSPICION_S
        self._times_unknown = 0
        self._patience_s = options.poll_timeout_ms / 1000
        self._consumer: Consumer = range_consumer(options, span, self._note_error)

    def close(self) -> None:
        """Close the consumer; no offset is committed."""
        self._consumer.close()

    def _note_error(self, error: KafkaError) -> None:
        self._last_error = error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of `read_range`."""
        span = self._range
        columns = ColumnBuilder(
            span.topic, span.partition, include_headers=self._options.include_headers
        )
        heard_s = time.monotonic()
        while self._position < span.end:
            before = self._position
            wanted = min(MESSAGES_MAX, columns.room, span.end - before)
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
        """Return the messages within the range; move the position over them and over skipped
        offsets.
        """
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
        """Return the offset that an event says is reached. Raises PipelineError for an error."""
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
        """Return the first offset of the range that still exists, or its end."""
        if self._options.fail_on_data_loss:
            raise PipelineError(range_losses.gone(self._range, self._position, error.str()))
        span = self._range
        partition = TopicPartition(span.topic, span.partition)
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return span.end
        try:
            first, _ = self._consumer.get_watermark_offsets(partition, timeout=self._patience_s)
        except KafkaException as failure:
            if failure.args[0].code() in _GONE:
                return span.end
            raise PipelineError(
                f"cannot find what is left of {self._where()}: {failure.args[0].str()}"
            ) from failure
        if not self._position < first < span.end:
            return span.end
        partition.offset = first
        self._consumer.assign([partition])
        return first

    def _on_silence(self, silent_s: float) -> None:
        """Find out why no message comes. Raises PipelineError if that has lasted too long."""
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
        said = self._last_error.str() if self._last_error else ""
        raise PipelineError(range_losses.silent(self._range, self._position, silent_s, said))

    def _is_known(self) -> bool:
        """Return whether the partition exists: librdkafka is silent about a missing one."""
        span = self._range
        try:
            topic = self._consumer.list_topics(span.topic, timeout=SUSPICION_S).topics[span.topic]
        except KafkaException as error:
            self._last_error = error.args[0]
            return True
        if topic.error is not None:
            return topic.error.code() not in _GONE
        return span.partition in topic.partitions

    def _where(self) -> str:
        return range_losses.where(self._range, self._position)


def _offset_of(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "a message of a partition has an offset"
    return offset
