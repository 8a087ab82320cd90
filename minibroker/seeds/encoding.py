"""Parts of partitions → the bytes of a recording: chosen, masked, as lines or as batches.

    PartOfPartition ─► records ─► operations ─► lines_of, or a batch ─► EncodedPart

This is nearly all of the work of a recording. It depends on the part alone, so several processes
may do it, each with a copy of the `Encoder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.conversion import read_records
from minibroker.seeds.errors import SeedError
from minibroker.seeds.json_lines import LINE_BYTES_MAX
from minibroker.seeds.lines import lines_of
from minibroker.seeds.operations import names_in
from minibroker.seeds.staging import BATCH_BYTES, RECORD_BYTES_AROUND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.kafka.ids import TopicPartition
    from minibroker.kafka.records.record import Record
    from minibroker.seeds.operations import RecordOperations


class PartOfPartition(NamedTuple):
    """Batches of a partition, one behind the other."""

    place: TopicPartition
    start: int
    """The first offset that counts: the first batch may begin before it."""
    end: int
    """The offset behind the last one that counts."""
    batches: tuple[bytes, ...]


class EncodedPart(NamedTuple):
    """The records of a part that are written, and what was met on the way."""

    place: TopicPartition
    pieces: list[tuple[int, bytes | bytearray]]
    """First offset and bytes: of lines, or of one batch each."""
    records: int
    """Records that are written."""
    chosen: int
    unmaskable: int
    mask_places: int
    """As of `operations.Operated`."""
    names: frozenset[str]
    """Places that its records have, if there are masks."""


class Encoder:
    """Encodes parts. Constant after construction."""

    def __init__(self, operations: RecordOperations, *, makes_lines: bool) -> None:
        """`makes_lines`: JSON lines; else batches, with the codecs that they had."""
        self._operations = operations
        self._makes_lines = makes_lines

    def encode(self, part: PartOfPartition) -> EncodedPart:
        """Return the bytes of a part. Raises SeedError, CorruptionError."""
        place = part.place
        output: list[Record] = []
        codec = "none"
        chosen = unmaskable = mask_places = 0
        names: frozenset[str] = frozenset()
        for batch in part.batches:
            header = read_header(batch)
            records: Sequence[Record] = read_records(batch, 0, header)
            if records and not (records[0].offset >= part.start and records[-1].offset < part.end):
                records = [record for record in records if part.start <= record.offset < part.end]
            if self._operations.words.changes:
                names = names or names_in(records)
            operated = self._operations.apply(place, records, is_dated=header.magic > 0)
            output += operated.records
            chosen += operated.chosen
            unmaskable += operated.unmaskable
            mask_places |= operated.mask_places
            codec = CODEC_NAMES[header.codec]
        pieces = self._pieces(place, output, codec) if output else []
        return EncodedPart(place, pieces, len(output), chosen, unmaskable, mask_places, names)

    def _pieces(
        self, place: TopicPartition, records: list[Record], codec: str
    ) -> list[tuple[int, bytes | bytearray]]:
        if self._makes_lines:
            lines = lines_of(place, records)
            _check_lines(place, records, lines)
            return [(records[0].offset, lines)]
        return [
            (
                group[0].offset,
                build_batch(group, base_offset=group[0].offset, codec=codec, keep_offsets=True),
            )
            for group in _groups(records)
        ]


def _check_lines(place: TopicPartition, records: Sequence[Record], lines: bytes) -> None:
    """Raise SeedError for a record whose line is too long for a load."""
    if len(lines) <= LINE_BYTES_MAX:
        return
    for record, line in zip(records, lines.split(b"\n"), strict=False):
        if len(line) > LINE_BYTES_MAX:
            raise SeedError(
                f"record {place} offset {record.offset} is a line of more than "
                f"{LINE_BYTES_MAX >> 20} MB, which no load takes: record segment files, -o DIR"
            )


def _groups(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield the records in groups of a batch each."""
    group: list[Record] = []
    size_bytes = 0
    for record in records:
        length = RECORD_BYTES_AROUND + len(record.key or b"") + len(record.value or b"")
        is_far = bool(group) and record.offset - group[0].offset >= 2**31
        if group and (size_bytes + length > BATCH_BYTES or is_far):
            yield group
            group, size_bytes = [], 0
        group.append(record)
        size_bytes += length
    if group:
        yield group
