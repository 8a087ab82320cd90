"""Brokers 1 and 2 are killed one after the other and come back; broker 0 is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.compat_cluster.situations import kill, situation, start

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.situations import Steps

ONE_AFTER_THE_OTHER = (kill(1), kill(2), start(1), start(2))


@situation(*ONE_AFTER_THE_OTHER)
def the_last_of_the_isr_dies(on: Scene) -> Steps:
    """No unclean election: the replica that came back first must wait for the other."""
    topic = on.topic([1, 2])
    on.produce("on both", topic, "a", at=1)
    yield
    on.until(topic, 2, [2])
    on.produce("on one", topic, "b", at=2)
    on.state("one is dead", topic)
    yield
    on.until(topic, -1, [2])
    on.state("both are dead", topic)
    on.metadata("both are dead", 0, topic)
    yield
    on.until(topic, -1, [2])
    on.elect("preferred, not in sync", topic)
    on.state("one is back", topic)
    on.produce("without a leader", topic, "x", at=1)
    yield
    on.until(topic, 2, [1, 2])
    on.state("both are back", topic)
    on.logs("log", topic, on=[1, 2])


@situation(*ONE_AFTER_THE_OTHER)
def an_unclean_leader_is_allowed(on: Scene) -> Steps:
    topic = on.topic([1, 2], unclean_leader_election_enable="true")
    on.produce("on both", topic, "a", at=1)
    yield
    on.until(topic, 2, [2])
    on.produce("lost", topic, "b", "c", at=2)
    yield
    on.until(topic, -1, [2])
    on.state("both are dead", topic)
    yield
    on.until(topic, 1, [1])
    on.state("one is back", topic)
    on.produce("instead", topic, "d", at=1)
    yield
    on.until(topic, 1, [1, 2])
    on.state("both are back", topic)
    on.logs("log", topic, on=[1, 2])


@situation(*ONE_AFTER_THE_OTHER)
def an_unclean_leader_is_asked_for(on: Scene) -> Steps:
    topic = on.topic([1, 2])
    on.produce("on both", topic, "a", at=1)
    yield
    on.until(topic, 2, [2])
    on.produce("lost", topic, "b", "c", at=2)
    yield
    on.until(topic, -1, [2])
    on.elect("nobody is there", topic, unclean=True)
    on.state("both are dead", topic)
    yield
    on.until(topic, -1, [2])
    on.elect("one is back", topic, unclean=True)
    on.until(topic, 1, [1])
    on.state("one is back", topic)
    on.produce("instead", topic, "d", at=1)
    yield
    on.until(topic, 1, [1, 2])
    on.state("both are back", topic)
    on.logs("log", topic, on=[1, 2])


@situation(*ONE_AFTER_THE_OTHER)
def an_unclean_leader_is_allowed_later(on: Scene) -> Steps:
    topic = on.topic([1, 2])
    yield
    on.until(topic, 2, [2])
    on.produce("lost", topic, "a", at=2)
    yield
    on.until(topic, -1, [2])
    yield
    on.until(topic, -1, [2])
    on.ask(
        "allow",
        0,
        "incremental_alter_configs",
        1,
        validate_only=False,
        resources=[
            {
                "resource_type": 2,
                "resource_name": topic,
                "configs": [
                    {
                        "name": "unclean.leader.election.enable",
                        "config_operation": 0,
                        "value": "true",
                    }
                ],
            }
        ],
    )
    on.until(topic, 1, [1])
    on.state("allowed", topic)
    yield
    on.until(topic, 1, [1, 2])
    on.state("both are back", topic)


@situation(*ONE_AFTER_THE_OTHER)
def both_followers_die(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    strict = on.topic([0, 1, 2], name="strict", min_insync_replicas="2")
    yield
    on.until(topic, 0, [0, 2])
    on.until(strict, 0, [0, 2])
    on.produce("two are left", strict, "a", at=0)
    yield
    on.until(topic, 0, [0])
    on.until(strict, 0, [0])
    on.state("one is left", topic)
    on.produce("one is left", topic, "a", at=0)
    on.produce("one is left, two are needed", strict, "x", at=0)
    yield
    on.until(topic, 0, [0, 1])
    on.until(strict, 0, [0, 1])
    on.state("one is back", topic)
    on.produce("two again", strict, "b", at=0)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.until(strict, 0, [0, 1, 2])
    on.state("both are back", topic)
    on.logs("log", topic, on=[0, 1, 2])
    on.logs("strict log", strict, on=[0, 1, 2])


@situation(*ONE_AFTER_THE_OTHER)
def the_leader_dies_and_then_the_next_one(on: Scene) -> Steps:
    topic = on.topic([1, 2, 0])
    on.produce("three", topic, "a", at=1)
    yield
    on.until(topic, 2, [0, 2])
    on.produce("two", topic, "b", at=2)
    yield
    on.until(topic, 0, [0])
    on.produce("one", topic, "c", at=0)
    on.state("one is left", topic)
    yield
    on.until(topic, 0, [0, 1])
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("all are back", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(*ONE_AFTER_THE_OTHER)
def a_leaderless_partition_moves(on: Scene) -> Steps:
    topic = on.topic([1, 2])
    yield
    on.until(topic, 2, [2])
    yield
    on.until(topic, -1, [2])
    on.reassign("away from the leader", topic, [0, 1])
    on.assignment("both are dead", topic)
    on.moves("both are dead", topic)
    on.state("both are dead", topic)
    yield
    on.assignment("one is back", topic)
    yield
    on.until_moved(topic)
    on.until(topic, 0, [0, 1])
    on.assignment("both are back", topic)
    on.state("both are back", topic)


@situation(*ONE_AFTER_THE_OTHER)
def a_move_is_taken_back_whose_new_replica_is_alone_in_sync(on: Scene) -> Steps:
    topic = on.topic([2, 1])
    yield
    on.until(topic, 2, [2])
    on.reassign("move", topic, [0, 1])
    on.wait(lambda: 0 in (on.tree.state(topic, 0) or {})["isr"], "the new replica is in sync")
    on.produce("on both", topic, "a", at=2)
    yield
    on.until(topic, 0, [0])
    on.produce("on the new one", topic, "b", at=0)
    on.reassign("take it back", topic, None)
    yield
    yield
    on.until_moved(topic)
    on.note("who leads", (on.tree.state(topic, 0) or {})["leader"])
    on.note("the log that had everything is there", on.has_log(0, topic))


@situation(*ONE_AFTER_THE_OTHER)
def a_topic_is_deleted_while_all_its_brokers_are_dead(on: Scene) -> Steps:
    topic = on.topic([1, 2])
    yield
    on.until(topic, 2, [2])
    yield
    on.until(topic, -1, [2])
    on.ask("delete", 0, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    on.note("the topic stays", on.tree.exists(f"/brokers/topics/{topic}"))
    yield
    on.wait(lambda: not on.has_log(1, topic), "the first one deletes its log")
    on.note("the topic still stays", on.tree.exists(f"/brokers/topics/{topic}"))
    yield
    on.until_deleted(topic)
    on.wait(lambda: not on.has_log(2, topic), "no log is left")
