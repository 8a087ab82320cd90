"""The controller tells brokers of other processes of every change of the image."""

from __future__ import annotations

import asyncio
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import encode_broker
from minibroker.broker.cluster.image import BrokerInfo, Endpoint
from minibroker.broker.cluster.partition_states import STATES_PER_WRITE
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.replication import outboxes
from minibroker.broker.replication.outboxes import Outboxes
from minibroker.kafka.ids import TopicPartition
from tests.support.cluster import Recorder, add_broker, new_cluster
from tests.support.in_process import ManualClock
from tests.support.turns import Turns
from tests.support.waiting import eventually
from tests.unit.broker.replication.peers_of_kafka import (
    METADATA,
    ROLES,
    STOPS,
    RecordedPeers,
    partitions_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.evidence import DeletionEvidence
    from tests.unit.broker.replication.conftest import Pair

KAFKA = 7


class Controlled:
    """Broker 0, the controller, with its outboxes; brokers of Kafka are nodes in the tree only."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.home = SharedTree(directory / "metadata.db", ManualClock())
        self.tree = self.home.session()
        self.cluster = new_cluster(self.tree, Recorder(), delete_logs=self._delete_logs)
        self.outboxes = Outboxes(self.cluster, BrokerConfig(settings))
        self.outboxes.begin()
        self.deleted: list[str] = []

    async def _delete_logs(self, topic: TopicImage, _evidence: DeletionEvidence) -> None:
        self.deleted.append(topic.name)

    @property
    def peers(self) -> RecordedPeers:
        return cast("RecordedPeers", self.outboxes._peers)

    async def add_kafka(self, broker_id: int = KAFKA) -> None:
        """Register a broker of Kafka; it hears of the brokers before this returns."""
        parcel_count = len(self.peers.requests) if self.outboxes._peers else 0
        broker = BrokerInfo(broker_id, (Endpoint("PLAINTEXT", "127.0.0.1", 9097),))
        await self.tree.create(paths.broker(broker_id), encode_broker(broker, 0))
        await eventually(lambda: broker_id in self.cluster.image.brokers)
        await eventually(
            lambda: bool(self.outboxes._peers) and len(self.peers.requests) > parcel_count
        )

    async def remove_kafka(self, broker_id: int = KAFKA) -> None:
        await self.tree.delete(paths.broker(broker_id))
        await eventually(lambda: broker_id not in self.cluster.image.brokers)
        await eventually(lambda: broker_id not in self.outboxes._outboxes)

    async def until_told(self, *expected: tuple[int, list[tuple[str, int]]]) -> None:
        """Wait until these requests were sent, in this order, and no other."""
        brokers = list(expected)
        await eventually(lambda: len(self.peers.requests) >= len(brokers))
        assert self.peers.take() == brokers


@pytest.fixture
async def controlled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Controlled]:
    monkeypatch.setattr(outboxes, "PeerClient", RecordedPeers)
    new_controlled = Controlled(tmp_path)
    await new_controlled.cluster.start()
    yield new_controlled
    await new_controlled.cluster.close()
    await new_controlled.outboxes.close()


async def test_without_a_broker_of_kafka_nobody_is_told(controlled: Controlled) -> None:
    await controlled.cluster.create_topic("t")
    assert controlled.outboxes._peers is None
    assert controlled.outboxes._sent_states == {}


async def test_brokers_are_told_by_the_control_plane_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "PeerClient", RecordedPeers)
    settings = {
        "listeners": "PLAINTEXT://a:1,CONTROL://a:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
        "control.plane.listener.name": "CONTROL",
    }
    controlled = Controlled(tmp_path, **settings)
    await controlled.cluster.start()
    await controlled.add_kafka()
    assert controlled.peers.listener == "CONTROL"
    await controlled.cluster.close()
    await controlled.outboxes.close()


async def test_a_broker_that_comes_hears_everything_and_then_what_changes(
    controlled: Controlled,
) -> None:
    await controlled.cluster.create_topic("before")
    await controlled.add_kafka()
    await controlled.until_told((METADATA, [("before", 0)]))
    await controlled.cluster.create_topic("t", assignment={0: [KAFKA], 1: [0]})
    await controlled.until_told((ROLES, [("t", 0)]), (METADATA, [("t", 0), ("t", 1)]))


async def test_each_request_has_the_epochs(controlled: Controlled) -> None:
    await controlled.add_kafka()
    await eventually(lambda: bool(controlled.peers.requests))
    ((broker_id, request),) = controlled.peers.requests
    assert broker_id == KAFKA
    image = controlled.cluster.image
    assert (request.controller_id, request.controller_epoch) == (0, image.controller_epoch)
    assert request.broker_epoch == image.brokers[KAFKA].epoch
    assert {broker.id for broker in request.live_brokers} == {0, KAFKA}


async def test_a_changed_isr_is_metadata_and_a_new_epoch_a_role(controlled: Controlled) -> None:
    await controlled.add_kafka()
    cluster = controlled.cluster
    await cluster.create_topic("t", assignment={0: [0, KAFKA]})
    await eventually(lambda: len(controlled.peers.requests) == 3)
    controlled.peers.take()
    state = cluster.image.topics["t"].partitions[0]
    assert await cluster.leadership.change_isr(
        TopicPartition("t", 0),
        [0],
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
    )
    await controlled.until_told((METADATA, [("t", 0)]))
    await cluster.reassignments.alter("t", 0, [0])
    await controlled.until_told((METADATA, [("t", 0)]), (STOPS, [("t", 0)]))


async def test_a_broker_hears_of_a_new_topic_before_it_leads_an_older_one(
    controlled: Controlled,
) -> None:
    await controlled.add_kafka()
    await controlled.cluster.create_topic("old", assignment={0: [0, KAFKA]})
    await eventually(lambda: len(controlled.peers.requests) == 3)
    controlled.peers.take()
    controlled.peers.hold = asyncio.Event()
    await controlled.cluster.create_topic("first", assignment={0: [0]})
    await eventually(lambda: len(controlled.peers.requests) == 1)
    await controlled.cluster.create_topic("new", assignment={0: [0]})
    await controlled.cluster.reassignments.alter("old", 0, [KAFKA])
    controlled.peers.hold.set()
    await controlled.until_told(
        (METADATA, [("first", 0)]),
        (METADATA, [("new", 0)]),
        (ROLES, [("old", 0)]),
        (METADATA, [("old", 0)]),
    )


async def test_a_follower_that_shuts_down_fetches_no_more(controlled: Controlled) -> None:
    await controlled.add_kafka()
    await controlled.cluster.create_topic("t", assignment={0: [0, KAFKA], 1: [KAFKA, 0]})
    await eventually(lambda: len(controlled.peers.requests) == 3)
    controlled.peers.take()
    assert await controlled.cluster.leadership.shut_down_broker(KAFKA, -1) == []
    await eventually(lambda: len(controlled.peers.requests) >= 2)
    stops = [request for _, request in controlled.peers.requests if request.API_KEY == STOPS]
    states = [state for stop in stops for state in stop.topic_states[0].partition_states]
    assert [state.delete_partition for state in states] == [False] * len(states)
    assert {state.partition_index for state in states} == {0, 1}


async def test_a_topic_is_deleted_when_kafkas_brokers_have_deleted_it(
    controlled: Controlled,
) -> None:
    await controlled.add_kafka()
    await controlled.cluster.create_topic("t", assignment={0: [0, KAFKA]})
    await eventually(lambda: len(controlled.peers.requests) == 3)
    controlled.peers.take()
    await controlled.cluster.delete_topic("t")
    assert controlled.deleted == ["t"]
    assert controlled.peers.take() == [(METADATA, [("t", 0)]), (STOPS, [("t", 0)])]


async def test_a_deletion_waits_for_a_broker_that_is_away(controlled: Controlled) -> None:
    await controlled.add_kafka()
    await controlled.cluster.create_topic("t", assignment={0: [0, KAFKA]})
    await controlled.remove_kafka()
    await controlled.cluster.delete_topic("t")
    assert controlled.deleted == ["t"]
    assert await controlled.tree.exists("/admin/delete_topics/t") is not None
    controlled.peers.requests.clear()
    await controlled.add_kafka()
    await eventually(lambda: len(controlled.peers.requests) == 3)
    assert controlled.peers.take() == [
        (METADATA, []),
        (METADATA, [("t", 0)]),
        (STOPS, [("t", 0)]),
    ]


async def test_a_minibroker_that_is_another_process_hears_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "PeerClient", RecordedPeers)
    controlled = Controlled(tmp_path, **{"zookeeper.connect": "zookeeper.example:2181"})
    await controlled.cluster.start()
    await controlled.cluster.create_topic("before")
    await add_broker(controlled.cluster, controlled.tree, 3)
    await controlled.until_told((METADATA, [("before", 0)]))
    await controlled.cluster.create_topic("t", assignment={0: [0, 3]})
    await controlled.until_told((ROLES, [("t", 0)]), (METADATA, [("t", 0)]))
    assert set(controlled.outboxes._outboxes) == {3}
    await controlled.cluster.close()
    await controlled.outboxes.close()


async def test_a_minibroker_of_this_process_hears_of_deletions_alone(
    controlled: Controlled,
) -> None:
    await add_broker(controlled.cluster, controlled.tree, 3)
    await controlled.cluster.create_topic("t", assignment={0: [0, 3]})
    assert controlled.outboxes._peers is None
    await controlled.cluster.delete_topic("t")
    assert controlled.peers.take() == [(METADATA, [("t", 0)]), (STOPS, [("t", 0)])]
    await controlled.cluster.create_topic("t", assignment={0: [0, 3]})
    assert controlled.peers.take() == []
    assert controlled.outboxes._sent_states == {}
    await controlled.remove_kafka(3)
    assert controlled.outboxes._outboxes == {}


async def test_others_have_their_turn_while_a_broker_that_comes_is_told_everything(
    controlled: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With slices of no length, everybody else has a turn after each partition. What changes
    meanwhile is told, too.
    """
    count = 120
    await controlled.cluster.create_topic("t", count)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    await controlled.add_kafka()
    await controlled.cluster.reassignments.alter("t", count - 1, [KAFKA, 0])
    brokers: set[int] = set()

    def is_told() -> bool:
        for _, request in controlled.peers.requests:
            brokers.update(index for _, index in partitions_of(request))
        return len(brokers) == count

    def new_roles() -> set[tuple[str, int]]:
        return {
            (topic.topic_name, state.partition_index)
            for _, request in controlled.peers.requests
            if request.API_KEY == ROLES
            for topic in request.topic_states
            for state in topic.partition_states
            if state.is_new
        }

    await eventually(is_told)
    assert turns.stop() >= count
    await eventually(lambda: new_roles() == {("t", count - 1)})


async def test_a_new_topic_is_told_as_a_whole(
    controlled: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partitions come into the image a few at a time, and others have a turn in between. A
    broker of Kafka that hears of some of them shows its clients a topic that has no others.
    """
    await controlled.add_kafka()
    controlled.peers.requests.clear()
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    count = 2 * STATES_PER_WRITE
    names = [("t", index) for index in range(count)]
    await controlled.cluster.create_topic(
        "t", assignment={index: [KAFKA] for index in range(count)}
    )
    await controlled.until_told((ROLES, names), (METADATA, names))


async def test_a_broker_that_comes_hears_of_whole_topics(
    controlled: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    await controlled.cluster.create_topic("t", 20)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    await controlled.add_kafka()
    await eventually(lambda: any(names for _, names in sent_requests(controlled)))
    assert [len(names) for _, names in sent_requests(controlled) if names] == [20]


async def test_a_broker_that_comes_between_the_steps_of_a_change_hears_of_all_behind_it(
    controlled: Controlled,
) -> None:
    controlled.outboxes.on_steps_begin()
    turns = Turns()
    broker = BrokerInfo(KAFKA, (Endpoint("PLAINTEXT", "127.0.0.1", 9097),))
    await controlled.tree.create(paths.broker(KAFKA), encode_broker(broker, 0))
    await eventually(lambda: KAFKA in controlled.outboxes._outboxes and turns.count > 100)
    assert controlled.peers.requests == []
    controlled.outboxes.on_steps_end()
    await controlled.until_told((METADATA, []))
    turns.stop()


async def test_a_broker_that_comes_has_no_role_before_it_knows_every_partition(
    controlled: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    await controlled.add_kafka()
    await controlled.cluster.create_topic("a", assignment={0: [0, KAFKA]})
    await controlled.cluster.create_topic("z", 20)
    await controlled.remove_kafka()
    controlled.peers.requests.clear()
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    await controlled.add_kafka()
    await eventually(lambda: any(key == ROLES for key, _ in sent_requests(controlled)))
    first_requests = takewhile(lambda request: request[0] == METADATA, sent_requests(controlled))
    assert len({name for _, names in first_requests for name in names}) == 21


def sent_requests(controlled: Controlled) -> list[tuple[int, list[tuple[str, int]]]]:
    """Return (API key, partitions) of each request so far."""
    return [(request.API_KEY, partitions_of(request)) for _, request in controlled.peers.requests]


async def test_only_the_controller_tells(controlled: Controlled) -> None:
    await controlled.add_kafka()
    await eventually(lambda: len(controlled.peers.requests) == 1)
    controlled.cluster._election.lose()
    assert controlled.outboxes._outboxes == {}
    assert controlled.outboxes._sent_states == {}


async def test_a_broker_that_was_away_deletes_the_logs_of_a_deleted_topic(pair: Pair) -> None:
    await pair.create()
    has_log = Path(pair.on(1).log.directory).exists
    await pair.stop(1)
    cluster = pair.by_id[0].broker.cluster
    await cluster.delete_topic("t")
    assert pair.replica(0) is None
    assert await cluster.tree.exists("/admin/delete_topics/t")
    assert has_log()
    started = await pair.start(1)
    await eventually(lambda: not has_log())
    await eventually(lambda: "t" not in pair.by_id[0].broker.cluster.image.hidden_topics)
    assert await cluster.tree.exists("/admin/delete_topics/t") is None
    assert started.broker.cluster.image.topics == {}


async def test_a_failed_disk_of_a_former_registration_is_no_news(controlled: Controlled) -> None:
    await controlled.add_kafka()
    await controlled.cluster.create_topic("t", assignment={0: [0, KAFKA]})
    former_outbox = controlled.outboxes._outboxes[KAFKA].outbox
    await controlled.remove_kafka()
    await controlled.add_kafka()
    former_outbox._on_offline(KAFKA, [TopicPartition("t", 0)])
    await eventually(lambda: not controlled.outboxes._tasks)
    assert controlled.cluster.image.topics["t"].partitions[0].offline == []


async def test_another_replica_leads_when_a_log_directory_of_the_leader_fails(pair: Pair) -> None:
    await pair.create(leader=1)
    name = TopicPartition("t", 0)
    pair.by_id[1].partitions.take_offline([name])
    await pair.by_id[1].broker.cluster.leadership.replicas_failed([name])
    image = pair.by_id[0].broker.cluster.image
    await eventually(lambda: image.topics["t"].partitions[0].leader == 0)
    assert image.topics["t"].partitions[0].offline == [1]
