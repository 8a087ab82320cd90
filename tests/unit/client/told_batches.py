"""Batches for tests that read an answer of a broker."""

from __future__ import annotations

from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record


def batch(offset: int, count: int = 1, producer: int = -1) -> bytes:
    """A batch of records without content; with a producer it is of a transaction."""
    records = [Record(offset + number, 1, None, None) for number in range(count)]
    return bytes(
        build_batch(
            records,
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
            is_transactional=producer >= 0,
            leader_epoch=5,
        )
    )
