"""Results of `inspect` as values: `inspect.job` makes them, the reports show them.

    inspect.job ─► Inspection ─┬► words ─► sentences
                                ├► text  ─► a table for a terminal
                                └► page  ─► a page, with plots of svg

Times are milliseconds since the epoch, None where no record has one.
"""

from __future__ import annotations

from typing import NamedTuple


class PartitionFacts(NamedTuple):
    """One partition; all numbers are 0 if it holds no record."""

    partition: int
    records: int = 0
    size_bytes: int = 0
    """Bytes of keys and values."""
    first_offset: int = -1
    last_offset: int = -1
    first_ms: int | None = None
    last_ms: int | None = None
    without_key: int = 0
    tombstones: int = 0
    keys: int = 0
    """Number of different keys, within 2 %."""
    out_of_order: int = 0
    """Records with an earlier timestamp than a record before them."""
    most_behind_ms: int = 0

    @property
    def offsets_without_record(self) -> int:
        """Return the offsets without a record: compacted, aborted, or markers."""
        return self.last_offset - self.first_offset + 1 - self.records if self.records else 0


class Slice(NamedTuple):
    """A slice of time that begins at `start_ms`."""

    start_ms: int
    records: int
    size_bytes: int


class FrequentKey(NamedTuple):
    """A frequent key; `text` is cut, `partition` is None if several partitions have its records."""

    text: str
    records: int
    partition: int | None
    missed: int = 0
    """Records with this key that may be missing in `records`, at most."""


class CodecFacts(NamedTuple):
    """Batches of one codec and format.

    `size_bytes` is as stored, `record_bytes` is uncompressed.
    """

    codec: str
    magic: int
    batches: int
    records: int
    size_bytes: int
    record_bytes: int
    aborted_records: int = 0


class ProducerFacts(NamedTuple):
    """One producer id in one partition; `missing` and `repeated` count sequences."""

    partition: int
    producer_id: int
    batches: int
    records: int
    epochs: int
    missing: int
    repeated: int
    aborted_batches: int = 0


class Defect(NamedTuple):
    """The unreadable end of a file."""

    partition: int
    segment: str
    position: int
    size_bytes: int
    reason: str


class GroupLag(NamedTuple):
    """The lag of a group in a topic; `without_offset`: partitions without a commit."""

    group: str
    state: str
    lag: int
    partitions: int
    without_offset: int


class TopicFacts(NamedTuple):
    """One topic."""

    topic: str
    partitions: tuple[PartitionFacts, ...]
    keys: int = 0
    smallest_bytes: int = 0
    median_bytes: int = 0
    largest_bytes: int = 0
    slice_ms: int = 0
    slices: tuple[Slice, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    """(power of two, records); -1 stands for empty records."""
    frequent_keys: tuple[FrequentKey, ...] = ()
    codecs: tuple[CodecFacts, ...] = ()
    """Batches by codec. This field and the two below are set only for files."""
    producers: tuple[ProducerFacts, ...] = ()
    defects: tuple[Defect, ...] = ()
    groups: tuple[GroupLag, ...] = ()
    """Groups and their lag; set only for a broker."""

    @property
    def records(self) -> int:
        return sum(partition.records for partition in self.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(partition.size_bytes for partition in self.partitions)

    @property
    def first_ms(self) -> int | None:
        return min(
            (partition.first_ms for partition in self.partitions if partition.first_ms is not None),
            default=None,
        )

    @property
    def last_ms(self) -> int | None:
        return max(
            (partition.last_ms for partition in self.partitions if partition.last_ms is not None),
            default=None,
        )

    @property
    def out_of_order(self) -> int:
        return sum(partition.out_of_order for partition in self.partitions)

    @property
    def stored_bytes(self) -> int:
        """Return the bytes on disk of the batches that were read."""
        return sum(codec.size_bytes for codec in self.codecs)

    @property
    def unfolded_bytes(self) -> int:
        return sum(codec.record_bytes for codec in self.codecs)


class Inspection(NamedTuple):
    """All results. `subject`: the address or the directory; `from_files`: batches were read."""

    subject: str
    made_ms: int
    from_files: bool
    topics: tuple[TopicFacts, ...]
