"""Remarkable facts of an inspection, in sentences.

Each sentence follows from its numbers, and contains them. `ReportSentence.is_warning`: a person
should look at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import duration, moment, number, percent, rate, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.verbs.inspect.facts import PartitionFacts, TopicFacts

SKEWED_FROM: Final = 1.5
"""A partition with this many times its fair share of records makes a topic skewed."""
FEW_RECORDS: Final = 100
"""With fewer records than this, their spread means nothing."""
_RATED_FROM_MS: Final = 1_000
"""Shortest time whose rate is told: of less, a rate for a second never was."""
HOT_KEY_FROM: Final = 0.1


class ReportSentence(NamedTuple):
    """One sentence."""

    text: str
    is_warning: bool = False


def findings(topic: TopicFacts) -> list[ReportSentence]:
    """Return the findings about a topic; the spread of its records comes first."""
    if topic.records == 0:
        sentences = [ReportSentence("It holds no records.")]
    else:
        sentences = [
            *_spread(topic),
            *_times(topic),
            *_keys(topic),
            *_offsets(topic),
        ]
    return [*sentences, *_storage(topic), *_producers(topic), *_groups(topic)]


def share(partition: PartitionFacts, topic: TopicFacts) -> float:
    """Return how many times its fair share of records a partition has."""
    return partition.records * len(topic.partitions) / topic.records if topic.records else 0.0


def _spread(topic: TopicFacts) -> Iterator[ReportSentence]:
    count = len(topic.partitions)
    if count == 1 or topic.records < FEW_RECORDS:
        return
    fullest = max(topic.partitions, key=lambda partition: partition.records)
    times = share(fullest, topic)
    if times < SKEWED_FROM:
        yield ReportSentence(
            f"Records are spread evenly: the fullest of {count} partitions, "
            f"partition {fullest.partition}, has {times:.2f} times its fair share."
        )
        return
    text = (
        f"Skewed: partition {fullest.partition} holds {percent(fullest.records, topic.records)} of "
        f"the records, {times:.1f} times the fair share of {count} partitions"
    )
    key = topic.frequent_keys[0] if topic.frequent_keys else None
    if key and key.partition == fullest.partition and key.records > fullest.records / 4:
        text += (
            f"; the key “{key.text}” alone makes {percent(key.records, fullest.records)} of that "
            "partition"
        )
    elif fullest.without_key > fullest.records / 2:
        text += "; most of them have no key, so it was not the key that chose the partition"
    yield ReportSentence(text + ".", is_warning=True)
    empty = [partition for partition in topic.partitions if partition.records == 0]
    if len(empty) == 1:
        yield ReportSentence(f"Partition {empty[0].partition} holds no record.", is_warning=True)
    elif empty:
        yield ReportSentence(f"{len(empty)} of {count} partitions hold no record.", is_warning=True)


def _times(topic: TopicFacts) -> Iterator[ReportSentence]:
    late = topic.out_of_order
    if late:
        worst = max(partition.most_behind_ms for partition in topic.partitions)
        yield ReportSentence(
            f"{number(late)} records ({percent(late, topic.records)}) have an earlier timestamp "
            f"than one before them in their partition, {duration(worst)} at most."
        )
    elif topic.first_ms is not None:
        yield ReportSentence("Timestamps never go back within a partition.")
    if topic.slices and topic.first_ms is not None and topic.last_ms is not None:
        busiest = max(topic.slices, key=lambda part: part.records)
        span_ms = topic.last_ms - topic.first_ms
        if span_ms >= max(topic.slice_ms, _RATED_FROM_MS):
            mean = topic.records * 1000 / span_ms
            peak = busiest.records * 1000 / topic.slice_ms
            yield ReportSentence(
                f"On average {rate(mean)}; the busiest {duration(topic.slice_ms)}, from "
                f"{moment(busiest.start_ms)}, had {rate(peak)}."
            )


def _keys(topic: TopicFacts) -> Iterator[ReportSentence]:
    without = sum(partition.without_key for partition in topic.partitions)
    if without == topic.records:
        yield ReportSentence("No record has a key.")
    elif without:
        yield ReportSentence(
            f"{percent(without, topic.records).capitalize()} of the records have no key."
        )
    key = topic.frequent_keys[0] if topic.frequent_keys else None
    if key and topic.keys > 1 and key.records >= topic.records * HOT_KEY_FROM:
        yield ReportSentence(
            f"The most frequent of about {number(topic.keys)} keys, “{key.text}”, is in "
            f"{percent(key.records, topic.records)} of the records.",
            is_warning=key.records >= topic.records / 2,
        )
    if key and key.records + key.missed == 1 and topic.keys > 1:
        yield ReportSentence("No key is in more than one record.")
    tombstones = sum(partition.tombstones for partition in topic.partitions)
    if tombstones:
        yield ReportSentence(
            f"{number(tombstones)} records ({percent(tombstones, topic.records)}) are tombstones."
        )


def _offsets(topic: TopicFacts) -> Iterator[ReportSentence]:
    absent = sum(partition.offsets_without_record for partition in topic.partitions)
    if absent:
        part = percent(absent, absent + topic.records).capitalize()
        yield ReportSentence(
            f"{part} of the offsets hold no record: they were compacted or aborted, or are those "
            "of markers that end transactions."
        )


def _storage(topic: TopicFacts) -> Iterator[ReportSentence]:
    packed = [codec for codec in topic.codecs if codec.codec != "none"]
    if packed:
        names = ", ".join(sorted({codec.codec for codec in packed}))
        yield ReportSentence(
            f"Compression ({names}) makes {size(topic.unfolded_bytes)} of records into "
            f"{size(topic.stored_bytes)}, {ratio(topic)} to 1."
        )
    elif topic.codecs:
        yield ReportSentence(f"Nothing is compressed; the batches take {size(topic.stored_bytes)}.")
    old = sum(codec.records for codec in topic.codecs if codec.magic < 2)
    if old:
        yield ReportSentence(
            f"{number(old)} records are in the message formats of before Kafka 0.11."
        )
    aborted = sum(codec.aborted_records for codec in topic.codecs)
    if aborted:
        yield ReportSentence(f"{number(aborted)} records of aborted transactions are still stored.")
    for defect in topic.defects:
        yield ReportSentence(
            f"{defect.segment} of partition {defect.partition} is torn:"
            f" {number(defect.size_bytes)} bytes from position {number(defect.position)} on"
            f" are left out ({defect.reason}).",
            is_warning=True,
        )


def _producers(topic: TopicFacts) -> Iterator[ReportSentence]:
    if not topic.producers:
        return
    ids = len({producer.producer_id for producer in topic.producers})
    subject = "One idempotent producer" if ids == 1 else f"{number(ids)} idempotent producers"
    repeated = sum(producer.repeated for producer in topic.producers)
    missing = sum(producer.missing for producer in topic.producers)
    if repeated:
        worst = max(topic.producers, key=lambda producer: producer.repeated)
        yield ReportSentence(
            f"{subject}: {number(repeated)} records are there twice, "
            f"{_how_many(worst.repeated, repeated)} from producer {worst.producer_id} in partition "
            f"{worst.partition}.",
            is_warning=True,
        )
    if missing:
        worst = max(topic.producers, key=lambda producer: producer.missing)
        yield ReportSentence(
            f"{subject}: {number(missing)} records are not there (compacted, or lost), "
            f"{_how_many(worst.missing, missing)} from producer {worst.producer_id} in partition "
            f"{worst.partition}."
        )
    if not repeated and not missing:
        yield ReportSentence(f"{subject}: no record is there twice and none is missing.")


def _how_many(part: int, whole: int) -> str:
    return "all of them" if part == whole else f"{number(part)} of them"


def _groups(topic: TopicFacts) -> Iterator[ReportSentence]:
    if not topic.groups:
        return
    behind = topic.groups[0]
    if behind.lag:
        yield ReportSentence(
            f"Group “{behind.group}” ({behind.state}) is {number(behind.lag)} offsets behind the "
            "end."
        )
    else:
        count = len(topic.groups)
        yield ReportSentence(
            "Its group has read everything."
            if count == 1
            else f"All {count} groups have read everything."
        )


def ratio(topic: TopicFacts) -> str:
    """Return the ratio of uncompressed to stored bytes, such as `3.4`."""
    return f"{topic.unfolded_bytes / topic.stored_bytes:.1f}" if topic.stored_bytes else "1.0"
