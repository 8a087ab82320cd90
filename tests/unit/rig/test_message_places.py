"""Places in messages of several shapes: found, taken out, put together, given an error."""

from __future__ import annotations

from typing import Any

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.delete_records import DeleteRecordsRequest
from minibroker.kafka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from minibroker.kafka.protocol.messages.join_group import JoinGroupResponse
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from minibroker.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from minibroker.rig.message_places import give_error, has_places, merge, places_in, take_out

ID = bytes(range(16))
CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER


def name_of(topic_id: bytes) -> str | None:
    return "by-id" if topic_id == ID else None


def places(message: Any) -> set[tuple[str, int | None]]:
    return set(places_in(message, name_of))


def produce(*topics: tuple[str, list[int]]) -> ProduceRequest:
    return ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=index) for index in indexes]
            )
            for name, indexes in topics
        ],
    )


def test_places_of_many_shapes() -> None:
    assert places(produce(("a", [0, 1]), ("b", [2]))) == {("a", 0), ("a", 1), ("b", 2)}
    by_id = ProduceRequest(
        topic_data=[TopicProduceData(topic_id=ID, partition_data=[PartitionProduceData(index=3)])]
    )
    assert places(by_id) == {("by-id", 3)}
    topics = [MetadataRequestTopic(name="a"), MetadataRequestTopic(name=None, topic_id=ID)]
    assert places(MetadataRequest(topics=topics)) == {("a", None), ("by-id", None)}
    plain = OffsetFetchRequest(topics=[OffsetFetchRequestTopic(name="a", partition_indexes=[4])])
    assert places(plain) == {("a", 4)}
    inner = [OffsetFetchRequestTopics(name="b", partition_indexes=[5])]
    grouped = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=inner)])
    assert places(grouped) == {("b", 5)}
    assert places(DeleteRecordsRequest()) == set()


def test_covered_places_are_taken_out_and_the_rest_stays() -> None:
    request = produce(("a", [0, 1]), ("b", [0]))
    parts = take_out(request, lambda topic, index: topic == "a" and index == 0, name_of)
    assert parts is not None
    assert places(parts) == {("a", 0)}
    assert parts.acks == 1  # type: ignore[attr-defined]
    assert places(request) == {("a", 1), ("b", 0)}
    assert take_out(request, lambda topic, _: topic == "c", name_of) is None
    assert take_out(request, lambda _topic, _index: True, name_of) is not None
    assert not has_places(request, name_of)


def answer(*topics: tuple[str, dict[int, int]]) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=name,
                partition_responses=[
                    PartitionProduceResponse(index=index, error_code=code, base_offset=7)
                    for index, code in codes.items()
                ],
            )
            for name, codes in topics
        ]
    )


def codes(response: ProduceResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.name, part.index): part.error_code
        for topic in response.responses
        for part in topic.partition_responses
    }


def test_answers_are_put_together_topic_by_topic() -> None:
    whole = answer(("a", {1: 0}), ("b", {0: 0}))
    merge(whole, answer(("a", {0: 6}), ("c", {0: 6})))
    assert codes(whole) == {("a", 1): 0, ("a", 0): 6, ("b", 0): 0, ("c", 0): 6}
    assert [topic.name for topic in whole.responses] == ["a", "b", "c"]


def test_an_error_goes_where_it_is_to_go() -> None:
    response = answer(("a", {0: 0, 1: 0}), ("b", {0: 0}))
    give_error(response, CODE, lambda t, p: (t, p) == ("a", 1), name_of, whole=False)
    assert codes(response) == {("a", 0): 0, ("a", 1): CODE, ("b", 0): 0}
    assert response.responses[0].partition_responses[1].base_offset == -1
    give_error(response, CODE, lambda _t, _p: True, name_of, whole=True)
    assert set(codes(response).values()) == {CODE}


def test_a_topic_of_metadata_gets_it_in_its_partitions() -> None:
    topic = MetadataResponseTopic(
        name="a", partitions=[MetadataResponsePartition(partition_index=0, leader_id=1)]
    )
    response = MetadataResponse(topics=[topic, MetadataResponseTopic(name="empty")])
    give_error(response, CODE, lambda _t, _p: True, name_of, whole=True)
    assert (topic.partitions[0].error_code, topic.partitions[0].leader_id) == (CODE, -1)
    assert topic.error_code == 0
    assert response.topics[1].error_code == CODE


def test_an_answer_without_parts_gets_it_itself() -> None:
    joined = JoinGroupResponse()
    give_error(joined, CODE, lambda _t, _p: True, name_of, whole=True)
    assert joined.error_code == CODE
    response = FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=0)])
    give_error(response, CODE, lambda _t, _p: True, name_of, whole=True)
    assert (response.coordinators[0].error_code, response.coordinators[0].node_id) == (CODE, -1)
