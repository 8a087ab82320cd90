"""A summary of record batches inside a request or an answer: counts, offsets, producer.

`subject` shows it in place of the records. No record is decompressed or copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_BYTES,
    LENGTH_FIELD_END,
    MAGIC_AT,
    TRANSACTIONAL_FLAG,
    iterate_headers,
)
from minibroker.kafka.records.compression import CODEC_NAMES, NONE
from minibroker.kafka.records.control import read_marker

if TYPE_CHECKING:
    from minibroker.kafka.protocol.primitives import Buffer
    from minibroker.kafka.records.batch import BatchHeader

BATCHES_MAX: Final = 200
"""Batches that are looked at: old clients send each message as one."""
MARKER_BYTES_MAX: Final = 256
"""A larger control batch holds no marker of a transaction."""
_QUORUM: Final = "control"
_SPECIAL: Final = CODEC_MASK | CONTROL_FLAG | TRANSACTIONAL_FLAG


class BatchSummary(NamedTuple):
    """The sums of a run of batches, as far as they were looked at."""

    batches: int
    records: int | None
    """None if messages of an old format are compressed: their number is inside."""
    first_offset: int
    last_offset: int
    size_bytes: int
    """All bytes, those that were not looked at as well."""
    codec: str
    """The codec of the first batch, by name."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    """Sequence of the first batch; -1 without a producer id."""
    is_transactional: bool
    markers: tuple[str, ...]
    """`commit`, `abort` or `control` for each control batch."""
    is_cut: bool
    """True if bytes or batches were left that are not counted."""

    def __str__(self) -> str:
        if not self.batches:
            return f"{self.size_bytes} B of no batch"
        if self.markers and len(self.markers) == self.batches:
            return f"{' '.join(self.markers)} of producer {self._producer()}"
        count = "messages" if self.records is None else count_of(self.records, "record")
        more = "over " if self.is_cut and self.records is not None else ""
        parts = [f"{more}{count} {size_text(self.size_bytes)}"]
        if self.codec != CODEC_NAMES[NONE]:
            parts.append(self.codec)
        if self.producer_id >= 0:
            parts.append(f"producer {self._producer()} sequence {self.base_sequence}")
        if self.is_transactional:
            parts.append("in a transaction")
        parts += self.markers
        return " ".join(parts)

    def _producer(self) -> str:
        return f"{self.producer_id} epoch {self.producer_epoch}"


class BatchesText(NamedTuple):
    """The text of a summary. It may stand in a message in place of the records."""

    first_offset: int
    text: str


def summary_of(records: Buffer) -> BatchesText:
    """Return the first offset and the text of a summary. Most often records are one plain batch,
    and its header says it all.
    """
    size_bytes = len(records)
    if size_bytes >= HEADER_BYTES and records[MAGIC_AT] == 2:
        offset, length, _, _, _, attributes, _, _, _, producer_id, epoch, sequence, count = (
            HEADER.unpack_from(records)
        )
        if not attributes & _SPECIAL and length + LENGTH_FIELD_END == size_bytes:
            text = f"{count_of(max(count, 0), 'record')} {size_text(size_bytes)}"
            if producer_id >= 0:
                text = f"{text} producer {producer_id} epoch {epoch} sequence {sequence}"
            return BatchesText(offset, text)
    summary = summarize(records)
    return BatchesText(summary.first_offset, str(summary))


def summarize(records: Buffer) -> BatchSummary:
    """Return the summary of batches or messages; bytes that are none end it without an error."""
    headers: list[tuple[int, BatchHeader]] = []
    is_cut = False
    try:
        for entry in iterate_headers(records):
            if len(headers) == BATCHES_MAX:
                is_cut = True
                break
            headers.append(entry)
    except CorruptionError:
        is_cut = True
    if not headers:
        return BatchSummary(0, 0, -1, -1, len(records), "none", -1, -1, -1, False, (), is_cut)
    first = headers[0][1]
    last_at, last = headers[-1]
    return BatchSummary(
        batches=len(headers),
        records=_count([header for _, header in headers]),
        first_offset=first.base_offset,
        last_offset=last.last_offset,
        size_bytes=len(records),
        codec=_codec_name(first.codec),
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        is_transactional=first.is_transactional and not first.is_control,
        markers=tuple(
            _marker(records, position, header)
            for position, header in headers
            if header.magic == 2 and header.is_control
        ),
        is_cut=is_cut or last_at + last.size_bytes < len(records),
    )


def _count(headers: list[BatchHeader]) -> int | None:
    """Return the number of records; a batch that claims less than none counts as none."""
    if any(header.magic < 2 and header.attributes & CODEC_MASK for header in headers):
        return None
    return sum(max(header.count, 0) for header in headers)


def _codec_name(codec: int) -> str:
    return CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"codec {codec}"


def _marker(records: Buffer, position: int, header: BatchHeader) -> str:
    """Return `commit`, `abort`, or `control` for another control batch or a damaged one."""
    if header.size_bytes > MARKER_BYTES_MAX or header.codec != NONE:
        return _QUORUM
    try:
        marker = read_marker(records, position, header)
    except CorruptionError:
        return _QUORUM
    if marker is None:
        return _QUORUM
    return "commit" if marker.is_commit else "abort"


def count_of(count: int, noun: str) -> str:
    """Return `1 record`, `2 records`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size_text(size_bytes: int) -> str:
    """Return `210 B`, `2.1 KB`, `3.4 MB`, in powers of 1000."""
    if size_bytes < 1_000:
        return f"{size_bytes} B"
    size: float = size_bytes
    for unit in ("KB", "MB"):
        size /= 1_000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1_000:.1f} GB"
