"""Tallies of the batches of a task, for `inspect`, which only a broker's files have. Pure.

    rows of segments.batches, each partition in order ─► BatchTally.add ─► one a task ─► merge

A task reads whole partitions, so the sequence that follows is known in the task, and nothing is
sorted. Sequences that retention or compaction removed look the same as sequences that never
existed: both are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.pipeline.verbs.inspect.facts import CodecFacts, Defect, ProducerFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

COLUMNS: Final = (
    *("topic", "partition", "segment", "position", "sizeBytes", "recordBytes", "records", "magic"),
    *("codec", "isControl", "isAborted", "producerId", "producerEpoch", "baseSequence"),
    *("lastSequence", "defect"),
)
"""Columns of a batch that are counted."""
_SEQUENCES: Final = 1 << 31
"""Number of sequences; 0 follows the last one."""


@dataclass
class _Codec:
    """Batches of one codec and format, without markers."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    record_bytes: int = 0
    aborted_records: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        self.batches += 1
        self.records += row["records"]
        self.size_bytes += row["sizeBytes"]
        self.record_bytes += row["recordBytes"] or 0
        self.aborted_records += row["records"] if row["isAborted"] else 0

    def merge(self, other: _Codec) -> None:
        """Add the counts of another task."""
        self.batches += other.batches
        self.records += other.records
        self.size_bytes += other.size_bytes
        self.record_bytes += other.record_bytes
        self.aborted_records += other.aborted_records


@dataclass
class _Producer:
    """Batches of one producer id in one partition.

    Within an epoch every batch begins where the last one ended. The first batch of an epoch that
    is there is taken as correct.
    """

    batches: int = 0
    records: int = 0
    missing: int = 0
    repeated: int = 0
    aborted_batches: int = 0
    last: dict[int, int] = field(default_factory=dict)
    """Epoch → last sequence."""

    def add(self, row: Mapping[str, Any]) -> None:
        self.batches += 1
        self.records += row["records"]
        self.aborted_batches += row["isAborted"]
        last_sequence = self.last.get(row["producerEpoch"])
        self.last[row["producerEpoch"]] = row["lastSequence"]
        if last_sequence is None:
            return
        ahead = (row["baseSequence"] - (last_sequence + 1)) % _SEQUENCES
        if ahead > _SEQUENCES // 2:
            self.repeated += min(_SEQUENCES - ahead, row["records"])
        else:
            self.missing += ahead


class BatchFacts(NamedTuple):
    """The facts about the batches of a topic."""

    codecs: tuple[CodecFacts, ...] = ()
    producers: tuple[ProducerFacts, ...] = ()
    defects: tuple[Defect, ...] = ()


class BatchTally:
    """The batches of a task, or of all tasks."""

    def __init__(self) -> None:
        self._codecs: dict[tuple[str, str, int], _Codec] = {}
        """(topic, codec, format) → its batches."""
        self._producers: dict[tuple[str, int, int], _Producer] = {}
        """(topic, partition, producer id) → its batches."""
        self._defects: dict[str, list[Defect]] = {}
        """Topic → places where its files are torn."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Take batches with the columns COLUMNS, each partition in the order of its offsets."""
        for row in rows.select(COLUMNS).to_pylist():
            self._add(row)

    def merge(self, other: BatchTally) -> None:
        """Take the batches of another task, which has read other partitions."""
        for key, codec in other._codecs.items():
            self._codecs.setdefault(key, _Codec()).merge(codec)
        self._producers |= other._producers
        for topic, defects in other._defects.items():
            self._defects.setdefault(topic, []).extend(defects)

    def of_topic(self, topic: str) -> BatchFacts:
        """Return the facts: the largest codec first, producers and defects by their partitions."""
        codecs = [
            CodecFacts(
                name,
                magic,
                tally.batches,
                tally.records,
                tally.size_bytes,
                tally.record_bytes,
                tally.aborted_records,
            )
            for (of, name, magic), tally in self._codecs.items()
            if of == topic
        ]
        return BatchFacts(
            tuple(sorted(codecs, key=lambda codec: (-codec.size_bytes, codec))),
            tuple(sorted(self._producers_of(topic))),
            tuple(sorted(self._defects.get(topic, ()))),
        )

    def _add(self, row: Mapping[str, Any]) -> None:
        topic, partition = row["topic"], row["partition"]
        if row["defect"] is not None:
            place = (row["segment"], row["position"], row["sizeBytes"], row["defect"])
            self._defects.setdefault(topic, []).append(Defect(partition, *place))
            return
        if row["isControl"]:
            return
        key = (topic, row["codec"], row["magic"])
        self._codecs.setdefault(key, _Codec()).add(row)
        first = row["baseSequence"]
        if first is not None and first >= 0:
            sender = (topic, partition, row["producerId"])
            self._producers.setdefault(sender, _Producer()).add(row)

    def _producers_of(self, topic: str) -> Iterable[ProducerFacts]:
        for (of, partition, producer_id), producer in self._producers.items():
            if of == topic:
                yield ProducerFacts(
                    partition,
                    producer_id,
                    producer.batches,
                    producer.records,
                    len(producer.last),
                    producer.missing,
                    producer.repeated,
                    producer.aborted_batches,
                )
