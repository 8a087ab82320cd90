"""One range of offsets, fetched as whole batches and decoded column by column.

    Client ──Fetch──► batches ──► record_columns ──► Arrow batches

The next answer is on its way while this one is decoded. In memory are one answer, what the kernel
holds of the next one, and one chunk of columns.

A task is done when it has seen the batch before the end of its range or behind it, or when the
broker has nothing left and says that its records reach to the end: compaction leaves gaps.
`source.reader` says what the end of a range is.

Source: Kafka Fetcher, AbstractFetch, OffsetFetcher; KIP-227 (no session here), KIP-320, KIP-392,
KIP-516.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from minibroker.client.answer_parts import part_of
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.fetch import read_batches
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, CorruptionError, KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
)
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.segments.record_columns import Chunk, LegacyChunk, rows_within
from minibroker.pipeline.kafka.source.first_answers import (
    LAST_EPOCH_FROM,
    MADE_ANEW,
    OLDEST,
    fetch_request,
    is_made_anew,
    newest_for,
    parts_by_place,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from minibroker.client.client import Client, PartitionLeader
    from minibroker.client.connection import BlockingConnection
    from minibroker.client.settings import ClientSettings
    from minibroker.kafka.protocol.messages.fetch import PartitionData
    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.stored_batch import StoredBatch
    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange

CHUNK_BYTES: Final = 4 << 20
CHUNK_RECORDS: Final = 20_000
"""Content of one Arrow batch, at least, before it is handed on, unless the range ends."""
PAUSE_S: Final = 0.1
UNKNOWN_PAUSES_S: Final = (1.0, 2.0, 4.0)
"""Pauses after answers that do not know the partition: a broker that has just started knows no
topic for a moment. After the last one the answer is believed.
"""
EMPTY_MAX: Final = 2
"""Answers without records, though the broker's records reach to the end, until that is believed."""


class _MadeAnewError(Exception):
    """The topic was deleted and made again: its offsets are those of other records."""


_TOPIC_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


