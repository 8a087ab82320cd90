"""Ready only when a client would succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.image import NO_CONTROLLER
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.partitions.journal_partition import JournalState
from minibroker.control.health import reasons_not_ready
from minibroker.rig.node import Node

if TYPE_CHECKING:
    from minibroker.testing import Broker


def reasons(broker: Broker) -> list[str]:
    sentences: list[str] = broker.call(lambda: reasons_not_ready(broker._node))
    return sentences


def test_a_broker_that_serves_is_ready(kafka_broker: Broker) -> None:
    assert reasons(kafka_broker) == []


def test_a_node_that_has_not_started_is_not() -> None:
    assert reasons_not_ready(Node(BrokerConfig({}))) == ["the broker is starting"]


@pytest.mark.parametrize("kind", ["paused", "killed"])
def test_nor_is_one_that_a_fault_keeps_from_serving(kafka_broker: Broker, kind: str) -> None:
    with kafka_broker.faults.add(broker=kind):
        assert reasons(kafka_broker) == [f"the broker is {kind} by a fault"]
    assert reasons(kafka_broker) == []


def test_nor_without_a_controller(kafka_broker: Broker) -> None:
    image = kafka_broker._node.app.cluster.image
    image.controller_id, controller_id = NO_CONTROLLER, image.controller_id
    assert reasons(kafka_broker) == ["no controller is known"]
    image.controller_id = controller_id


def test_nor_while_coordinators_load_or_a_directory_is_gone(kafka_broker: Broker) -> None:
    broker = kafka_broker._node.app
    kafka_broker.create_topic("__consumer_offsets")
    kafka_broker.create_topic("__transaction_state")
    assert reasons(kafka_broker) == []
    journals = (broker.services.groups.journal, broker.services.transactions.journal)
    for journal in journals:
        journal._partitions[0].state = JournalState.LOADING
    broker.logs.directories[0].is_offline = True
    assert reasons(kafka_broker) == [
        "offline log directories: 1 of 1; the log names them",
        "the group coordinator is loading",
        "the transaction coordinator is loading",
    ]
    broker.logs.directories[0].is_offline = False
    for journal in journals:
        journal._partitions[0].state = JournalState.ACTIVE
