"""A batch on its way to a broker, and its division where the topic takes only smaller ones.

The parts have the sequence numbers of their records, so the batches behind them keep theirs.

Source: Kafka ProducerBatch.split; KIP-126.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.kafka.records.batch import add_to_sequence, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.record import decode_records

if TYPE_CHECKING:
    from minibroker.kafka.ids import TopicPartition


class OutgoingBatch(NamedTuple):
    """A batch with its number in the sequence of its partition."""

    where: TopicPartition
    records: bytearray
    rows: int


def parts_of(batch: OutgoingBatch, size_bytes_max: int) -> list[OutgoingBatch]:
    """Return the records of a batch in smaller batches, in order, at least two.

    Args:
        batch: of two records or more.
        size_bytes_max: of a part, about: the parts have equal numbers of records, one at least.
    """
    header = read_header(batch.records)
    records = decode_records(batch.records, header=header)
    wanted = max(2, -(-len(batch.records) // size_bytes_max))
    step = max(1, len(records) // wanted)
    return [
        OutgoingBatch(
            batch.where,
            build_batch(
                records[start : start + step],
                codec=CODEC_NAMES[header.codec],
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=add_to_sequence(header.base_sequence, start),
                is_transactional=header.is_transactional,
            ),
            len(records[start : start + step]),
        )
        for start in range(0, len(records), step)
    ]
