"""The versions of the requests that brokers of a release send each other."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.inter_broker import InterBrokerProtocol
from minibroker.kafka.protocol.messages.fetch import FetchRequest
from minibroker.kafka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from minibroker.kafka.protocol.messages.list_offsets import ListOffsetsRequest
from minibroker.kafka.protocol.messages.stop_replica import StopReplicaRequest
from minibroker.kafka.protocol.messages.update_metadata import UpdateMetadataRequest


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("0.10.2-IV0", (12, 6, 5, 7, 3)),
        ("2.8", (12, 6, 5, 7, 3)),
        ("2.8.1", (12, 6, 5, 7, 3)),
        ("3.0-IV0", (12, 6, 5, 7, 3)),
        ("3.0", (12, 7, 5, 7, 3)),
        ("3.1", (13, 7, 5, 7, 3)),
        ("3.2", (13, 7, 6, 7, 3)),
        ("3.3", (13, 7, 6, 7, 3)),
        ("3.4", (13, 7, 7, 8, 4)),
        ("3.5-IV0", (14, 8, 7, 8, 4)),
        ("3.5", (15, 8, 7, 8, 4)),
        ("3.6", (15, 8, 7, 8, 4)),
        ("3.7-IV3", (15, 8, 7, 8, 4)),
        ("3.7", (16, 8, 7, 8, 4)),
        ("3.8", (16, 8, 7, 8, 4)),
        ("3.9-IV0", (17, 9, 7, 8, 4)),
        ("4.0", (17, 9, 7, 8, 4)),
    ],
)
def test_a_protocol_has_the_versions_of_kafka(text: str, versions: tuple[int, ...]) -> None:
    protocol = InterBrokerProtocol.parse(text)
    codes = {
        FetchRequest: protocol.fetch,
        ListOffsetsRequest: protocol.list_offsets,
        LeaderAndIsrRequest: protocol.leader_and_isr,
        UpdateMetadataRequest: protocol.update_metadata,
        StopReplicaRequest: protocol.stop_replica,
    }
    assert tuple(codes.values()) == versions
    for request, version in codes.items():
        assert request.VERSIONS[0] <= version <= request.VERSIONS[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.9-IV0", True),
        ("4.4", True),
        ("2.8", True),
        ("2.8-IV0", True),
        ("2.7", True),
        ("2.7-IV2", True),
        ("2.7-IV1", False),
        ("2.6", False),
        ("2.6-IV0", False),
        ("0.10.2.1", False),
    ],
)
def test_leaders_ask_the_controller_since_2_7_iv2(text: str, expected: bool) -> None:
    assert InterBrokerProtocol.parse(text).asks_controller is expected


@pytest.mark.parametrize(
    ("text", "expected"), [("2.8", False), ("3.1", False), ("3.2-IV0", True), ("3.9", True)]
)
def test_a_leader_is_recovering_since_3_2(text: str, expected: bool) -> None:
    assert InterBrokerProtocol.parse(text).marks_recovery is expected


def test_the_protocol_of_a_broker_is_that_of_3_9() -> None:
    assert BrokerConfig({}).inter_broker_protocol == InterBrokerProtocol(3, 9, 0)
