"""A batch's plan from bounds that are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.source import batch as source_batch
from minibroker.pipeline.offsets import EARLIEST, LATEST, OffsetRange

if TYPE_CHECKING:
    from minibroker.pipeline.kafka.options import Bound, SourceOptions
    from minibroker.pipeline.kafka.source.batch import RangePartition
    from minibroker.pipeline.offsets import Offsets

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class ToldTopics:
    """Two partitions: offsets 10 to 20, and an empty one that ends at 5."""

    begins: Offsets = {A0: 10, A1: 5}  # noqa: RUF012
    ends: Offsets = {A0: 20, A1: 5}  # noqa: RUF012

    def __init__(self, _options: SourceOptions) -> None:
        self.places = sorted(self.ends)

    def partitions(self) -> list[TopicPartition]:
        return self.places

    def latest(self, partitions: list[TopicPartition], *, last_ends: Offsets) -> Offsets:
        assert not last_ends
        return {partition: self.ends[partition] for partition in partitions}

    def at(
        self, bound: Bound, partitions: list[TopicPartition], *, side: str, where_none: int
    ) -> Offsets:
        assert (side, where_none) in (("starting", 0), ("ending", LATEST))
        if bound.offsets is not None:
            return dict(bound.offsets)
        places = self.begins if bound.everywhere == EARLIEST else self.ends
        return {partition: places[partition] for partition in partitions}


def plan(monkeypatch: pytest.MonkeyPatch, **more: str) -> list[OffsetRange]:
    monkeypatch.setattr(source_batch, "TopicOffsets", ToldTopics)
    settings = {"kafka.bootstrap.servers": "x:1", "subscribe": "a", **more}
    tasks = source_batch.BatchReader(settings).partitions()
    return [span for task in tasks for span in cast("RangePartition", task).ranges]


def test_each_partition_with_anything_in_it_is_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(monkeypatch) == [OffsetRange("a", 0, 10, 20)]


def test_tasks_are_as_many_and_as_small_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [span.size for span in plan(monkeypatch, minPartitions="3")] == [3, 3, 4]
    assert [span.size for span in plan(monkeypatch, maxRecordsPerPartition="6")] == [5, 5]


def test_a_bound_outside_of_the_log_is_an_error_or_becomes_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    far = {"endingOffsets": '{"a": {"0": 25, "1": 5}}'}

    with pytest.raises(PipelineError, match="endingOffsets is 25 for a-0, which ends at 20"):
        plan(monkeypatch, **far)
    assert plan(monkeypatch, **far, failOnDataLoss="false") == [OffsetRange("a", 0, 10, 20)]


def test_a_start_behind_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PipelineError, match="a-0 ends at offset 20, before offset 30"):
        plan(monkeypatch, startingOffsets='{"a": {"0": 30, "1": 5}}')


def test_a_partition_of_nothing_asks_nobody() -> None:
    settings = {"kafka.bootstrap.servers": "x:1", "subscribe": "a"}
    reader = source_batch.BatchReader(settings)
    nothing = source_batch.RangePartition([])

    assert list(reader.read(nothing)) == []


def tasks(count: int, size: int, **more: str) -> list[list[OffsetRange]]:
    settings = {"kafka.bootstrap.servers": "x:1", "subscribe": "a", **more}
    ranges = [OffsetRange("a", number, 0, size) for number in range(count)]
    return source_batch.tasks_of(options.parse(settings, streaming=False), ranges)


def test_many_partitions_are_as_many_tasks_as_told() -> None:
    assert len(tasks(10_000, 200)) == 10_000
    assert len(tasks(10_000, 200, maxPartitions="4")) == 4
    assert len(tasks(10_000, 200, maxPartitions="4", minRecordsPerPartition="1000000")) == 2
    assert len(tasks(10_000, 200, maxPartitions="4", maxRecordsPerPartition="250000")) == 8


class ToldSizes:
    """Records of 1 MiB in the topic `large`, of 100 bytes in any other."""

    def __init__(self, _options: SourceOptions) -> None:
        self.measured: set[TopicPartition] = set()

    def measure(self, start: Offsets, end: Offsets, waited: Offsets) -> None:
        assert not waited
        self.measured = {place for place in end if end[place] > start[place]}

    def of(self, topic: str) -> int:
        assert topic in {place.topic for place in self.measured}
        return 1 << 20 if topic == "large" else 100


def joined(monkeypatch: pytest.MonkeyPatch, *ranges: OffsetRange) -> list[list[OffsetRange]]:
    monkeypatch.setattr(source_batch, "RecordSizes", ToldSizes)
    settings = {"kafka.bootstrap.servers": "x:1", "subscribe": "a", "joinPartitions": "4"}
    groups = source_batch.joined(options.parse(settings, streaming=False), ranges)
    assert [span for group in groups for span in group] == list(ranges)
    return groups


def test_small_partitions_share_a_task_while_there_are_as_many_as_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = [OffsetRange("a", number, 7, 207) for number in range(100)]

    assert [len(group) for group in joined(monkeypatch, *small)] == [25] * 4


def test_a_large_partition_is_not_cut_and_others_share_half_a_second_of_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = OffsetRange("large", 0, 0, 10_000)
    middling = [OffsetRange("large", number, 0, 16) for number in range(1, 37)]

    assert joined(monkeypatch, large, *middling)[0] == [large]
    # 36 ranges of 16 MiB are nine tasks of 64 MiB, so each of four cores has three.
    assert [len(group) for group in joined(monkeypatch, *middling)] == [3] * 12


def test_few_partitions_are_a_task_each_and_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(source_batch, "RecordSizes")

    assert plan(monkeypatch, joinPartitions="1") == [OffsetRange("a", 0, 10, 20)]
