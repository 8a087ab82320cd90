"""Broker 1 stops with a controlled shutdown and comes back; broker 0 is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.compat_cluster.situations import situation, start, stop

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.situations import Steps


@situation(stop(1), start(1))
def the_leader_stops(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, 0, [0, 2])
    on.state("stopped", topic)
    on.produce("meanwhile", topic, "b", at=0)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("back", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(stop(1), start(1))
def a_follower_stops(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("before", topic, "a", at=0)
    yield
    on.until(topic, 0, [0, 2])
    on.state("stopped", topic)
    on.produce("meanwhile", topic, "b", at=0)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("back", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(stop(1), start(1))
def the_only_replica_stops(on: Scene) -> Steps:
    topic = on.topic([1])
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, -1, [1])
    on.state("stopped", topic)
    on.metadata("stopped", 0, topic)
    yield
    on.until(topic, 1, [1])
    on.state("back", topic)
    on.produce("after", topic, "b", at=1)
    on.logs("log", topic, on=[1])


@situation(stop(1), start(1))
def one_of_two_replicas_stops(on: Scene) -> Steps:
    topic = on.topic([1, 2], min_insync_replicas="2")
    on.produce("before", topic, "a", at=1)
    on.until_committed(topic, 1, at=2)
    yield
    on.until(topic, 2, [2])
    on.state("stopped", topic)
    on.produce("meanwhile", topic, "x", at=2)
    yield
    on.until(topic, 2, [1, 2])
    on.state("back", topic)
    on.produce("after", topic, "b", at=2)
    on.logs("log", topic, on=[1, 2])


@situation(stop(1), start(1))
def the_coordinator_of_groups_stops(on: Scene) -> Steps:
    topic = on.topic([0])
    group = on.name
    on.until_coordinator(1, group)
    on.ask(
        "commit",
        1,
        "offset_commit",
        7,
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 3}]}],
    )
    request = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    yield
    on.until("__consumer_offsets", 0, [0, 2])
    on.until_coordinator(0, group)
    on.ask("fetch", 0, "offset_fetch", 5, **request)
    yield
    on.until("__consumer_offsets", 0, [0, 1, 2])
    on.ask("fetch from the former coordinator", 1, "offset_fetch", 5, **request)