def read_span(
    options: SourceOptions,
    settings: ClientSettings,
    client: Client,
    span: OffsetRange,
    answer: PartitionData | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of `span` in order, no empty batches.

    `answer` is the answer of `first_answers` for its start, if there is one.

    Raises PipelineError for records that are gone or damaged, and for a silent broker.
    """
    reader = _SpanReader(options, settings, client, span, answer)
    try:
        for rows in reader.batches():
            if rows.num_rows:
                yield rows
    finally:
        reader.close()


class _SpanReader:
    """The position in one range; used by one thread."""

    def __init__(
        self,
        options: SourceOptions,
        settings: ClientSettings,
        client: Client,
        span: OffsetRange,
        first_answer: PartitionData | None,
    ) -> None:
        self._options = options
        self._settings = settings
        self._client = client
        self._range = span
        self._first_answer = first_answer
        """An answer that has not been looked at."""
        self._position = self._first = self._skipped_to = span.start
        """The next offset to fetch; the first one that counts in what is decoded next, for a batch
        may begin before it; and where that moves because records are gone.
        """
        self._schema = schemas.arrow_schema(include_headers=options.include_headers)
        self._connection: BlockingConnection | None = None
        self._leader: PartitionLeader | None = None
        self._follower: tuple[str, int] | None = None
        """A replica nearer than the leader, which the leader names (KIP-392)."""
        self._epoch = -1
        """PartitionLeader epoch of the last batch, -1: none."""
        self._checks_epoch = False
        """True after another leader was found: its log may have been cut."""
        self._resumes_at_s = 0.0
        """When the broker takes the next request, by its quota."""
        self._heard_s = time.monotonic()
        self._last_error = ""
        """The last error."""
        self._times_unknown = 0
        self._times_empty = 0

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._client.give_back(self._connection)
            self._connection = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of `read_span`."""
        chunk: Chunk | LegacyChunk = Chunk(keeps_far_times=True)
        while self._position < self._range.end:
            batches = self._next()
            if self._skipped_to > self._first:
                if chunk.count:
                    yield self._rows(chunk)
                self._first = self._skipped_to
            for batch in batches:
                chunk_class = Chunk if batch.header.magic == 2 else LegacyChunk
                is_full = chunk.size_bytes >= CHUNK_BYTES or chunk.count >= CHUNK_RECORDS
                if chunk.count and (is_full or not isinstance(chunk, chunk_class)):
                    yield self._rows(chunk)
                if not isinstance(chunk, chunk_class):
                    chunk = chunk_class(keeps_far_times=True)
                self._add(chunk, batch)
            if batches:
                # After the rows were taken: that Spark was slow is not the broker's silence.
                self._heard_s = time.monotonic()
        if chunk.count:
            yield self._rows(chunk)

    def _add(self, chunk: Chunk | LegacyChunk, batch: StoredBatch) -> None:
        try:
            chunk.add(batch)
        except CorruptionError as error:
            raise self._damaged(error) from error

    def _rows(self, chunk: Chunk | LegacyChunk) -> pa.RecordBatch:
        include_headers = self._options.include_headers
        try:
            columns = chunk.take_columns(include_headers=include_headers)
        except CorruptionError as error:
            raise self._damaged(error) from error
        span = self._range
        return rows_within(
            columns, self._schema, (span.topic, span.partition), self._first, span.end
        )

    def _damaged(self, error: CorruptionError) -> PipelineError:
        rest = _rest_of(self._range, self._position)
        return PipelineError(f"cannot read {rest}: {error}; what the broker sends is damaged")

    # Answers.

    def _next(self) -> list[StoredBatch]:
        """Return the data batches of the next answer, none after an error that passes.

        Moves the position behind them and asks for more. Raises PipelineError.
        """
        start = self._position
        batches: list[StoredBatch] = []
        try:
            batches = self._batches_of(self._answer())
            if self._position < self._range.end:
                self._send()
        except _MadeAnewError:
            if self._options.topic_ids.get(self._range.topic):
                sentence = _made_anew_text(self._range, self._position)
                raise PipelineError(sentence) from None
            self._lose(MADE_ANEW)
            self._position = self._range.end
        except KafkaError as error:
            self._on_error(error)
        except (BrokerRefusedError, ConfigError) as error:
            raise PipelineError(f"the broker cannot be read: {error}") from error
        except CorruptionError as error:
            raise self._damaged(error) from error
        except (OSError, ProtocolError) as error:
            self._drop(str(error))
        if self._position > start:
            self._heard_s = time.monotonic()
            self._times_unknown = self._times_empty = 0
        else:
            self._check_patience()
        return batches

    def _answer(self) -> PartitionData | None:
        """Return what the broker says about the partition, None over its quota.

        Raises OSError, KafkaError, ProtocolError, ConfigError.
        """
        if self._first_answer is not None:
            part, self._first_answer = self._first_answer, None
            return part
        self._send()
        assert self._connection is not None
        answer = self._connection.receive()
        self._resumes_at_s = time.monotonic() + answer.throttle_time_ms / 1000
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), "Fetch")
        if not answer.responses:
            return None
        assert self._leader is not None
        place = TopicPartition(self._range.topic, self._range.partition)
        return part_of(parts_by_place(answer, {self._leader.topic_id: place.topic}), place)

    def _batches_of(self, part: PartitionData | None) -> list[StoredBatch]:
        """Return the data batches of an answer; move the position. Raises KafkaError."""
        if part is None:
            return []
        if part.error_code:
            raise KafkaError(ErrorCode(part.error_code), "Fetch")
        if part.preferred_read_replica >= 0 and not part.records:
            self._follow(part.preferred_read_replica)
            return []
        if part.diverging_epoch is not None and part.diverging_epoch.end_offset >= 0:
            self._lose(f"another leader's log ends at offset {part.diverging_epoch.end_offset}")
        self._checks_epoch = False
        committed = self._options.isolation_level == "read_committed"
        aborted = [
            (transaction.producer_id, transaction.first_offset)
            for transaction in part.aborted_transactions or ()
        ]
        batches = read_batches(part.records or b"", aborted if committed else ())
        if batches.next_offset is None:
            self._on_nothing(part, committed=committed)
            return []
        self._epoch = batches.epoch
        self._position = max(self._position, batches.next_offset)
        return [batch for batch in batches.data if self._has_records(batch.header)]

    def _follow(self, broker_id: int) -> None:
        """Go on at the replica that the leader names, or at the leader if nobody knows it."""
        self._follower = self._client.broker(self._range.topic, broker_id)
        if self._follower is None:
            self._client.forget(self._range.topic)
            threading.Event().wait(PAUSE_S)
        self.close()

    def _has_records(self, header: BatchHeader) -> bool:
        """Return whether records of the batch may be in the range: an answer goes beyond it."""
        if header.last_offset < self._range.start:
            return False
        # In formats 0 and 1 only the last offset of a compressed message is in its header.
        return header.magic < 2 or header.base_offset < self._range.end

    def _on_nothing(self, part: PartitionData, *, committed: bool) -> None:
        """Go to the end of the range if there is no record before it any more."""
        reach = part.last_stable_offset if committed else part.high_watermark
        if reach < self._range.end:
            return
        self._times_empty += 1
        if self._times_empty >= EMPTY_MAX:
            self._position = self._range.end

    # Requests.

    def _send(self) -> None:
        """Ask for what comes at the position, unless an answer is on its way.

        Raises OSError, KafkaError, ProtocolError, ConfigError.
        """
        if self._connection is not None and self._connection.is_waiting:
            return
        pause_s = self._resumes_at_s - time.monotonic()
        if pause_s > 0:
            threading.Event().wait(pause_s)
        if self._connection is not None and self._connection.is_retired:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._find_leader()
        connection, leader = self._connection, self._leader
        assert connection is not None
        assert leader is not None
        version = connection.version_for(FetchRequest, OLDEST, newest_for(leader))
        connection.send(self._request(leader, version), FetchResponse, version)

    def _find_leader(self) -> None:
        span, last_leader = self._range, self._leader
        leader = self._client.leader(span.topic, span.partition)
        if is_made_anew(self._options, span.topic, leader):
            self._client.forget(span.topic)  # what this process knows may be about the old one
            leader = self._client.leader(span.topic, span.partition)
        is_another = last_leader is not None and leader.topic_id != last_leader.topic_id
        if is_another or is_made_anew(self._options, span.topic, leader):
            raise _MadeAnewError
        self._leader = leader
        self._checks_epoch = last_leader is not None and leader.epoch != last_leader.epoch
        self._connection = self._client.connection(self._follower or leader.address)

    def _request(self, leader: PartitionLeader, version: int) -> FetchRequest:
        checks = self._checks_epoch and version >= LAST_EPOCH_FROM
        epoch = self._epoch if checks else -1
        spans = [(self._range._replace(start=self._position), leader)]
        return fetch_request(self._options, self._settings, spans, version, last_epoch=epoch)

    # Errors.

    def _on_error(self, error: KafkaError) -> None:
        """Do what an error of the broker asks for. Raises PipelineError."""
        self._last_error = str(error)
        if self._follower is not None:  # it may be behind, or gone: the leader decides
            self._follower = None
            self.close()
            threading.Event().wait(PAUSE_S)
            return
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._lose(error.code.name)
            self._go_to_what_is_left()
            return
        if error.code not in _TOPIC_ERRORS and not error.code.retriable:
            rest = _rest_of(self._range, self._position)
            raise PipelineError(f"cannot read {rest}: {error.code.name}")
        if error.code in _TOPIC_ERRORS:
            self._times_unknown += 1
            if self._times_unknown > len(UNKNOWN_PAUSES_S):
                self._lose(error.code.name)
                self._position = self._range.end
                return
            pause_s = UNKNOWN_PAUSES_S[self._times_unknown - 1]
        else:
            self._times_unknown, pause_s = 0, PAUSE_S
        self._client.forget(self._range.topic)
        self.close()
        threading.Event().wait(pause_s)

    def _drop(self, reason: str) -> None:
        """Leave a connection that has ended, or cannot be understood."""
        self._last_error = reason
        self._follower = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._client.forget(self._range.topic)
        threading.Event().wait(PAUSE_S)

    def _lose(self, reason: str) -> None:
        """Raise PipelineError for records that are gone, unless the options allow that."""
        if self._options.fail_on_data_loss:
            raise PipelineError(_loss_text(self._range, self._position, reason))

    def _go_to_what_is_left(self) -> None:
        """Move to the first offset of the range that still exists, or to its end."""
        try:
            first = self._client.earliest(self._range.topic, self._range.partition)
        except (KafkaError, OSError, ProtocolError) as error:
            self._drop(str(error))  # the next answer is the same, and asks again
            return
        is_inside = self._position < first < self._range.end
        self._position = self._skipped_to = first if is_inside else self._range.end

    def _check_patience(self) -> None:
        silent_s = time.monotonic() - self._heard_s
        if silent_s >= self._options.poll_timeout_ms / 1000:
            raise PipelineError(
                _silence_text(self._range, self._position, silent_s, self._last_error)
            )


