"""Transactions for administrators: markers, lists and descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.compat.scenarios.produces import stored
from tests.compat.transactional import Producer, open_transaction

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

NEVER_GIVEN = 1 << 40
"""A producer id that no broker has given out."""

# WriteTxnMarkers.


def marker(producer: Producer, topic: str, *partitions: int, **fields: Any) -> dict[str, Any]:
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "transaction_result": False,
        "coordinator_epoch": 0,
        "topics": [{"name": topic, "partition_indexes": list(partitions)}],
        **fields,
    }


@scenario("write_txn_markers")
def write_markers(talk: Dialogue) -> None:
    """An admin client aborts a hanging transaction like this."""
    topic = talk.make_topic("t", partitions=2)
    producer = Producer(talk).begin_session().begin_session()
    talk.ask("nothing", markers=[])
    talk.ask("unknown", markers=[marker(producer, "nothing", 0)])
    talk.ask("unknown partition", markers=[marker(producer, topic, 0, 9)])
    producer.add(topic, 0)
    producer.produce(topic, b"a")
    talk.ask("older epoch", markers=[marker(producer, topic, 0, producer_epoch=0)])
    talk.ask("no epoch", markers=[marker(producer, topic, 0, producer_epoch=-1)])
    talk.ask("no producer", markers=[marker(producer, topic, 0, producer_id=-1)])
    talk.ask("abort", markers=[marker(producer, topic, 0)])
    talk.ask("again", markers=[marker(producer, topic, 0)])
    talk.ask("newer epoch", markers=[marker(producer, topic, 0, producer_epoch=3)])
    talk.ask("an epoch before", markers=[marker(producer, topic, 0, producer_epoch=2)])
    ahead = marker(producer, topic, 0, producer_epoch=3, coordinator_epoch=7)
    talk.ask("newer coordinator", markers=[ahead])
    behind = marker(producer, topic, 0, producer_epoch=3, coordinator_epoch=6)
    talk.ask("older coordinator", markers=[behind])
    talk.note("stored", stored(talk, topic))
    talk.note("stored in the other", stored(talk, topic, 1))


@scenario("write_txn_markers", since=2)
def write_markers_of_transaction_epochs(talk: Dialogue) -> None:
    """KIP-1228: with the second protocol a marker has a new epoch."""
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()
    producer.add(topic, 0)
    producer.produce(topic, b"a")
    talk.ask("epoch of the data", markers=[marker(producer, topic, 0, transaction_version=2)])
    next_one = marker(producer, topic, 0, transaction_version=2, producer_epoch=1)
    talk.ask("epoch of the end", markers=[next_one])
    talk.ask("again", markers=[next_one])
    talk.ask("late", markers=[marker(producer, topic, 0, transaction_version=2)])
    talk.note("stored", stored(talk, topic))


# What admin clients see.


@scenario("describe_producers")
def describe_producers_of_partitions(talk: Dialogue) -> None:
    topic = talk.make_topic("t", partitions=2)
    producer = Producer(talk).begin_session()
    topics = [{"name": topic, "partition_indexes": [0, 1, 5]}]
    talk.ask("nobody", topics=topics)
    producer.add(topic, 0)
    producer.produce(topic, b"a", b"b")
    talk.note("open", _without_times(talk.quietly("describe_producers", 0, topics=topics)))
    producer.end(committed=True)
    talk.note("ended", _without_times(talk.quietly("describe_producers", 0, topics=topics)))
    talk.ask("unknown", topics=[{"name": "nothing", "partition_indexes": [0]}])
    talk.ask("no name", topics=[{"name": "", "partition_indexes": [0]}])
    talk.ask("bad name", topics=[{"name": "a b", "partition_indexes": [0]}])
    talk.ask("nothing", topics=[])


def _without_times(answer: Any) -> Any:
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            for state in partition["active_producers"]:
                state["last_timestamp"] = state["last_timestamp"] > 0
    return answer


@scenario("describe_transactions")
def describe_transactions_of_ids(talk: Dialogue) -> None:
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()
    ids = [producer.transactional_id]
    talk.ask("empty", transactional_ids=ids)
    producer.add(topic, 0)
    talk.note("open", open_transaction(producer))
    producer.end(committed=False)
    talk.note("ended", open_transaction(producer))
    talk.ask("unknown", transactional_ids=["unknown", ""])
    talk.ask("nothing", transactional_ids=[])


@scenario("list_transactions")
def list_transactions_by_filter(talk: Dialogue) -> None:
    topic = talk.make_topic("t")
    producers = [Producer(talk, name).begin_session() for name in ("a", "b", "c")]
    first, second, third = producers
    first.add(topic, 0)
    second.add(topic, 0)
    second.end(committed=True)
    ids = [producer.producer_id for producer in producers]

    def ask(label: str, **fields: Any) -> None:
        answer = talk.quietly("list_transactions", talk.version, **fields)
        own = [
            state
            for state in answer["transaction_states"]
            if state["transactional_id"].startswith(talk.prefix)
        ]
        own.sort(key=lambda state: state["transactional_id"])
        talk.note(label, {**answer, "transaction_states": own})

    ask("all")
    ask("by producer", producer_id_filters=ids[:2])
    ask("nobody's", producer_id_filters=[NEVER_GIVEN])
    ask("open", state_filters=["Ongoing"])
    ask("two states", state_filters=["Empty", "CompleteCommit"])
    ask("unknown state", state_filters=["Open"])
    ask("one of them unknown", state_filters=["Open", "Empty"])
    ask("wrong case", state_filters=["ongoing"])
    ask("both filters", state_filters=["Ongoing"], producer_id_filters=[third.producer_id])
    if talk.version >= 1:
        ask("long open", duration_filter=3_600_000)
        ask("open at all", duration_filter=0, state_filters=["Ongoing"])
    if talk.version >= 2:
        ask("pattern", transactional_id_pattern=f".*{talk.version}.[ab]")
        ask("pattern of nothing", transactional_id_pattern="nothing")
        ask("empty pattern", transactional_id_pattern="")
        ask("no pattern", transactional_id_pattern="[")
