"""The pipeline's operations on records, without Spark: the same words, the same results.

    records ─► --since, --until ─► --sample ─► --mask ─► --select ─► records

Rules and masks are the pipeline's own (`pipeline.operations`). The sample is Spark's `xxhash64` of
topic, partition and offset, or of the key, computed with the library of that hash: a record is in
the sample here if it is in the pipeline's.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.records.record import Record
from minibroker.pipeline.errors import near_places
from minibroker.pipeline.operations.masking import NOT_WRITTEN, Masker
from minibroker.pipeline.operations.met_places import lacking, places_of
from minibroker.pipeline.operations.rows import BY_KEY
from minibroker.seeds.errors import SeedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from minibroker.kafka.ids import TopicPartition
    from minibroker.pipeline.operations.rows import RowOperations

SPARK_SEED: Final = 42
"""The seed of Spark's `xxhash64`; each column's hash is the seed of the next one."""
_HASH_BITS: Final = 63
_INT: Final = struct.Struct("<i").pack
_LONG: Final = struct.Struct("<q").pack
_LOOKED_AT: Final = 20
"""Records of a part of a partition whose places are remembered."""


class Operated(NamedTuple):
    """The records that go on, and what was met on the way."""

    records: list[Record]
    chosen: int
    """Records that are in the time and in the sample."""
    unmaskable: int
    """Records that were left out, since they cannot be masked."""
    mask_places: int
    """Bits of the rules and fields whose places were there, as of `masking.Masked.mask_places`."""


class RecordOperations:
    """The operations of one recording. Constant after construction; other processes get it by
    pickle.
    """

    def __init__(self, operations: RowOperations, secret: bytes) -> None:
        """`secret`: of the hashes."""
        self.words = operations
        self._masker = Masker(operations.rules, operations.fields, secret)

    def apply(
        self, place: TopicPartition, records: Iterable[Record], *, is_dated: bool
    ) -> Operated:
        """Return the records that are chosen, masked.

        Args:
            records: in the order of their offsets.
            is_dated: False for message format 0: a record without a time is in no range of time.

        Raises SeedError for one that cannot be masked, unless such are left out.
        """
        words = self.words
        chosen = list(records)
        if (since := words.since) is not None:
            chosen = [record for record in chosen if is_dated and record.timestamp >= since.ms]
        if (until := words.until) is not None:
            chosen = [record for record in chosen if is_dated and record.timestamp < until.ms]
        if words.sample is not None and words.sample < 1:
            is_in = sample_of(place, words.sample, by_key=words.sample_by == BY_KEY)
            chosen = [record for record in chosen if is_in(record)]
        if not words.changes:
            return Operated(chosen, len(chosen), 0, 0)
        return self._masked(place, chosen)

    def check_places(self, mask_places: int, names: Set[str]) -> None:
        """Raise SeedError for a rule or a field whose place no record had, unless it has a `?`.

        Args:
            mask_places: bits of the places that records had, of all records.
            names: places that records have.
        """
        for path, words in lacking(self.words, mask_places):
            raise SeedError(
                f"{words}: no record has {path.place}{near_places(path.place, names)}; nothing "
                f"was written; correct the name, or write {path.place}? for a place that may be "
                "missing"
            )

    def _masked(self, place: TopicPartition, records: Sequence[Record]) -> Operated:
        apply = self._masker.apply
        masked = []
        unmaskable = bits = 0
        for record in records:
            offset, timestamp, key, value, headers = record
            key, value, new_headers, mask_places, reason = apply(key, value, list(headers))
            bits |= mask_places
            if reason is None:
                masked.append(Record(offset, timestamp, key, value, tuple(new_headers or ())))
            elif self.words.skips:
                unmaskable += 1
            else:
                raise SeedError(
                    f"record {place} offset {offset}{NOT_WRITTEN}{reason}; give --on-unmaskable "
                    "skip to leave such records out"
                )
        return Operated(masked, len(records), unmaskable, bits)


def names_in(records: Sequence[Record]) -> frozenset[str]:
    """Return the places that the first records have, to propose one for a wrong name."""
    return frozenset(
        name
        for _, _, key, value, headers in records[:_LOOKED_AT]
        for name in places_of(key, value, list(headers))
    )


def sample_of(place: TopicPartition, share: float, *, by_key: bool) -> Callable[[Record], bool]:
    """Return the function that tells whether a record of a partition is in the sample.

    Args:
        share: the part of the records that is taken, up to 1.
        by_key: all records of a key are in it, or none.

    Raises SeedError on a system without the package of the hash.
    """
    try:
        from xxhash import xxh64_intdigest  # noqa: PLC0415  not on every system
    except ImportError:
        raise SeedError("--sample needs a package: pip install xxhash") from None
    # As `operations.frames` has it for Spark.
    limit = int(share * (1 << _HASH_BITS))
    of_topic = xxh64_intdigest(place.topic.encode(), SPARK_SEED)
    of_partition = xxh64_intdigest(_INT(place.partition), of_topic)

    def is_in(record: Record) -> bool:
        if by_key and record.key is not None:
            hashed = xxh64_intdigest(record.key, SPARK_SEED)
        else:
            hashed = xxh64_intdigest(_LONG(record.offset), of_partition)
        return hashed >> 1 < limit

    return is_in
