"""What `inspect` found, as values: `jobs.inspect` fills them in, the reports show them.

    jobs.inspect ─► Inspection ─┬► report_words ─► sentences
                                ├► report_text  ─► a table for a terminal
                                └► report       ─► a page, with plots of report_svg

Times are milliseconds since the epoch, None where no record has one.
"""

from __future__ import annotations

from typing import NamedTuple


class PartitionFacts(NamedTuple):
    """One partition; all 0 where it holds no record."""

    partition: int
    records: int = 0
    size_bytes: int = 0
    """Of keys and values."""
    first_offset: int = -1
    last_offset: int = -1
    first_ms: int | None = None
    last_ms: int | None = None
    without_key: int = 0
    tombstones: int = 0
    keys: int = 0
    """Different ones, within 2 %."""
    out_of_order: int = 0
    """Records with an earlier timestamp than one before them."""
    most_behind_ms: int = 0

    @property
    def offsets_without_record(self) -> int:
        """Between the first record and the last: compacted, aborted, or markers."""
        return self.last_offset - self.first_offset + 1 - self.records if self.records else 0


class Slice(NamedTuple):
    """A part of time, from `start_ms` on."""

    start_ms: int
    records: int
    size_bytes: int


class FrequentKey(NamedTuple):
    """`text` is cut; `partition` None: its records are in several."""

    text: str
    records: int
    partition: int | None


class CodecFacts(NamedTuple):
    """Batches of one codec and format. `size_bytes` as stored, `record_bytes` unfolded."""

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
    """How far a group is behind the end of a topic; `without_offset`: partitions it never read."""

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
    large_bytes: int = 0
    """99 of 100 records are not larger."""
    largest_bytes: int = 0
    slice_ms: int = 0
    slices: tuple[Slice, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    """(power of two, records); -1: empty ones."""
    frequent_keys: tuple[FrequentKey, ...] = ()
    codecs: tuple[CodecFacts, ...] = ()
    """From files only, as are the two that follow."""
    producers: tuple[ProducerFacts, ...] = ()
    defects: tuple[Defect, ...] = ()
    groups: tuple[GroupLag, ...] = ()
    """From a broker only."""

    @property
    def records(self) -> int:
        return sum(one.records for one in self.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.partitions)

    @property
    def first_ms(self) -> int | None:
        return min(
            (one.first_ms for one in self.partitions if one.first_ms is not None), default=None
        )

    @property
    def last_ms(self) -> int | None:
        return max(
            (one.last_ms for one in self.partitions if one.last_ms is not None), default=None
        )

    @property
    def out_of_order(self) -> int:
        return sum(one.out_of_order for one in self.partitions)

    @property
    def stored_bytes(self) -> int:
        """On disk, as far as batches were looked at."""
        return sum(one.size_bytes for one in self.codecs)

    @property
    def unfolded_bytes(self) -> int:
        return sum(one.record_bytes for one in self.codecs)


class Inspection(NamedTuple):
    """All of it. `subject`: the address or the directory; `from_files`: batches were seen."""

    subject: str
    made_ms: int
    from_files: bool
    topics: tuple[TopicFacts, ...]