def _rest_of(span: OffsetRange, position: int) -> str:
    """Return the part of a range that is not read yet."""
    return f"{span.topic}-{span.partition} from offset {position} to before offset {span.end}"


def _loss_text(span: OffsetRange, position: int, reason: str) -> str:
    """Return the sentence for records that are gone; `reason`: the broker's error."""
    return (
        f"records of {_rest_of(span, position)} are gone ({reason}): they were deleted by "
        "retention, or the topic was made anew; start behind them, or set failOnDataLoss=false to "
        "go on without them"
    )


def _made_anew_text(span: OffsetRange, position: int) -> str:
    """Return the sentence for a topic that has another id than the one that the job reads."""
    return (
        f"records of {_rest_of(span, position)} are gone: the topic was made anew; give the same "
        "command again, which says how to go on"
    )


def _silence_text(span: OffsetRange, position: int, silent_s: float, last_error: str) -> str:
    """Return the sentence for a broker that sends nothing; `last_error` may be empty."""
    why = f"; the client's last word: {last_error}" if last_error else ""
    return (
        f"nothing came for {silent_s:.0f} s (kafkaConsumer.pollTimeoutMs) while reading "
        f"{_rest_of(span, position)}{why}; is the broker up, and does the topic still "
        "reach that far?"
    )
