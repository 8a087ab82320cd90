"""A stream against topics that are told: limits, newcomers, losses, frozen ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.source import stream as source_stream
from minibroker.pipeline.kafka.source.stream import StreamReader
from minibroker.pipeline.offsets import Offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.pipeline.kafka.source.batch import RangePartition
    from minibroker.pipeline.kafka.source.sizes import RecordSizes
    from minibroker.pipeline.kafka.source.topics import TopicOffsets

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class ToldTopics:
    """Topics that a test sets."""

    def __init__(self, ends: Offsets) -> None:
        self.begins: Offsets = {}
        self.ends = ends
        self.ids: dict[str, str] = {}

    def partitions(
        self, *, missing_allowed: bool = False, patient: bool = False
    ) -> list[TopicPartition]:
        assert patient
        assert isinstance(missing_allowed, bool)
        return sorted(self.ends)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {partition: self.begins.get(partition, 0) for partition in partitions}

    def latest(
        self, partitions: Iterable[TopicPartition], *, last_ends: Mapping[TopicPartition, int]
    ) -> Offsets:
        assert last_ends is not None
        return {partition: self.ends[partition] for partition in partitions}


def stream(topics: ToldTopics, **more: str) -> StreamReader:
    stream = StreamReader({"kafka.bootstrap.servers": "x:1", "subscribePattern": ".*", **more})
    stream._topics_or_none = cast("TopicOffsets", topics)
    return stream


def ranges(reader: StreamReader, start: Any, end: Any) -> list[tuple[Any, ...]]:
    tasks = cast("list[RangePartition]", reader.partitions(start, end))
    return [tuple(span) for task in tasks for span in task.ranges]


def test_without_a_limit_a_batch_takes_what_there_is() -> None:
    reader = stream(ToldTopics({A: 7, B: 3}))

    end = reader.latestOffset({"a": {"0": 2}, "b": {"0": 3}}, ReadAllAvailable())

    assert end == {"a": {"0": 7}, "b": {"0": 3}}
    assert ranges(reader, {"a": {"0": 2}, "b": {"0": 3}}, end) == [("a", 0, 2, 7)]
    assert reader.reportLatestOffset() == end


def test_the_limit_of_the_options_is_what_spark_hands_back() -> None:
    reader = stream(ToldTopics({A: 100}), maxOffsetsPerTrigger="30")

    assert reader.getDefaultReadLimit() == ReadMaxRows(30)
    assert reader.latestOffset({"a": {"0": 0}}, ReadMaxRows(30)) == {"a": {"0": 30}}
    assert reader.latestOffset({"a": {"0": 0}}, ReadAllAvailable()) == {"a": {"0": 100}}


def test_too_few_are_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(source_stream.time, "monotonic", lambda: now[0])
    reader = stream(ToldTopics({A: 5}), minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    start = {"a": {"0": 0}}
    assert reader.getDefaultReadLimit() == ReadMinRows(10)

    assert reader.latestOffset(start, ReadMinRows(10)) == start
    now[0] += 61
    assert reader.latestOffset(start, ReadMinRows(10)) == {"a": {"0": 5}}


def test_a_pause_begins_once_a_batch_has_reached_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(source_stream.time, "monotonic", lambda: now[0])
    topics = ToldTopics({A: 25})
    reader = stream(topics, maxOffsetsPerTrigger="10", batchPause="60s")

    def end_after(offset: int) -> int:
        offsets = reader.latestOffset({"a": {"0": offset}}, ReadMaxRows(10))
        return int(offsets["a"]["0"])

    assert [end_after(0), end_after(10), end_after(20)] == [10, 20, 25]
    topics.ends = {A: 45}
    now[0] += 59
    assert end_after(25) == 25
    now[0] += 1
    assert [end_after(25), end_after(35)] == [35, 45]
    now[0] += 60
    assert end_after(45) == 45
    topics.ends = {A: 46}
    assert end_after(45) == 46, "after a time without records the first one is not delayed"
    assert end_after(46) == 46


def test_a_pause_holds_without_a_limit_and_not_for_a_frozen_end() -> None:
    topics = ToldTopics({A: 5})
    reader = stream(topics, batchPause="1h")
    assert reader.latestOffset({"a": {"0": 0}}, ReadAllAvailable()) == {"a": {"0": 5}}
    topics.ends = {A: 7}
    assert reader.latestOffset({"a": {"0": 5}}, ReadAllAvailable()) == {"a": {"0": 5}}
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"a": {"0": 5}}, ReadAllAvailable()) == {"a": {"0": 7}}


def test_available_now_freezes_the_end_and_waits_for_no_minimum() -> None:
    topics = ToldTopics({A: 5})
    reader = stream(topics, minOffsetsPerTrigger="10")
    reader.prepareForTriggerAvailableNow()
    topics.ends = {A: 50, B: 4}

    assert reader.latestOffset({"a": {"0": 0}}, ReadMinRows(10)) == {"a": {"0": 5}}
    assert reader.latestOffset({"a": {"0": 5}}, ReadMinRows(10)) == {"a": {"0": 5}}


def test_a_newcomer_is_read_from_its_first_record_within_the_limit() -> None:
    topics = ToldTopics({A: 5, B: 20})
    topics.begins = {B: 0}
    reader = stream(topics, maxOffsetsPerTrigger="8")

    end = reader.latestOffset({"a": {"0": 5}}, ReadMaxRows(8))

    assert end == {"a": {"0": 5}, "b": {"0": 8}}
    assert ranges(reader, {"a": {"0": 5}}, end) == [("b", 0, 0, 8)]


def test_a_newcomer_that_lost_its_first_records_is_data_loss() -> None:
    topics = ToldTopics({A: 5, B: 20})
    topics.begins = {B: 12}

    with pytest.raises(PipelineError, match=r"b-0 came since .* starts at offset 12"):
        stream(topics).latestOffset({"a": {"0": 5}}, ReadAllAvailable())
    tolerant = stream(topics, failOnDataLoss="false")
    end = tolerant.latestOffset({"a": {"0": 5}}, ReadAllAvailable())
    assert ranges(tolerant, {"a": {"0": 5}}, end) == [("b", 0, 12, 20)]


@pytest.mark.parametrize(
    ("ends", "sentence"), [({A: 3}, "a-0 went back from offset 5 to 3"), ({B: 1}, "a-0 .* gone")]
)
def test_lost_records_stop_the_stream_unless_allowed(ends: Offsets, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        stream(ToldTopics(ends)).latestOffset({"a": {"0": 5}}, ReadAllAvailable())
    tolerant = stream(ToldTopics(ends), failOnDataLoss="false")
    assert tolerant.latestOffset({"a": {"0": 5}}, ReadAllAvailable())


def test_many_tasks_share_a_large_partition() -> None:
    reader = stream(ToldTopics({A: 100}), minPartitions="4")

    pieces = ranges(reader, {"a": {"0": 0}}, {"a": {"0": 100}})

    assert pieces == [("a", 0, 0, 25), ("a", 0, 25, 50), ("a", 0, 50, 75), ("a", 0, 75, 100)]


def test_a_checkpoint_of_something_else_is_told() -> None:
    with pytest.raises(PipelineError, match="the position of the stream is"):
        stream(ToldTopics({A: 1})).latestOffset({"file": "x"}, ReadAllAvailable())


def test_a_topic_with_another_id_stops_the_stream_unless_allowed() -> None:
    position, ends = {"a": {"0": 5}}, {TopicPartition("a", 0): 9}
    ends_of_topics = ToldTopics(ends)
    for failing in (True, False):
        ends_of_topics.ids = {"a": "1"}
        running = (
            stream(ends_of_topics) if failing else stream(ends_of_topics, failOnDataLoss="false")
        )
        running.latestOffset(position, ReadAllAvailable())
        ends_of_topics.ids = {"a": "2"}
        if failing:
            with pytest.raises(PipelineError, match="topic 'a' was made anew since the stream"):
                running.latestOffset(position, ReadAllAvailable())
        else:
            assert running.latestOffset(position, ReadAllAvailable()) == {"a": {"0": 9}}


def test_an_id_that_the_options_name_is_no_matter_of_lost_records() -> None:
    """A job decides by `--on-recreated`, whatever it does about records that were removed."""
    ends_of_topics = ToldTopics({A: 9})
    ends_of_topics.ids = {"a": "2"}
    running = stream(ends_of_topics, failOnDataLoss="false", topicIds='{"a": "1"}')
    with pytest.raises(PipelineError, match="topic 'a' was made anew since the stream"):
        running.latestOffset({"a": {"0": 5}}, ReadAllAvailable())


class ToldSizes:
    """Records of 1,024 bytes; keeps what was asked."""

    def __init__(self) -> None:
        self.starts: list[Offsets] = []

    def measure(self, start: Offsets, end: Offsets, waited: Mapping[TopicPartition, int]) -> None:
        assert set(start) == set(end)
        assert set(waited) <= set(end)
        self.starts.append(dict(start))

    def of(self, topic: str) -> int:
        assert topic in ("a", "b")
        return 1024


def test_a_limit_in_bytes_lets_partitions_take_turns() -> None:
    reader = stream(ToldTopics({A: 9_000, B: 9_000}), maxBytesPerTrigger=str(1 << 20))
    sizes = ToldSizes()
    reader._sizes_or_none = cast("RecordSizes", sizes)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(1 << 20)

    first = reader.latestOffset({"a": {"0": 0}, "b": {"0": 0}}, limit)
    second = reader.latestOffset(first, limit)

    assert first == {"a": {"0": 1024}, "b": {"0": 0}}
    assert second == {"a": {"0": 1024}, "b": {"0": 1024}}
    assert sizes.starts == [{A: 0, B: 0}, {A: 1024, B: 0}]
    assert reader.latestOffset(second, ReadAllAvailable()) == {"a": {"0": 9_000}, "b": {"0": 9_000}}


def test_limits_in_bytes_and_in_offsets_hold_together() -> None:
    more = {"maxBytesPerTrigger": str(1 << 20), "maxOffsetsPerTrigger": "100"}
    reader = stream(ToldTopics({A: 9_000, B: 9_000}), **more)
    reader._sizes_or_none = cast("RecordSizes", ToldSizes())
    assert reader.getDefaultReadLimit() == ReadMaxRows(100)

    end = reader.latestOffset({"a": {"0": 0}, "b": {"0": 0}}, ReadMaxRows(100))

    assert end == {"a": {"0": 100}, "b": {"0": 0}}


def test_tasks_get_no_client_and_no_history() -> None:
    reader = stream(ToldTopics({A: 1}), maxBytesPerTrigger="1")
    reader._sizes_or_none = cast("RecordSizes", ToldSizes())
    reader._waited = {A: 1}

    state = reader.__getstate__()

    assert (state["_topics_or_none"], state["_sizes_or_none"], state["_waited"]) == (None, None, {})


def test_a_stream_of_ranges_has_them_as_the_rows_of_its_tasks() -> None:
    """Its offsets are those of a stream of records, so a checkpoint serves both."""
    reader = stream(ToldTopics({A: 30_000, B: 10_000}), emit="ranges", maxPartitions="2")
    start = {"a": {"0": 0}, "b": {"0": 0}}
    end = reader.latestOffset(start, ReadAllAvailable())

    tasks = reader.partitions(start, end)

    rows = [[tuple(row.values()) for row in next(reader.read(task)).to_pylist()] for task in tasks]
    assert rows == [[("a", 0, 0, 20_000)], [("a", 0, 20_000, 30_000), ("b", 0, 0, 10_000)]]
    assert end == {"a": {"0": 30_000}, "b": {"0": 10_000}}
