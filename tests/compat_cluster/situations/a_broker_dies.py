"""Broker 1 is killed and comes back; broker 0 is the controller all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.compat_cluster.scene import creation
from tests.compat_cluster.situations import kill, situation, start
from tests.support.batches import batch

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.situations import Steps


@situation(kill(1), start(1))
def the_leader_is_killed(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    on.produce("before", topic, "a", "b", at=1)
    yield
    on.until(topic, 0, [0, 2])
    on.state("dead", topic)
    on.metadata("dead", 2, topic)
    on.produce("while it is dead", topic, "c", at=0)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("back", topic)
    on.produce("after", topic, "d", at=0)
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(1), start(1))
def a_follower_is_killed(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    on.produce("before", topic, "a", at=0)
    yield
    on.until(topic, 0, [0, 2])
    on.state("dead", topic)
    on.metadata("dead", 0, topic)
    on.produce("while it is dead", topic, "b", at=0)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("back", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(1), start(1))
def the_only_replica_is_killed(on: Scene) -> Steps:
    topic = on.topic([1])
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, -1, [1])
    on.state("dead", topic)
    on.metadata("dead", 0, topic)
    on.produce("to a broker without the partition", topic, "x", at=0)
    yield
    on.until(topic, 1, [1])
    on.state("back", topic)
    on.produce("after", topic, "b", at=1)
    on.logs("log", topic, on=[1])


@situation(kill(1), start(1))
def min_insync_two_of_two_replicas(on: Scene) -> Steps:
    topic = on.topic([1, 2], min_insync_replicas="2")
    on.produce("before", topic, "a", at=1)
    on.until_committed(topic, 1, at=2)
    yield
    on.until(topic, 2, [2])
    on.state("dead", topic)
    on.produce("acks all", topic, "refused", at=2)
    on.produce("acks one", topic, "b", at=2, acks=1)
    on.produce("acks none", topic, "c", at=2, acks=1)
    on.fetched("above the minimum", topic, at=2)
    yield
    on.until(topic, 2, [1, 2])
    on.produce("after", topic, "d", at=2)
    on.logs("log", topic, on=[1, 2])


@situation(kill(1), start(1))
def min_insync_two_of_three_replicas(on: Scene) -> Steps:
    topic = on.topic([1, 2, 0], min_insync_replicas="2")
    yield
    on.until(topic, 2, [0, 2])
    on.produce("acks all", topic, "a", at=2)
    yield
    on.until(topic, 2, [0, 1, 2])
    on.state("back", topic)
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(1), start(1))
def the_preferred_leader_comes_back(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    on.elect("it leads", topic)
    yield
    on.until(topic, 0, [0, 2])
    on.elect("it is dead", topic)
    on.elect("unclean, with a leader", topic, unclean=True)
    on.state("dead", topic)
    yield
    on.until(topic, 0, [0, 1, 2])
    on.elect("it is back", topic)
    on.until(topic, 1, [0, 1, 2])
    on.state("back", topic)
    on.produce("after", topic, "a", at=1)
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(1), start(1))
def a_topic_is_deleted_while_a_follower_is_dead(on: Scene) -> Steps:
    topic = on.topic([0, 1])
    on.produce("before", topic, "a", at=0)
    yield
    on.until(topic, 0, [0])
    on.ask("delete", 0, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    on.wait(lambda: not on.has_log(0, topic), "the log of the living replica is gone")
    on.note("the mark stays", on.tree.exists(f"/admin/delete_topics/{topic}"))
    on.note("the topic stays", on.tree.exists(f"/brokers/topics/{topic}"))
    on.state("marked", topic)
    on.note("the log of the dead replica stays", on.has_log(1, topic))
    on.wait(lambda: not on.knows(2, topic), "broker 2 has forgotten the topic")
    on.metadata("marked", 2, topic)
    again = creation(topic, [2])
    on.ask("create it again", 0, "create_topics", 4, timeout_ms=60_000, topics=[again])
    yield
    on.until_deleted(topic)
    on.wait(lambda: not on.has_log(1, topic), "the log of the dead replica is gone")
    on.ask("create it later", 0, "create_topics", 4, timeout_ms=60_000, topics=[again])
    on.until(topic, 2, [2])
    on.state("new", topic)


@situation(kill(1), start(1))
def a_topic_is_deleted_while_its_leader_is_dead(on: Scene) -> Steps:
    topic = on.topic([1, 0], [2, 1])
    yield
    on.until(topic, 0, [0])
    on.until(topic, 2, [2], partition=1)
    on.ask("delete", 0, "delete_topics", 4, topic_names=[topic], timeout_ms=60_000)
    on.wait(lambda: not on.has_log(0, topic), "the log of the new leader is gone")
    on.wait(lambda: not on.has_log(2, topic, 1), "the log of the other partition is gone")
    on.note("the mark stays", on.tree.exists(f"/admin/delete_topics/{topic}"))
    on.state("marked", topic)
    on.state("marked, the other", topic, 1)
    yield
    on.until_deleted(topic)
    on.wait(lambda: not on.has_log(1, topic) and not on.has_log(1, topic, 1), "no log is left")


@situation(kill(1), start(1))
def a_topic_is_created_on_a_dead_broker(on: Scene) -> Steps:
    yield
    topic = on.at(0).topic("t")
    other = on.at(0).topic("other")
    # A topic without a leader is waited for in vain, until the request's time is over.
    for label, name, replicas, timeout_ms in (
        ("two replicas", topic, [1, 0], 30_000),
        ("only one", other, [1], 1_000),
    ):
        topics = [creation(name, replicas)]
        on.ask(label, 0, "create_topics", 4, timeout_ms=timeout_ms, topics=topics)
    on.until(topic, 0, [0])
    on.state("two replicas", topic)
    on.state("only one", other)
    yield
    on.until(topic, 0, [0, 1])
    on.state("back", topic)
    on.until(other, 1, [1])
    on.state("the only replica is back", other)


@situation(kill(1), start(1))
def a_topic_is_created_while_a_broker_is_dead(on: Scene) -> Steps:
    """The replicas are placed on the brokers that live: no topic has as many as there were."""
    yield
    topic = on.at(0).topic("t")
    new_topic = {"name": topic, "num_partitions": 3, "replication_factor": 3}
    on.ask("three replicas", 0, "create_topics", 4, timeout_ms=60_000, topics=[new_topic])
    new_topic["replication_factor"] = 2
    on.ask("two replicas", 0, "create_topics", 4, timeout_ms=60_000, topics=[new_topic])
    on.wait(lambda: len(on.partitions(topic)) == 3, "the partitions have states")
    on.note("two replicas: ISR", [sorted(state["isr"]) for state in on.partitions(topic)])
    yield


@situation(kill(1), start(1))
def partitions_are_added_while_a_broker_is_dead(on: Scene) -> Steps:
    topic = on.topic([0, 2])
    yield
    on.ask(
        "one more",
        0,
        "create_partitions",
        2,
        timeout_ms=60_000,
        validate_only=False,
        topics=[{"name": topic, "count": 2, "assignments": [{"broker_ids": [1, 0]}]}],
    )
    on.ask(
        "one more, on living brokers",
        0,
        "create_partitions",
        2,
        timeout_ms=60_000,
        validate_only=False,
        topics=[{"name": topic, "count": 2, "assignments": [{"broker_ids": [2, 0]}]}],
    )
    on.until(topic, 2, [0, 2], partition=1)
    on.state("new", topic, 1)
    on.assignment("new", topic)
    yield
    on.until(topic, 2, [0, 2], partition=1)


@situation(kill(1), start(1))
def a_partition_moves_away_from_a_dead_broker(on: Scene) -> Steps:
    topic = on.topic([1, 2])
    on.produce("before", topic, "a", at=1)
    yield
    on.until(topic, 2, [2])
    on.reassign("the dead broker stays", topic, [2, 0, 1])
    on.wait(lambda: 0 in (on.tree.state(topic, 0) or {})["isr"], "the new replica is in sync")
    on.moves("its move", topic)
    on.assignment("it stays", topic)
    on.state("it stays", topic)
    on.reassign("away", topic, [0, 2])
    on.until_moved(topic)
    on.until(topic, 2, [0, 2])
    on.assignment("away", topic)
    on.state("away", topic)
    on.produce("while it is dead", topic, "b", at=2)
    yield
    on.until(topic, 2, [0, 2])
    on.note("the broker that came back keeps its log", on.has_log(1, topic))
    on.state("back", topic)
    on.logs("log", topic, on=[0, 2])


@situation(kill(1), start(1))
def a_dead_broker_is_a_new_replica(on: Scene) -> Steps:
    topic = on.topic([0])
    yield
    on.reassign("with a dead broker", topic, [0, 1])
    on.assignment("dead", topic)
    on.state("dead", topic)
    on.moves("dead", topic)
    yield


@situation(kill(1), start(1))
def records_are_deleted_while_a_follower_is_dead(on: Scene) -> Steps:
    topic = on.topic([0, 1, 2])
    for value in ("a", "b", "c"):
        on.produce(value, topic, value, at=0)
    yield
    on.until(topic, 0, [0, 2])
    on.ask(
        "delete",
        0,
        "delete_records",
        2,
        timeout_ms=60_000,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "offset": 2}]}],
    )
    on.note("start", on.offset(topic, -2, at=0))
    yield
    on.until(topic, 0, [0, 1, 2])
    on.elect("nothing to do", topic)
    on.logs("log", topic, on=[0, 1, 2])
    on.fetched("below the start", topic, at=0, offset=1)


@situation(kill(1), start(1))
def a_config_changes_while_a_broker_is_dead(on: Scene) -> Steps:
    topic = on.topic([1, 0])
    yield
    on.until(topic, 0, [0])
    on.ask(
        "alter",
        0,
        "incremental_alter_configs",
        1,
        resources=[
            {
                "resource_type": 2,
                "resource_name": topic,
                "configs": [{"name": "max.message.bytes", "config_operation": 0, "value": "200"}],
            }
        ],
        validate_only=False,
    )
    yield
    on.until(topic, 0, [0, 1])
    on.elect("the broker that was dead", topic)
    on.until(topic, 1, [0, 1])
    on.produce("too large", topic, "x" * 500, at=1)
    on.produce("small", topic, "x", at=1)
    on.logs("log", topic, on=[0, 1])


@situation(kill(1), start(1))
def an_idempotent_producer_meets_a_new_leader(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    producer_id = on.at(1).producer_id()

    def records(value: str, sequence: int) -> bytes:
        return batch(value.encode(), producer_id=producer_id, producer_epoch=0, sequence=sequence)

    on.produce("first", topic, at=1, records=records("a", 0))
    on.produce("second", topic, at=1, records=records("b", 1))
    yield
    on.until(topic, 0, [0, 2])
    on.produce("second again", topic, at=0, records=records("b", 1))
    on.produce("a gap", topic, at=0, records=records("d", 3))
    on.produce("third", topic, at=0, records=records("c", 2))
    yield
    on.until(topic, 0, [0, 1, 2])
    on.elect("back to the first", topic)
    on.until(topic, 1, [0, 1, 2])
    on.produce("third again", topic, at=1, records=records("c", 2))
    on.produce("fourth", topic, at=1, records=records("d", 3))
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(1), start(1))
def clients_with_other_epochs_are_fenced(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    on.produce("first epoch", topic, "a", "b", at=1)
    on.fetched("right epoch", topic, at=1, epoch=0)
    on.fetched("newer epoch", topic, at=1, epoch=1)
    yield
    on.until(topic, 0, [0, 2])
    on.produce("second epoch", topic, "c", at=0)
    on.fetched("older epoch", topic, at=0, epoch=0)
    on.fetched("second epoch", topic, at=0, epoch=1, offset=2)
    on.fetched("diverging", topic, at=0, epoch=1, offset=3, last_epoch=0)
    for epoch in (0, 1, 2):
        on.ask(
            f"end of epoch {epoch}",
            0,
            "offset_for_leader_epoch",
            4,
            replica_id=-1,
            topics=[
                {
                    "topic": topic,
                    "partitions": [
                        {"partition": 0, "current_leader_epoch": 1, "leader_epoch": epoch}
                    ],
                }
            ],
        )
    on.note("offsets in an older epoch", on.offset(topic, -1, at=0, epoch=0))
    on.note("offsets in a newer epoch", on.offset(topic, -1, at=0, epoch=2))
    yield
    on.until(topic, 0, [0, 1, 2])
    on.produce("to the former leader", topic, "x", at=1)
    on.note("offsets at the former leader", on.offset(topic, -1, at=1))
    on.logs("log", topic, on=[0, 1, 2])


@situation(kill(1), start(1))
def a_group_finds_its_offsets_at_another_coordinator(on: Scene) -> Steps:
    topic = on.topic([0])
    group = on.name
    coordinator = {"key": group, "key_type": 0}
    commit = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 7}]}],
    }
    request = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    on.until_coordinator(1, group)
    on.ask("coordinator", 0, "find_coordinator", 3, **coordinator)
    on.ask("commit", 1, "offset_commit", 7, **commit)
    on.ask("commit elsewhere", 0, "offset_commit", 7, **commit)
    yield
    on.until("__consumer_offsets", 0, [0, 2])
    on.until_coordinator(0, group)
    on.ask("new coordinator", 2, "find_coordinator", 3, **coordinator)
    on.ask("fetch", 0, "offset_fetch", 5, **request)
    on.ask("fetch elsewhere", 2, "offset_fetch", 5, **request)
    yield
    on.until("__consumer_offsets", 0, [0, 1, 2])
    on.ask("fetch from the former coordinator", 1, "offset_fetch", 5, **request)


@situation(kill(1), start(1))
def a_transaction_outlives_leader_and_coordinator(on: Scene) -> Steps:
    topic = on.topic([1, 0, 2])
    name = on.name
    on.until_coordinator(1, name, key_type=1)
    producer_id = on.until_producer(1, name)
    transaction = {"transactional_id": name, "producer_id": producer_id, "producer_epoch": 0}

    def records(value: str, sequence: int) -> bytes:
        return batch(
            value.encode(),
            producer_id=producer_id,
            producer_epoch=0,
            sequence=sequence,
            attributes=0x10,
        )

    on.ask(
        "begin",
        1,
        "add_partitions_to_txn",
        3,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[{"name": topic, "partitions": [0]}],
    )
    on.produce("first", topic, at=1, records=records("a", 0), transactional_id=name)
    yield
    on.until(topic, 0, [0, 2])
    on.until("__transaction_state", 0, [0, 2])
    on.until_coordinator(0, name, key_type=1)
    on.produce("second", topic, at=0, records=records("b", 1), transactional_id=name)
    on.wait(
        lambda: on.fetch(topic, at=0)["last_stable_offset"] == 0, "the last stable offset is known"
    )
    on.ask("end elsewhere", 2, "end_txn", 3, **transaction, committed=True)
    on.until_ended(0, **transaction, committed=True)
    on.wait(lambda: on.fetch(topic, at=0)["last_stable_offset"] == 3, "the transaction is over")
    yield
    on.until(topic, 0, [0, 1, 2])
    on.state("back", topic)
    on.logs("log", topic, on=[0, 1, 2])
