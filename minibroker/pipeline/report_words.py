"""What stands out in an inspection, in sentences.

Each sentence is true of the numbers it is made from, and says them. `Finding.is_warning`: somebody
should look at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.quantities import duration, moment, number, percent, rate, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.report_facts import PartitionFacts, TopicFacts

SKEWED_FROM: Final = 1.5
"""A partition with this many times its fair share of records makes a topic skewed."""
FEW_RECORDS: Final = 100
"""So few say nothing about how they are spread."""
HOT_KEY_FROM: Final = 0.1


class Finding(NamedTuple):
    """One sentence."""

    text: str
    is_warning: bool = False


def findings(topic: TopicFacts) -> list[Finding]:
    """What there is to say of a topic, how its records are spread first."""
    if topic.records == 0:
        said = [Finding("It holds no records.")]
    else:
        said = [
            *_spread(topic),
            *_times(topic),
            *_keys(topic),
            *_offsets(topic),
        ]
    return [*said, *_storage(topic), *_producers(topic), *_groups(topic)]


def share(partition: PartitionFacts, topic: TopicFacts) -> float:
    """How many times its fair share of records a partition has."""
    return partition.records * len(topic.partitions) / topic.records if topic.records else 0.0


def _spread(topic: TopicFacts) -> Iterator[Finding]:
    count = len(topic.partitions)
    if count == 1 or topic.records < FEW_RECORDS:
        return
    fullest = max(topic.partitions, key=lambda one: one.records)
    times = share(fullest, topic)
    if times < SKEWED_FROM:
        yield Finding(
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
    yield Finding(text + ".", is_warning=True)
    empty = [one for one in topic.partitions if one.records == 0]
    if len(empty) == 1:
        yield Finding(f"Partition {empty[0].partition} holds no record.", is_warning=True)
    elif empty:
        yield Finding(f"{len(empty)} of {count} partitions hold no record.", is_warning=True)


def _times(topic: TopicFacts) -> Iterator[Finding]:
    late = topic.out_of_order
    if late:
        worst = max(one.most_behind_ms for one in topic.partitions)
        yield Finding(
            f"{number(late)} records ({percent(late, topic.records)}) have an earlier timestamp "
            f"than one before them in their partition, {duration(worst)} at most."
        )
    elif topic.first_ms is not None:
        yield Finding("Timestamps never go back within a partition.")
    if topic.slices and topic.first_ms is not None and topic.last_ms is not None:
        busiest = max(topic.slices, key=lambda one: one.records)
        span_ms = topic.last_ms - topic.first_ms
        if span_ms >= topic.slice_ms:
            mean = topic.records * 1000 / span_ms
            peak = busiest.records * 1000 / topic.slice_ms
            yield Finding(
                f"On average {rate(mean)}; the busiest {duration(topic.slice_ms)}, from "
                f"{moment(busiest.start_ms)}, had {rate(peak)}."
            )


def _keys(topic: TopicFacts) -> Iterator[Finding]:
    without = sum(one.without_key for one in topic.partitions)
    if without == topic.records:
        yield Finding("No record has a key.")
    elif without:
        yield Finding(f"{percent(without, topic.records).capitalize()} of the records have no key.")
    key = topic.frequent_keys[0] if topic.frequent_keys else None
    if key and topic.keys > 1 and key.records >= topic.records * HOT_KEY_FROM:
        yield Finding(
            f"The most frequent of about {number(topic.keys)} keys, “{key.text}”, is in "
            f"{percent(key.records, topic.records)} of the records.",
            is_warning=key.records >= topic.records / 2,
        )
    if key and key.records == 1 and topic.keys > 1:
        yield Finding("No key is in more than one record.")
    tombstones = sum(one.tombstones for one in topic.partitions)
    if tombstones:
        yield Finding(
            f"{number(tombstones)} records ({percent(tombstones, topic.records)}) are tombstones."
        )


def _offsets(topic: TopicFacts) -> Iterator[Finding]:
    absent = sum(one.offsets_without_record for one in topic.partitions)
    if absent:
        part = percent(absent, absent + topic.records).capitalize()
        yield Finding(
            f"{part} of the offsets hold no record: they were compacted or aborted, or are those "
            "of markers that end transactions."
        )


def _storage(topic: TopicFacts) -> Iterator[Finding]:
    packed = [one for one in topic.codecs if one.codec != "none"]
    if packed:
        names = ", ".join(sorted({one.codec for one in packed}))
        yield Finding(
            f"Compression ({names}) makes {size(topic.unfolded_bytes)} of records into "
            f"{size(topic.stored_bytes)}, {ratio(topic)} to 1."
        )
    elif topic.codecs:
        yield Finding(f"Nothing is compressed; the batches take {size(topic.stored_bytes)}.")
    old = sum(one.records for one in topic.codecs if one.magic < 2)
    if old:
        yield Finding(f"{number(old)} records are in the message formats of before Kafka 0.11.")
    aborted = sum(one.aborted_records for one in topic.codecs)
    if aborted:
        yield Finding(f"{number(aborted)} records of aborted transactions are still stored.")
    for one in topic.defects:
        yield Finding(
            f"{one.segment} of partition {one.partition} is torn: {number(one.size_bytes)} bytes "
            f"from position {number(one.position)} on are left out ({one.reason}).",
            is_warning=True,
        )


def _producers(topic: TopicFacts) -> Iterator[Finding]:
    if not topic.producers:
        return
    ids = len({one.producer_id for one in topic.producers})
    who = "One idempotent producer" if ids == 1 else f"{number(ids)} idempotent producers"
    repeated = sum(one.repeated for one in topic.producers)
    missing = sum(one.missing for one in topic.producers)
    if repeated:
        worst = max(topic.producers, key=lambda one: one.repeated)
        yield Finding(
            f"{who}: {number(repeated)} records are there twice, "
            f"{_how_many(worst.repeated, repeated)} from producer {worst.producer_id} in partition "
            f"{worst.partition}.",
            is_warning=True,
        )
    if missing:
        worst = max(topic.producers, key=lambda one: one.missing)
        yield Finding(
            f"{who}: {number(missing)} records are not there (compacted, or lost), "
            f"{_how_many(worst.missing, missing)} from producer {worst.producer_id} in partition "
            f"{worst.partition}."
        )
    if not repeated and not missing:
        yield Finding(f"{who}: no record is there twice and none is missing.")


def _how_many(part: int, whole: int) -> str:
    return "all of them" if part == whole else f"{number(part)} of them"


def _groups(topic: TopicFacts) -> Iterator[Finding]:
    if not topic.groups:
        return
    behind = topic.groups[0]
    if behind.lag:
        yield Finding(
            f"Group “{behind.group}” ({behind.state}) is {number(behind.lag)} offsets behind the "
            "end."
        )
    else:
        count = len(topic.groups)
        yield Finding(
            "Its group has read everything."
            if count == 1
            else f"All {count} groups have read everything."
        )


def ratio(topic: TopicFacts) -> str:
    """Unfolded to stored bytes, `3.4`."""
    return f"{topic.unfolded_bytes / topic.stored_bytes:.1f}" if topic.stored_bytes else "1.0"
