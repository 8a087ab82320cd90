"""A seed of segment files, as Kafka's log directory holds them: TOPIC-PARTITION/OFFSET.log.

    directory ─partitions_in─► SegmentPartition ─scan─► the batches that count
                                                └─read─► batches for a producer's request

Only committed records count. So the batches are walked first: markers say which transactions were
aborted, and one without a marker is open. A batch goes on as it is, without the producer that it
had. One that a producer may not send is built anew: with gaps, of an old format, or dated by a
broker (its records keep that date).
"""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import INTERNAL_TOPICS
from minibroker.broker.storage.names import LOG, base_offset_of, parse_directory
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import (
    DELETE_HORIZON_FLAG,
    BatchHeader,
    assign,
    clear_producer,
    iterate_headers,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.control import read_marker
from minibroker.kafka.records.conversion import read_records
from minibroker.kafka.records.stored_batch import check_crc
from minibroker.seeds.errors import SeedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_EPOCH: Final = -1


class SegmentPartition(NamedTuple):
    """The segment files of a partition, in their order."""

    topic: str
    partition: int
    files: tuple[Path, ...]


class Scanned(NamedTuple):
    """The result of a walk along a partition."""

    records: int
    """Records of the batches that count."""
    uncommitted: frozenset[tuple[int, int]]
    """File and position of each batch of a transaction that was aborted, or is open."""


class StagedBatch(NamedTuple):
    """A batch for the broker's append. Its records begin at offset 0."""

    topic: str
    partition: int
    records: bytearray
    place: str
    """Its place in the seed, for messages."""


def partitions_in(directory: Path) -> list[SegmentPartition]:
    """Return the partitions of a directory; those of Kafka's internal topics are left out.

    Raises OSError.
    """
    parts = []
    for path in sorted(directory.iterdir()):
        name_and_mark = parse_directory(path.name) if path.is_dir() else None
        if name_and_mark is None or name_and_mark[1] or name_and_mark[0].topic in INTERNAL_TOPICS:
            continue
        files = sorted(file for file in path.iterdir() if is_segment(file))
        if files:
            parts.append(SegmentPartition(*name_and_mark[0], tuple(files)))
    return parts


def is_segment(path: Path) -> bool:
    """Return whether a file's name is a segment's."""
    return path.suffix == LOG and base_offset_of(path.name) is not None


def partition_of_file(path: Path) -> SegmentPartition:
    """Return the partition of one segment file. Raises SeedError if nothing names it."""
    name_and_mark = parse_directory(path.absolute().parent.name)
    if name_and_mark is None or name_and_mark[1]:
        raise SeedError(
            f"{path}: no directory names its topic: expected TOPIC-PARTITION/{path.name}, such as "
            f"orders-0/{path.name}"
        )
    return SegmentPartition(*name_and_mark[0], (path,))


def scan(part: SegmentPartition) -> Scanned:
    """Walk along the batches of a partition and check their CRCs. Raises SeedError, OSError."""
    records = 0
    pending: dict[int, list[tuple[int, int, int]]] = {}
    uncommitted: set[tuple[int, int]] = set()
    for number, path in enumerate(part.files):
        with _mapped(path) as content:
            for position, header in _headers(path, content):
                _check_crc(path, content, position, header)
                if header.is_control:
                    transaction = pending.pop(header.producer_id, [])
                    marker = read_marker(content, position, header)
                    if marker is not None and not marker.is_commit:
                        uncommitted.update((file, at) for file, at, _ in transaction)
                        records -= sum(count for _, _, count in transaction)
                    continue
                records += header.count
                if header.magic == 2 and header.is_transactional:
                    place = (number, position, header.count)
                    pending.setdefault(header.producer_id, []).append(place)
    for transaction in pending.values():
        uncommitted.update((file, at) for file, at, _ in transaction)
        records -= sum(count for _, _, count in transaction)
    return Scanned(records, frozenset(uncommitted))


def read(part: SegmentPartition, scanned: Scanned) -> Iterator[StagedBatch]:
    """Yield the batches of a partition that count, as a producer sends them.

    Raises SeedError, OSError.
    """
    for number, path in enumerate(part.files):
        with _mapped(path) as content:
            for position, header in _headers(path, content):
                if (
                    header.is_control
                    or header.count == 0
                    or (number, position) in scanned.uncommitted
                ):
                    continue
                try:
                    batch = _sendable(content, position, header)
                except CorruptionError as error:
                    raise SeedError(f"{path}: byte {position}: {error}") from None
                place = f"{path}: offset {header.base_offset}"
                yield StagedBatch(part.topic, part.partition, batch, place)


def _check_crc(path: Path, content: memoryview, position: int, header: BatchHeader) -> None:
    """Raise SeedError for a wrong CRC."""
    try:
        check_crc(content, position, header)
    except CorruptionError as error:
        raise SeedError(f"{path}: byte {position}: {error}") from None


def _sendable(content: memoryview, position: int, header: BatchHeader) -> bytearray:
    """Return a batch of offset 0, of no producer. Raises CorruptionError."""
    is_whole = header.magic == 2 and header.count == header.last_offset_delta + 1
    if is_whole and not header.is_append_time and not header.attributes & DELETE_HORIZON_FLAG:
        batch = bytearray(content[position : position + header.size_bytes])
        assign(batch, 0, 0, NO_EPOCH)
        if header.is_transactional or header.has_producer_id:
            clear_producer(batch, 0, header.attributes)
        return batch
    records = read_records(content, position, header)
    return build_batch(records, codec=CODEC_NAMES[header.codec])


@contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    """Map a file to read. Raises OSError."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            yield memoryview(b"")
            return
        with (
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as content,
        ):
            yield content


def _headers(path: Path, content: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch. Raises SeedError for a file that is damaged."""
    end = 0
    try:
        for position, header in iterate_headers(content):
            end = position + header.size_bytes
            yield position, header
    except CorruptionError as error:
        raise SeedError(f"{path}: {error}") from None
    if end != len(content):
        raise SeedError(
            f"{path}: byte {end}: the file ends inside of a batch: expected whole batches; copy "
            "a log when its broker is stopped, or record its topic"
        )
