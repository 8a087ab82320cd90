"""ElectLeaders where another broker is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.handlers.elect_leaders import _partitions_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.support.turns import Turns

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


@pytest.mark.parametrize("version", range(3))
async def test_only_the_controller_elects(
    deposed: InProcessBroker, client: RawClient, version: int
) -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    answer = await client.call(request, version)
    assert answer.error_code == 0
    assert (
        answer.replica_election_results[0].partition_result[0].error_code
        == ErrorCode.NOT_CONTROLLER
    )


async def test_a_partition_named_again_is_answered_once(client: RawClient) -> None:
    topics = [TopicPartitions(topic="t", partitions=[1, 0, 1]), TopicPartitions(topic="t")]
    topics += [TopicPartitions(topic="t", partitions=[0, 7])]
    (result,) = (
        await client.call(ElectLeadersRequest(topic_partitions=topics), 1)
    ).replica_election_results
    assert [part.partition_id for part in result.partition_result] == [1, 0, 7]


async def test_others_are_served_while_many_leaders_are_elected(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    await running.create_topic("wide", 60)
    turns = Turns()
    await client.call(ElectLeadersRequest(topic_partitions=None), 1)
    assert turns.stop() >= 60


def test_repeating_a_topic_costs_no_more_than_its_bytes() -> None:
    """Every index was looked for in a list of all before: 200,000 took minutes."""

    class Index(int):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Index.compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    topics = [
        TopicPartitions(topic="t", partitions=[Index(start + index) for index in range(300)])
        for start in (0, 300)
    ]
    partitions = _partitions_of(None, ElectLeadersRequest(topic_partitions=topics))  # type: ignore[arg-type]
    assert len(partitions["t"]) == 600
    assert Index.compared < 600
