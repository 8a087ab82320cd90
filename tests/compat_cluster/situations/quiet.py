"""Nothing happens to a broker; broker 0 is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.compat_cluster.scene import creation
from tests.compat_cluster.situations import situation

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.situations import Steps


@situation()
def a_replica_is_added(on: Scene) -> Steps:
    topic = on.topic([0])
    on.produce("before", topic, "a", at=0)
    on.reassign("add", topic, [0, 1])
    on.until_moved(topic)
    on.until(topic, 0, [0, 1])
    on.assignment("added", topic)
    on.state("added", topic)
    on.moves("added", topic)
    on.produce("after", topic, "b", at=0)
    on.logs("log", topic, on=[0, 1])
    yield from ()


@situation()
def a_partition_moves_to_other_brokers(on: Scene) -> Steps:
    topic = on.topic([0])
    on.produce("before", topic, "a", at=0)
    on.reassign("move", topic, [2, 1])
    on.until_moved(topic)
    on.until(topic, 2, [1, 2])
    on.assignment("moved", topic)
    on.state("moved", topic)
    # It hears of the next leader before it hears that its own replica ends.
    on.wait(lambda: not on.has_log(0, topic), "the former replica deletes its log")
    on.produce("to the former leader", topic, "x", at=0)
    on.produce("after", topic, "b", at=2)
    on.logs("log", topic, on=[1, 2])
    yield from ()


@situation()
def a_partition_moves_and_its_leader_stays(on: Scene) -> Steps:
    topic = on.topic([1, 0])
    on.produce("before", topic, "a", at=1)
    on.reassign("move", topic, [2, 1])
    on.until_moved(topic)
    on.until(topic, 1, [1, 2])
    on.assignment("moved", topic)
    on.state("moved", topic)
    on.logs("log", topic, on=[1, 2])
    yield from ()


@situation()
def replicas_get_another_order(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.reassign("turn round", topic, [2, 1, 0])
    on.until_moved(topic)
    on.assignment("turned", topic)
    on.until(topic, 0, [0, 1, 2])
    on.state("turned", topic)
    on.elect("preferred", topic)
    on.until(topic, 2, [0, 1, 2])
    on.state("elected", topic)
    on.elect("preferred again", topic)
    on.state("elected again", topic)
    yield from ()


@situation()
def replicas_are_taken_away(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("before", topic, "a", at=0)
    on.reassign("one stays, another one", topic, [2])
    on.until_moved(topic)
    on.until(topic, 2, [2])
    on.assignment("fewer", topic)
    on.state("fewer", topic)
    on.wait(lambda: not on.has_log(0, topic), "a former replica deletes its log")
    on.wait(lambda: not on.has_log(1, topic), "the other one, too")
    on.logs("log", topic, on=[2])
    yield from ()


@situation()
def a_move_to_the_same_replicas(on: Scene) -> Steps:
    topic = on.topic([0, 1])
    on.reassign("same", topic, [0, 1])
    on.until_moved(topic)
    on.until(topic, 0, [0, 1])
    on.state("same", topic)
    on.reassign("cancel nothing", topic, None)
    yield from ()


@situation()
def moves_that_are_refused(on: Scene) -> Steps:
    topic = on.topic([0, 1])
    on.reassign("no replicas", topic, [])
    on.reassign("twice the same", topic, [0, 0])
    on.reassign("a broker that is not there", topic, [0, 9])
    on.reassign("a negative broker", topic, [-1])
    on.reassign("no such partition", topic, [0], partition=1)
    on.reassign("no such topic", f"{topic}x", [0])
    on.state("nothing changed", topic)
    on.assignment("nothing changed", topic)
    yield from ()


@situation()
def elections_that_are_not_needed(on: Scene) -> Steps:
    topic = on.topic([0, 1], [1, 2])
    on.elect("preferred", topic, 0, 1)
    on.elect("unclean", topic, 0, 1, unclean=True)
    on.elect("no such partition", topic, 2)
    on.elect("no such topic", f"{topic}x")
    on.state("first", topic)
    on.state("second", topic, 1)
    yield from ()


@situation()
def topics_with_given_replicas(on: Scene) -> Steps:
    good = on.at(0).topic("good")
    assignments = {
        "good": [[2, 0], [0, 1]],
        "twice the same": [[0, 0]],
        "different counts": [[0], [0, 1]],
    }
    for label, replicas in assignments.items():
        name = good if label == "good" else on.at(0).topic(label.replace(" ", "-"))
        topics = [creation(name, *replicas)]
        on.ask(label, 0, "create_topics", 4, timeout_ms=60_000, topics=topics)
    on.ask(
        "too many replicas",
        0,
        "create_topics",
        4,
        timeout_ms=60_000,
        topics=[{"name": f"{good}x", "num_partitions": 1, "replication_factor": 4}],
    )
    on.until(good, 2, [0, 2])
    on.until(good, 0, [0, 1], partition=1)
    on.assignment("good", good)
    on.state("first", good)
    on.state("second", good, 1)
    yield from ()


@situation()
def more_min_insync_than_replicas(on: Scene) -> Steps:
    topic = on.topic([0, 1], min_insync_replicas="3")
    on.produce("acks all", topic, "x", at=0)
    on.produce("acks one", topic, "a", at=0, acks=1)
    on.produce("acks two", topic, "x", at=0, acks=2)
    on.logs("log", topic, on=[0, 1])
    yield from ()


@situation()
def requests_to_a_follower(on: Scene) -> Steps:
    topic = on.topic([0, 1])
    on.produce("to the leader", topic, "a", at=0)
    on.logs("log", topic, on=[0, 1])
    on.produce("to the follower", topic, "x", at=1)
    on.produce("to a stranger", topic, "x", at=2)
    on.note("offsets of the follower", on.offset(topic, -1, at=1))
    on.note("offsets of a stranger", on.offset(topic, -1, at=2))
    on.wait(lambda: on.fetch(topic, at=1)["high_watermark"] == 1, "the follower knows the mark")
    on.fetched("from the follower", topic, at=1)
    on.fetched("from a stranger", topic, at=2)
    for label, broker_id in (("follower", 1), ("stranger", 2)):
        on.ask(
            f"delete records at a {label}",
            broker_id,
            "delete_records",
            2,
            timeout_ms=60_000,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "offset": 1}]}],
        )
        on.ask(
            f"epochs at a {label}",
            broker_id,
            "offset_for_leader_epoch",
            4,
            replica_id=-1,
            topics=[
                {
                    "topic": topic,
                    "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
                }
            ],
        )
    yield from ()


@situation()
def records_are_deleted_on_all_replicas(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    for value in ("a", "b", "c"):
        on.produce(value, topic, value, at=0)
    for label, offset in (("delete two", 2), ("too many", 9), ("all", -1)):
        on.ask(
            label,
            0,
            "delete_records",
            2,
            timeout_ms=60_000,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}],
        )
        on.note(f"{label}: start", on.offset(topic, -2, at=0))
    on.elect("not needed", topic)
    on.reassign("another leader", topic, [1, 2])
    on.until_moved(topic)
    on.until(topic, 1, [1, 2])
    on.state("moved", topic)
    on.note("start at the new leader", on.offset(topic, -2, at=1))
    on.note("end at the new leader", on.offset(topic, -1, at=1))
    yield from ()


@situation()
def a_topic_is_deleted_and_made_again(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("old", topic, "a", "b", at=0)
    on.ask("delete", 0, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    on.until_deleted(topic)
    on.wait(lambda: not any(on.has_log(n, topic) for n in (0, 1, 2)), "no log is left")
    again = on.topic([1, 2, 0])
    on.produce("new", again, "c", at=1)
    on.state("new", again)
    on.logs("log", again, on=[0, 1, 2])
    yield from ()


@situation()
def partitions_are_added(on: Scene) -> Steps:
    topic = on.topic([0, 1])
    counts = {
        "fewer replicas": (2, [[2]]),
        "an unknown broker": (2, [[2, 8]]),
        "too many lists": (2, [[2, 1], [1, 0]]),
        "as many as there are": (1, None),
        "good": (3, [[2, 1], [1, 0]]),
    }
    for label, (count, replicas) in counts.items():
        assignments = None if replicas is None else [{"broker_ids": ids} for ids in replicas]
        on.ask(
            label,
            0,
            "create_partitions",
            2,
            timeout_ms=60_000,
            validate_only=False,
            topics=[{"name": topic, "count": count, "assignments": assignments}],
        )
    on.until(topic, 2, [1, 2], partition=1)
    on.until(topic, 1, [0, 1], partition=2)
    on.assignment("more", topic)
    on.state("second", topic, 1)
    on.state("third", topic, 2)
    on.produce("to the second", topic, "a", at=2, partition=1)
    on.logs("second", topic, on=[1, 2], partition=1)
    yield from ()


@situation()
def requests_to_a_broker_that_is_not_the_controller(on: Scene) -> Steps:
    topic = on.topic([0, 1])
    new = on.at(2).topic("new")
    on.ask("create", 2, "create_topics", 4, timeout_ms=60_000, topics=[creation(new, [2])])
    on.ask("delete", 2, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    on.ask(
        "elect",
        2,
        "elect_leaders",
        2,
        election_type=0,
        timeout_ms=60_000,
        topic_partitions=[{"topic": topic, "partitions": [0]}],
    )
    on.ask(
        "move",
        2,
        "alter_partition_reassignments",
        0,
        timeout_ms=60_000,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "replicas": [2]}]}],
    )
    on.ask("list moves", 2, "list_partition_reassignments", 0, timeout_ms=60_000, topics=None)
    on.ask(
        "add partitions",
        2,
        "create_partitions",
        2,
        timeout_ms=60_000,
        validate_only=False,
        topics=[{"name": topic, "count": 2, "assignments": None}],
    )
    on.note("the topic is not made", on.tree.exists(f"/brokers/topics/{new}"))
    on.state("nothing changed", topic)
    yield from ()


@situation()
def an_old_tool_moves_partitions(on: Scene) -> Steps:
    """kafka-reassign-partitions --zookeeper writes this node, and waits until it is gone."""
    topic = on.topic([0, 1], [0, 1], [0, 2])
    on.produce("before", topic, "a", at=0)
    node = "/admin/reassign_partitions"
    new_replicas = ((topic, 0, [2, 0]), (topic, 1, [1, 0]), (topic, 9, [1]), ("unknown", 0, [1]))
    moves = [
        {"topic": name, "partition": index, "replicas": replicas}
        for name, index, replicas in new_replicas
    ]
    on.tree.create(node, {"version": 1, "partitions": moves})
    on.wait(lambda: not on.tree.exists(node), "the node is gone")
    on.until_moved(topic)
    on.until(topic, 0, [0, 2])
    on.assignment("moved", topic)
    for partition in range(3):
        on.state(f"moved {partition}", topic, partition)
    on.produce("after", topic, "b", at=0)
    on.logs("log", topic, on=[0, 2])
    yield from ()


@situation()
def an_old_tool_asks_for_preferred_leaders(on: Scene) -> Steps:
    """kafka-preferred-replica-election --zookeeper writes this node."""
    topic = on.topic([1, 0], [1, 0], [2, 0])
    for partition in range(2):
        on.reassign(f"order {partition}", topic, [0, 1], partition=partition)
    on.until_moved(topic)
    node = "/admin/preferred_replica_election"
    places = ((topic, 0), (topic, 2), (topic, 9), ("unknown", 0))
    elections = [{"topic": name, "partition": index} for name, index in places]
    on.tree.create(node, {"version": 1, "partitions": elections})
    on.wait(lambda: not on.tree.exists(node), "the node is gone")
    on.until(topic, 0, [0, 1])
    for partition in range(3):
        on.state(f"elected {partition}", topic, partition)
    yield from ()
