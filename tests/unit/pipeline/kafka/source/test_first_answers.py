"""Questions to the brokers: their number and order, for the driver and for small ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from minibroker.client.client import PartitionLeader
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.kafka.options import Bound
from minibroker.pipeline.kafka.source.first_answers import SMALL_MAX, first_answers
from minibroker.pipeline.kafka.source.topics import TopicOffsets
from minibroker.pipeline.offsets import LATEST, OffsetRange, Offsets

if TYPE_CHECKING:
    from collections.abc import Mapping


BROKERS = 3
RECORD = b"r" * 100
TOPIC_ID = bytes(range(16))


class ToldBrokers:
    """Client, connection and brokers in one: a partition has a record, its leader by its number."""

    def __init__(self, **errors: int) -> None:
        self.requests: list[FetchRequest] = []
        self.connections = 0
        self.errors = errors
        """Topic → error code of its partitions."""
        self.failure: Exception | None = None
        self.more: list[FetchableTopicResponse] = []
        """Topics of each answer that nobody asked for."""

    def leader(self, topic: str, partition: int) -> PartitionLeader:
        return PartitionLeader(("x", partition % BROKERS), 5, TOPIC_ID)

    def connection(self, address: tuple[str, int]) -> ToldBrokers:
        self.connections += 1
        return self

    def give_back(self, connection: ToldBrokers) -> None:
        self.connections -= 1

    def close(self) -> None:
        self.connections -= 1

    def version_for(self, request: Any, oldest: int, newest: int) -> int:
        return 12  # topics by name, so that a test may have several with one id

    def call(self, request: FetchRequest, response: Any, version: int) -> FetchResponse:
        """Fill the answer in the order of the request, as Kafka does."""
        self.requests.append(request)
        if self.failure is not None:
            raise self.failure
        bytes_left, answers = request.max_bytes, []
        for topic in request.topics:
            code = self.errors.get(topic.topic, 0)
            events = []
            for partition in topic.partitions:
                records = RECORD if bytes_left >= len(RECORD) and not code else b""
                bytes_left -= len(records)
                events.append(
                    PartitionData(
                        partition_index=partition.partition, records=records, error_code=code
                    )
                )
            answers.append(FetchableTopicResponse(topic=topic.topic, partitions=events))
        return FetchResponse(responses=[*self.more, *answers])


def answers(
    brokers: ToldBrokers, ranges: list[OffsetRange], **more: str
) -> list[tuple[OffsetRange, PartitionData | None]]:
    all_settings = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", **more}
    source_options = options.parse(all_settings, streaming=False)
    settings = connection_settings(source_options.settings)
    results = list(first_answers(source_options, settings, cast("Any", brokers), ranges))
    assert [span for span, _ in results] == ranges
    assert brokers.connections == 0
    return results


def test_ten_thousand_partitions_are_thirty_requests() -> None:
    brokers = ToldBrokers()
    ranges = [OffsetRange("t", number, 7, 8) for number in range(10_000)]
    results = answers(brokers, ranges)
    assert all(
        data is not None and data.partition_index == span.partition for span, data in results
    )
    assert len(brokers.requests) == 10_000 // 1_000 * BROKERS
    first_request = brokers.requests[0].topics[0].partitions[0]
    assert (
        first_request.partition,
        first_request.fetch_offset,
        first_request.current_leader_epoch,
    ) == (0, 7, 5)


def test_a_range_that_had_no_room_in_an_answer_is_asked_for_again() -> None:
    brokers = ToldBrokers()
    ranges = [OffsetRange("t", number, 0, 1) for number in range(0, 3 * 25, 3)]
    results = answers(brokers, ranges, **{"kafka.fetch.max.bytes": str(10 * len(RECORD))})
    assert all(data is not None for _, data in results)
    assert [len(request.topics[0].partitions) for request in brokers.requests] == [25, 15, 5]


def test_large_ranges_and_repeated_partitions_are_read_one_by_one() -> None:
    brokers = ToldBrokers()
    large = [OffsetRange("t", number, 0, SMALL_MAX + 1) for number in range(3)]
    again = [OffsetRange("t", 5, 0, 1), OffsetRange("t", 5, 1, 2)]
    assert [data for _, data in answers(brokers, [*large, *again])] == [None] * 5
    assert not brokers.requests


def test_a_topic_that_was_not_asked_for_is_left_out() -> None:
    brokers = ToldBrokers()
    data_of_another = PartitionData(partition_index=0, records=b"of another")
    brokers.more = [
        FetchableTopicResponse(topic_id=bytes(range(1, 17)), partitions=[data_of_another])
    ]
    ranges = [OffsetRange("t", number, 0, 1) for number in (0, 3)]
    assert [
        data_of_another and data_of_another.records
        for _, data_of_another in answers(brokers, ranges)
    ] == [RECORD, RECORD]


@pytest.mark.parametrize("failure", [ConnectionResetError("gone"), None])
def test_a_failure_is_left_to_the_reader_of_each_range(failure: Exception | None) -> None:
    brokers = ToldBrokers(gone=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    brokers.failure = failure
    ranges = [OffsetRange("gone", 0, 0, 1), OffsetRange("t", 0, 0, 1)]
    results = [data for _, data in answers(brokers, ranges)]
    if failure is not None:
        assert results == [None, None]
        return
    first, second = results
    assert first is not None
    assert second is not None
    assert (first.error_code, second.records) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, RECORD)


A, B = TopicPartition("a", 0), TopicPartition("b", 0)
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "a,b"}


class GrowingTopics(TopicOffsets):
    """Topics that get a record after each question."""

    def __init__(self, ends: Offsets, at: Offsets) -> None:
        super().__init__(options.parse(OPTIONS, streaming=True))
        self._ends = ends
        self._at = at

    def _list_offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        is_end = set(times.values()) == {LATEST}
        offsets = {place: (self._ends if is_end else self._at)[place] for place in times}
        self._ends = {place: end + 1 for place, end in self._ends.items()}
        return offsets


def test_a_record_between_two_questions_is_not_skipped() -> None:
    """No record of B is so late: it begins at the end that it had before that answer."""
    topics = GrowingTopics({A: 5, B: 7}, {A: 3, B: -1})
    bound = Bound(timestamp_ms=1000)
    assert topics.at(bound, [A, B], side="starting", where_none=LATEST) == {A: 3, B: 7}


def test_a_time_without_records_is_refused_unless_the_end_is_meant() -> None:
    topics = GrowingTopics({A: 5}, {A: -1})
    with pytest.raises(PipelineError, match="a-0 has no record at that time or later"):
        topics.at(Bound(timestamp_ms=1000), [A], side="starting", where_none=0)
