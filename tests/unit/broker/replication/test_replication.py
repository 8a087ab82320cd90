"""A broker has a fetcher for each leader that it follows, and none when it is alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import RECOVERING
from minibroker.broker.cluster.image import NO_LEADER
from minibroker.broker.cluster.tree import Create
from minibroker.broker.config.inter_broker import InterBrokerProtocol
from tests.support.in_process import InProcessBroker
from tests.support.waiting import eventually
from tests.unit.broker.replication.records import append, until_equal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.broker.replication.conftest import Pair

LAG_MS = 30_000


async def let_lag(pair: Pair) -> None:
    """Let broker 1 look twice at its followers; it may set the next look in a later slice."""
    isr = pair.by_id[1].broker.replication.isr
    for _ in range(2):
        await eventually(lambda: isr._timer is not None)
        pair.clock.advance(LAG_MS)


async def test_a_broker_alone_fetches_nothing(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as broker:
        await broker.create_topic("t", 3)
        assert broker.broker.replication._fetchers == {}
        assert broker.broker.replication._peers is None


async def test_a_follower_follows_the_leader_that_there_is_now(pair: Pair) -> None:
    await pair.create(leader=1)
    append(pair, b"a", broker_id=1)
    await until_equal(pair)
    assert list(pair.by_id[0].broker.replication._fetchers) == [1]
    await pair.by_id[0].broker.cluster.reassignments.alter("t", 0, [0, 1])
    await pair.by_id[0].broker.cluster.leadership.elect("t", 0, unclean=False)
    await eventually(lambda: pair.on(0).is_leader and not pair.on(1).is_leader)
    append(pair, b"b")
    await until_equal(pair)
    assert pair.by_id[0].broker.replication._fetchers[1].is_idle


async def test_a_broker_that_stops_does_not_come_back_into_the_isr(pair: Pair) -> None:
    await pair.create()
    stopping = pair.by_id[1].broker
    append(pair, b"a")
    await until_equal(pair)
    stopping.replication.prepare_stop()
    controller = pair.by_id[0].broker.cluster
    await controller.leadership.shut_down_broker(1, stopping.cluster.this_broker.epoch)
    await eventually(lambda: stopping.replication._fetchers[0].is_idle)
    assert controller.image.topics["t"].partitions[0].isr == [0]


async def test_nothing_is_fetched_after_the_end(pair: Pair) -> None:
    await pair.create()
    replication = pair.by_id[1].broker.replication
    await replication.close()
    replication.on_role(pair.on(1))
    assert replication._fetchers == {}


@pytest.mark.parametrize("entity", [("topics", "t"), ("brokers", "<default>")])
async def test_a_replica_that_is_not_in_sync_leads_when_it_may(
    pair: Pair, entity: tuple[str, str]
) -> None:
    """Broker 1 alone is in sync, and stops. The setting is changed while there is no leader."""
    await pair.create(leader=1)
    append(pair, b"a", broker_id=1)
    await until_equal(pair)
    await pair.by_id[0].broker.replication.close()
    append(pair, b"b", broker_id=1)
    await let_lag(pair)
    cluster = pair.by_id[0].broker.cluster
    topics = cluster.image.topics
    await eventually(lambda: topics["t"].partitions[0].isr == [1])
    await pair.stop(1)
    await eventually(lambda: topics["t"].partitions[0].leader == NO_LEADER)
    await cluster.alter_config(*entity, {"unclean.leader.election.enable": "true"})
    await eventually(lambda: topics["t"].partitions[0].leader == 0)
    assert topics["t"].partitions[0].isr == [0]
    assert topics["t"].partitions[0].leader_recovery_state == RECOVERING


async def test_a_leader_that_dies_is_replaced_by_any_replica_where_that_is_allowed(
    pair: Pair,
) -> None:
    await pair.create(leader=1, **{"unclean.leader.election.enable": "true"})
    append(pair, b"a", broker_id=1)
    await until_equal(pair)
    await pair.by_id[0].broker.replication.close()
    append(pair, b"b", broker_id=1)
    await let_lag(pair)
    topics = pair.by_id[0].broker.cluster.image.topics
    await eventually(lambda: topics["t"].partitions[0].isr == [1])
    await pair.stop(1)
    await eventually(lambda: topics["t"].partitions[0].leader == 0)
    assert topics["t"].partitions[0].leader_recovery_state == RECOVERING


async def test_only_a_controller_of_kafka_is_asked_for_the_isr(pair: Pair) -> None:
    running = pair.by_id[1].broker
    assert running.replication._requests() is None
    image = running.cluster.image
    image.brokers = {**image.brokers, 0: image.brokers[0]._replace(is_minibroker=False)}
    assert running.replication._requests() is not None
    assert running.replication._requests() is running.replication._requests()
    running.config.inter_broker_protocol = InterBrokerProtocol(2, 6)
    assert running.replication._requests() is None


async def test_a_follower_fetches_a_topic_that_got_its_id_while_it_was_followed(pair: Pair) -> None:
    """A broker before Kafka 2.8 made it, without an id. The controller gives it one behind its
    partitions.
    """
    state = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    cluster = pair.by_id[0].broker.cluster
    async with cluster._context.lock:
        await cluster.tree.multi(
            [
                Create(paths.topic("t"), b'{"version":1,"partitions":{"0":[0,1]}}'),
                Create(paths.partitions("t")),
                Create(paths.partition("t", 0)),
                Create(paths.partition_state("t", 0), state),
            ]
        )
        await eventually(lambda: pair.replica(1) is not None)
    await eventually(lambda: pair.replica(0) is not None and pair.replica(1) is not None)
    append(pair, b"a")
    await until_equal(pair)
