"""The first records of ranges of many partitions, from few requests: a look, and no reading.

    ranges ─► a Fetch for each leader ─► batches ─► the first records of each range

A partition with an error gets no records here: the task that reads it reports it. An answer has
room for some large batches; partitions without a part in it are asked for again, until all have one
or the time is over.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from minibroker.client.fetch import read_batches
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.message_set import decode_message
from minibroker.kafka.records.record import Record, decode_records
from minibroker.pipeline.kafka.source.first_answers import answers_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.client.client import Client
    from minibroker.client.settings import ClientSettings
    from minibroker.kafka.protocol.messages.fetch import PartitionData
    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange

PARTITION_BYTES: Final = 64 << 10
"""Bytes of one partition in an answer, unless one batch has more."""
WAIT_S: Final = 2.0
"""Longest look; what has come until then counts."""


def sample(
    options: SourceOptions,
    settings: ClientSettings,
    client: Client,
    spans: Sequence[OffsetRange],
    records_max: int,
) -> Iterator[tuple[OffsetRange, list[Record]]]:
    """Yield ranges with the first records in them, `records_max` of each at most, in any order.

    A range begins later where there is no record to see at its start.

    Args:
        options: of the source: what a reader sees, and the ids that topics must have.
        settings: of the client.
        client: to ask with.
        spans: ranges of different partitions.
        records_max: most records of a range.
    """
    settings = settings._replace(rack="")  # a leader with a nearer replica sends no records
    until_s = time.monotonic() + WAIT_S
    windows = [whole] if (whole := [span for span in spans if span.size > 0]) else []
    while windows and time.monotonic() < until_s:
        window = windows.pop(0)
        answers = answers_together(
            options, settings, client, window, partition_bytes=PARTITION_BYTES
        )
        rest = []
        for span in window:
            answer = answers.get(TopicPartition(span.topic, span.partition))
            if answer is None:
                rest.append(span)
                continue
            try:
                records, next_offset = _records(options, answer, span, records_max)
            except CorruptionError:
                continue
            if records:
                yield span, records
            elif span.start < next_offset < span.end:
                # Markers, or records of transactions that were aborted: ask behind them.
                rest.append(span._replace(start=next_offset))
        if answers and rest:
            windows.append(rest)
        elif len(rest) > 1:  # one may have no leader: the others are asked for without it
            windows += [rest[::2], rest[1::2]]


def _records(
    options: SourceOptions, answer: PartitionData, span: OffsetRange, records_max: int
) -> tuple[list[Record], int]:
    """Return the first records of an answer in a range, and the offset behind the answer.

    Raises CorruptionError: the broker sends damaged bytes.
    """
    is_committed = options.isolation_level == "read_committed"
    aborted = [
        (transaction.producer_id, transaction.first_offset)
        for transaction in answer.aborted_transactions or ()
    ]
    fetched = read_batches(answer.records or b"", aborted if is_committed else ())
    records: list[Record] = []
    for batch in fetched.data:
        decode = decode_records if batch.header.magic == 2 else decode_message
        records += [
            record
            for record in decode(batch.content, header=batch.header)
            if span.start <= record.offset < span.end
        ]
        if len(records) >= records_max:
            break
    return records[:records_max], fetched.next_offset or span.start
