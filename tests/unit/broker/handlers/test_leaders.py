"""Leaders as the client's listener sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from minibroker.broker.cluster.image import BrokerInfo, Endpoint, MetadataImage, TopicImage
from minibroker.broker.handlers.common.leaders import LeaderHints, endpoint_of, visible_leader
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicId
from minibroker.kafka.protocol.messages.fetch import LeaderIdAndEpoch, NodeEndpoint
from tests.unit.broker.partitions.conftest import partition_image


@pytest.fixture
def context() -> Any:
    """Two brokers; the second lacks the listener EXTERNAL by which the client came."""
    image = MetadataImage()
    inside = [Endpoint("INTERNAL", f"in{n}", 9000 + n) for n in (1, 2)]
    outside = Endpoint("EXTERNAL", "out1", 9100)
    image.brokers = {
        1: BrokerInfo(1, (inside[0], outside), rack="r"),
        2: BrokerInfo(2, (inside[1],)),
    }
    states = [
        partition_image(leader=1, epoch=5),
        partition_image(leader=2),
        partition_image(leader=-1),
    ]
    image.topics["t"] = TopicImage("t", TopicId(bytes(16)), states)
    return SimpleNamespace(
        listener=SimpleNamespace(name="EXTERNAL"),
        services=SimpleNamespace(cluster=SimpleNamespace(image=image)),
    )


def test_the_endpoint_is_that_of_the_clients_listener(context: Any) -> None:
    brokers = context.services.cluster.image.brokers
    endpoint = endpoint_of(context, brokers[1])
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("out1", 9100)
    assert endpoint_of(context, brokers[2]) is None


def test_a_hint_names_leader_and_epoch_and_its_address_once(context: Any) -> None:
    nodes: list[Any] = []
    hints = LeaderHints(context, nodes, (LeaderIdAndEpoch, NodeEndpoint))
    for _ in range(2):
        leader = hints.of("t", 0)
        assert (leader.leader_id, leader.leader_epoch) == (1, 5)
    assert [(n.node_id, n.host, n.port, n.rack) for n in nodes] == [(1, "out1", 9100, "r")]


def test_a_leader_without_the_listener_or_none_at_all_has_no_address(context: Any) -> None:
    nodes: list[Any] = []
    hints = LeaderHints(context, nodes, (LeaderIdAndEpoch, NodeEndpoint))
    assert hints.of("t", 1).leader_id == 2
    assert hints.of("t", 2).leader_id == -1
    assert nodes == []


@pytest.mark.parametrize(("topic", "index"), [("u", 0), ("t", 3), ("t", -1)])
def test_a_place_that_does_not_exist_has_no_leader(context: Any, topic: str, index: int) -> None:
    assert LeaderHints(context, [], (LeaderIdAndEpoch, NodeEndpoint)).of(topic, index) is None


def test_a_leader_is_visible_by_the_clients_listener_only(context: Any) -> None:
    states = context.services.cluster.image.topics["t"].partitions
    assert [visible_leader(context, state) for state in states] == [
        (ErrorCode.NONE, 1),
        (ErrorCode.LISTENER_NOT_FOUND, -1),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ]
