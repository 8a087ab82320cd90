"""Options of the source: Spark's names and rules, each mistake one sentence that names it."""

from __future__ import annotations

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.offsets import EARLIEST, LATEST

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}
TOPIC = {**BROKER, "subscribe": "orders"}


def batch(**more: str) -> options.SourceOptions:
    return options.parse({**TOPIC, **more}, streaming=False)


def stream(**more: str) -> options.SourceOptions:
    return options.parse({**TOPIC, **more}, streaming=True)


def test_a_batch_reads_everything_and_a_stream_new_records() -> None:
    assert batch().start.everywhere == EARLIEST
    assert batch().end.everywhere == LATEST
    assert stream().start.everywhere == LATEST


def test_names_are_case_insensitive_as_sparks_are() -> None:
    assert batch(STARTINGOFFSETS="Earliest", INCLUDEheaders="TRUE").include_headers


def test_a_timestamp_for_all_wins_over_one_each_and_that_over_offsets() -> None:
    offsets = {"startingOffsets": '{"orders": {"0": 3}}'}
    each = {"startingOffsetsByTimestamp": '{"orders": {"0": 1000}}'}
    bound = {"startingTimestamp": "2000"}

    assert batch(**offsets, **each, **bound).start == options.Bound(timestamp_ms=2000)
    assert batch(**offsets, **each).start.timestamps_ms == {TopicPartition("orders", 0): 1000}
    assert batch(**offsets).start.offsets == {TopicPartition("orders", 0): 3}


def test_topics_are_split_and_partitions_sorted() -> None:
    assert options.parse({**BROKER, "subscribe": " a, b,a,"}, streaming=True).topics == ("a", "b")
    assigned = options.parse({**BROKER, "assign": '{"a": [2, 0]}'}, streaming=True).assigned
    assert assigned == (TopicPartition("a", 0), TopicPartition("a", 2))


def test_options_with_the_prefix_kafka_are_the_clients() -> None:
    expected = batch(**{"kafka.isolation.level": "read_committed", "kafka.client.id": "x"})

    assert expected.client == {
        "bootstrap.servers": "localhost:9092",
        "isolation.level": "read_committed",
        "client.id": "x",
    }
    assert expected.isolation_level == "read_committed"
    assert batch().isolation_level == "read_uncommitted"


@pytest.mark.parametrize(("text", "ms"), [("15m", 900_000), ("90s", 90_000), ("1h", 3_600_000)])
def test_a_delay_is_a_number_and_a_unit(text: str, ms: int) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay_ms == ms


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"startingOffset": "x"}, "no option 'startingoffset'; startingOffsets is one"),
        ({"subscribePattern": ".*"}, "subscribe and subscribePattern are given"),
        ({"startingOffsets": "first"}, "startingOffsets is 'first', expected earliest, latest"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "has -3 for a-0"),
        ({"startingOffsetsByTimestamp": '{"a": {"0": -3}}'}, "negative timestamp"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is '0', expected a whole number"),
        ({"minPartitions": "many"}, "minPartitions is 'many'"),
        ({"includeHeaders": "yes"}, "includeHeaders is 'yes', expected false or true"),
        ({"emit": "offsets"}, "emit is 'offsets', expected records or ranges"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss is 'no', expected true or false"),
        ({"batchPause": "soon"}, "batchPause is 'soon'"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay is 'soon'"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "more than maxOffsets"),
        ({"kafka.auto.offset.reset": "latest"}, "cannot be set: say startingOffsets"),
        ({"kafka.key.deserializer": "x"}, "cannot be set: keys are bytes"),
        ({"kafka.isolation.level": "dirty"}, "isolation.level is 'dirty'"),
        ({"kafka.bootstrap.servers": " "}, "kafka.bootstrap.servers is missing"),
        ({"subscribe": " , "}, "name a topic"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "expected error or latest"),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_a_mistake_is_named_with_what_was_expected(
    settings: dict[str, str], sentence: str, streaming: bool
) -> None:
    with pytest.raises(PipelineError, match=sentence):
        options.parse({**TOPIC, **settings}, streaming=streaming)


def test_a_batch_read_has_records() -> None:
    assert options.parse({**TOPIC, "emit": "ranges"}, streaming=True).emits_ranges
    with pytest.raises(PipelineError, match="emit=ranges is for streams"):
        options.parse({**TOPIC, "emit": "ranges"}, streaming=False)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "exactly one of .* none is given"),
        ({"subscribePattern": "("}, "is no regular expression"),
        ({"subscribePattern": " "}, "is empty"),
        ({"assign": "a"}, "expected topics and their partitions"),
        ({"assign": '{"a": 1}'}, "expected topics and their partitions"),
        ({"assign": '{"a": [-1]}'}, "expected topics and their partitions"),
        ({"assign": '{"a": []}'}, "expected topics and their partitions"),
    ],
)
def test_topics_must_be_named_once_and_correctly(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        options.parse({**BROKER, **settings}, streaming=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startingOffsets", "latest"),
        ("startingOffsets", '{"a": {"0": -1}}'),
        ("endingOffsets", "earliest"),
        ("endingOffsets", '{"a": {"0": -2}}'),
    ],
)
def test_a_batch_that_would_read_nothing_is_refused(name: str, value: str) -> None:
    with pytest.raises(PipelineError, match=f"{name} is .* which a batch cannot"):
        batch(**{name: value})


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(PipelineError, match=f"{name} is for batches"):
        stream(**{name: "latest"})


def test_topics_are_named_as_the_user_named_them() -> None:
    assert batch().topics_text == "topic 'orders'"
    assert (
        options.parse({**BROKER, "subscribe": "a,b"}, streaming=True).topics_text == "topics a, b"
    )
    assert options.parse({**BROKER, "subscribePattern": "a.*"}, streaming=True).topics_text == (
        "pattern 'a.*'"
    )


def test_tasks_share_the_bytes_of_a_second() -> None:
    both = {"maxBytesPerSecond": "1000", "maxPartitions": "4"}

    assert batch(**both).task_bytes_per_second == 250
    assert batch().task_bytes_per_second == 0
    with pytest.raises(PipelineError, match="maxBytesPerSecond is 1000 and maxPartitions is not"):
        batch(maxBytesPerSecond="1000")


def test_one_option_decides_about_the_tasks() -> None:
    assert batch(joinPartitions="8").join_partitions == 8
    with pytest.raises(PipelineError, match="joinPartitions is 8 and minPartitions is given"):
        batch(joinPartitions="8", minPartitions="2")
    with pytest.raises(PipelineError, match="joinPartitions is for batches"):
        stream(joinPartitions="8")


def test_sizes_in_bytes_begin_with_one() -> None:
    assert stream(maxBytesPerTrigger="5").max_bytes_per_trigger == 5
    with pytest.raises(PipelineError, match="maxBytesPerTrigger is '0'"):
        stream(maxBytesPerTrigger="0")
