"""Broker 0, the controller, is killed and comes back; or another broker becomes the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from tests.compat_cluster.situations import kill, make_controller, situation, start

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.situations import Steps


@situation(kill(0), start(0))
def the_controller_that_leads_is_killed(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("before", topic, "a", at=0)
    yield
    on.until(topic, 1, [1, 2])
    on.state("dead", topic)
    on.metadata("dead", 2, topic)
    on.produce("meanwhile", topic, "b", at=1)
    yield
    on.until(topic, 1, [0, 1, 2])
    on.state("back", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(0), start(0))
def the_controller_that_follows_is_killed(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, 1, [1, 2])
    on.state("dead", topic)
    yield
    on.until(topic, 1, [0, 1, 2])
    on.state("back", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(0), start(0))
def the_controller_with_the_only_replica_is_killed(on: Scene) -> Steps:
    topic = on.topic([0])
    on.produce("before", topic, "a", at=0)
    yield
    on.until(topic, -1, [0])
    on.state("dead", topic)
    on.elect("unclean, no other replica", topic, unclean=True)
    yield
    on.until(topic, 0, [0])
    on.state("back", topic)
    on.logs("log", topic, on=[0])


@situation(kill(0), start(0))
def the_controller_without_a_replica_is_killed(on: Scene) -> Steps:
    topic = on.topic([1, 2])
    yield
    on.until(topic, 1, [1, 2])
    on.state("dead", topic)
    on.produce("meanwhile", topic, "a", at=1)
    yield
    on.state("back", topic)
    on.logs("log", topic, on=[1, 2])


@situation(kill(0), start(0))
def topics_come_and_go_under_the_new_controller(on: Scene) -> Steps:
    topic = on.topic([1, 2])
    yield
    on.ask("delete", on.controller, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    on.until_deleted(topic)
    other = on.topic([2, 1], name="other")
    on.state("new", other)
    on.reassign("move", other, [1])
    on.until_moved(other)
    on.until(other, 1, [1])
    on.state("moved", other)
    yield
    on.until(other, 1, [1])
    on.wait(lambda: not on.has_log(1, topic), "no log is left")


@situation(make_controller(1))
def another_broker_becomes_controller(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("before", topic, "a", at=0)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("after", topic)
    on.note("epochs of the controller", on.tree.controller_epoch - on.first_controller_epoch)
    on.wait(lambda: on.knows_controller(0, 1), "the former controller names the new one")
    partitions = [{"topic": topic, "partitions": [0]}]
    election = {"election_type": 0, "timeout_ms": 60_000, "topic_partitions": partitions}

    def is_refused() -> bool:
        """Return whether the former controller has heard of its end: that may be a moment later."""
        answer = on.quietly(0, "elect_leaders", 2, **election)
        [result] = answer["replica_election_results"]
        return bool(result["partition_result"][0]["error_code"] == ErrorCode.NOT_CONTROLLER)

    on.wait(is_refused, "the former controller refuses")
    on.ask("elect at the former controller", 0, "elect_leaders", 2, **election)
    on.reassign("turn round", topic, [1, 2, 0])
    on.until_moved(topic)
    on.elect("elect", topic)
    on.until(topic, 1, [0, 1, 2])
    on.state("elected", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(make_controller(1))
def a_topic_is_deleted_by_the_next_controller(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    yield
    on.ask("delete", 1, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    on.until_deleted(topic)
    on.wait(lambda: not any(on.has_log(n, topic) for n in (0, 1, 2)), "no log is left")
