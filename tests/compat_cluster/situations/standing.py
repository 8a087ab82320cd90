"""The process of broker 1 stands for a while; broker 0 is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import NO_LEADER
from tests.compat_cluster.situations import bounce, expire, pause, resume, situation

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.situations import Steps


@situation(pause(1), resume(1))
def a_follower_that_stands_leaves_the_isr(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("before", topic, "a", at=0)
    yield
    on.produce("meanwhile", topic, "b", at=0)
    on.until(topic, 0, [0, 2])
    on.state("it stands", topic)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("it runs", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(pause(1), resume(1))
def too_few_in_sync_after_the_append(on: Scene) -> Steps:
    """The high watermark does not move while fewer than `min.insync.replicas` are in sync."""
    topic = on.topic([0, 1], min_insync_replicas="2")
    yield
    on.produce("not on both in time", topic, "a", at=0, timeout_ms=1000)
    on.until(topic, 0, [0])
    on.produce("not any more", topic, "x", at=0)
    on.fetched("below the minimum", topic, at=0)
    yield
    on.until(topic, 0, [0, 1])
    on.state("it runs", topic)
    on.produce("both", topic, "b", at=0)
    on.logs("log", topic, on=[0, 1])


@situation(pause(1), resume(1))
def a_move_waits_for_a_replica_that_stands(on: Scene) -> Steps:
    topic = on.topic([0])
    other = on.topic([0, 2], name="other")
    on.produce("before", topic, "a", at=0)
    yield
    on.reassign("add", topic, [0, 1])
    on.assignment("it stands", topic)
    on.state("it stands", topic)
    on.moves("it stands", topic)
    on.reassign("move the other", other, [1, 2])
    on.assignment("the other", other)
    on.reassign("cancel the other", other, None)
    on.until_moved(other)
    on.until(other, 0, [0, 2])
    on.assignment("the other, cancelled", other)
    on.state("the other, cancelled", other)
    yield
    on.until_moved(topic)
    on.until(topic, 0, [0, 1])
    on.assignment("it runs", topic)
    on.state("it runs", topic)
    on.logs("log", topic, on=[0, 1])


def _has_no_leader(on: Scene, topic: str) -> bool:
    state = on.tree.state(topic, 0)
    return state is not None and state["leader"] == NO_LEADER


@situation(pause(1), resume(1))
def a_topic_that_moves_is_deleted(on: Scene) -> Steps:
    topic = on.topic([0])
    on.produce("before", topic, "a", at=0)
    yield
    on.reassign("add", topic, [0, 1])
    on.ask("delete", 0, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    # The answer waits for the brokers' metadata, which Kafka sends before it writes the state.
    on.wait(lambda: _has_no_leader(on, topic), "the partition has no leader")
    on.note("the mark stays", on.tree.exists(f"/admin/delete_topics/{topic}"))
    on.assignment("it stands", topic)
    on.state("it stands", topic)
    on.reassign("cancel", topic, None)
    on.reassign("elsewhere", topic, [2])
    on.elect("preferred", topic)
    more = {"name": topic, "count": 2, "assignments": None}
    on.ask("grow", 0, "create_partitions", 2, timeout_ms=60_000, topics=[more])
    yield
    on.until_deleted(topic)
    on.wait(lambda: not on.has_log(0, topic) and not on.has_log(1, topic), "no log is left")


@situation(pause(1), expire(1), resume(1))
def a_leader_stands_until_its_session_is_over(on: Scene) -> Steps:
    """When it goes on it takes itself for the leader, until it hears of the new one."""
    topic = on.topic([1, 0, 2])
    on.produce("before", topic, "a", at=1)
    yield
    yield
    on.until(topic, 0, [0, 2])
    on.state("its session is over", topic)
    on.produce("meanwhile", topic, "b", at=0)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("it is back", topic)
    on.produce("after", topic, "c", at=0)
    on.logs("log", topic, on=[0, 1, 2])


@situation(expire(1))
def a_session_ends_while_the_broker_runs(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    only = on.topic([1], name="only")
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("after", topic)
    on.until(only, 1, [1], epoch=2)
    on.state("only replica", only)
    on.logs("log", topic, on=[0, 1, 2])


@situation(bounce(1))
def a_leader_bounces(on: Scene) -> Steps:
    """The controller hears of the end and of the new start at once (KIP-380)."""
    topic = on.topic([1, 0, 2])
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("after", topic)
    on.produce("after", topic, "b", at=0)
    on.logs("log", topic, on=[0, 1, 2])


@situation(bounce(1))
def a_follower_bounces(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("before", topic, "a", at=0)
    yield
    on.until(topic, 0, [0, 1, 2], epoch=1)
    on.state("after", topic)
    on.produce("after", topic, "b", at=0)
    on.logs("log", topic, on=[0, 1, 2])


@situation(bounce(1))
def the_only_replica_bounces(on: Scene) -> Steps:
    topic = on.topic([1])
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, 1, [1], epoch=2)
    on.state("after", topic)
    on.produce("after", topic, "b", at=1)
    on.logs("log", topic, on=[1])
