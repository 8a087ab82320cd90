"""Transactions: the requests of a producer, and the records that readers get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.compat.scenarios.produces import stored
from tests.compat.transactional import TIMEOUT_MS, Producer, open_transaction
from tests.support.batches import batch, describe

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

NEVER_GIVEN = 1 << 40
"""A producer id that no broker has given out."""

# InitProducerId.


def init(talk: Dialogue, producer: Producer, **fields: Any) -> dict[str, Any]:
    return {
        "transactional_id": producer.transactional_id,
        "transaction_timeout_ms": TIMEOUT_MS,
        **fields,
    }


@scenario("init_producer_id")
def init_transactional(talk: Dialogue) -> None:
    producer = Producer(talk).begin_session()
    for label in ("second session", "third session"):
        talk.ask(label, **init(talk, producer))
    for timeout_ms in (0, -1, 900_001, 2**31 - 1):
        talk.ask(
            f"time-out {timeout_ms}", **init(talk, producer, transaction_timeout_ms=timeout_ms)
        )
    talk.ask("longest time-out", **init(talk, producer, transaction_timeout_ms=900_000))
    talk.ask("empty id", **init(talk, producer, transactional_id=""))


@scenario("init_producer_id")
def init_fences_an_open_transaction(talk: Dialogue) -> None:
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()
    producer.add(topic, 0)
    producer.produce(topic, b"a")
    talk.ask("while open", **init(talk, producer))
    producer.settle()
    talk.note("after", open_transaction(producer))
    talk.ask("again", **init(talk, producer))
    talk.note("stored", stored(talk, topic))


@scenario("init_producer_id", since=3)
def init_recovers(talk: Dialogue) -> None:
    """KIP-360: the client names the id and epoch that it believes to have."""
    producer = Producer(talk).begin_session()
    own = producer.producer_id
    talk.ask("own epoch", **init(talk, producer, producer_id=own, producer_epoch=0))
    talk.ask("repeated", **init(talk, producer, producer_id=own, producer_epoch=0))
    talk.ask("the new one", **init(talk, producer, producer_id=own, producer_epoch=1))
    talk.ask("two behind", **init(talk, producer, producer_id=own, producer_epoch=0))
    talk.ask("ahead", **init(talk, producer, producer_id=own, producer_epoch=9))
    talk.ask("a stranger", **init(talk, producer, producer_id=own + NEVER_GIVEN, producer_epoch=2))
    talk.ask("id without epoch", **init(talk, producer, producer_id=own))
    talk.ask("epoch without id", **init(talk, producer, producer_epoch=2))
    talk.ask("new session", **init(talk, producer))
    talk.ask("fenced", **init(talk, producer, producer_id=own, producer_epoch=2))
    fresh = Producer(talk, "fresh")
    talk.ask("unknown id", **init(talk, fresh, producer_id=own + NEVER_GIVEN, producer_epoch=7))


# AddPartitionsToTxn, AddOffsetsToTxn.


def adding(producer: Producer, *topics: tuple[str, list[int]], **owner: Any) -> dict[str, Any]:
    fields = {**producer.owner, **owner}
    return {
        **{f"v3_and_below_{name}": value for name, value in fields.items()},
        "v3_and_below_topics": [{"name": name, "partitions": list_} for name, list_ in topics],
    }


@scenario("add_partitions_to_txn", until=3)
def add_partitions(talk: Dialogue) -> None:
    topic = talk.make_topic("t", partitions=3)
    other = talk.make_topic("other")
    producer = Producer(talk).begin_session()
    talk.ask("first", **adding(producer, (topic, [0, 1]), (other, [0])))
    talk.note("described", open_transaction(producer))
    talk.ask("the same", **adding(producer, (topic, [0])))
    talk.ask("one more", **adding(producer, (topic, [2])))
    talk.ask("no such partition", **adding(producer, (topic, [1, 3])))
    talk.ask("no such topic", **adding(producer, ("nothing", [0]), (topic, [0])))
    talk.ask("nothing", **adding(producer))
    talk.ask("older epoch", **adding(producer, (topic, [0]), producer_epoch=-1))
    talk.ask("newer epoch", **adding(producer, (topic, [0]), producer_epoch=1))
    talk.ask("other producer", **adding(producer, (topic, [0]), producer_id=NEVER_GIVEN))
    talk.ask("unknown id", **adding(producer, (topic, [0]), transactional_id="unknown"))
    talk.ask("empty id", **adding(producer, (topic, [0]), transactional_id=""))
    producer.end(committed=True)
    talk.ask("next transaction", **adding(producer, (topic, [1])))
    talk.note("described next", open_transaction(producer))
    talk.ask("an internal topic", **adding(producer, ("__transaction_state", [0])))


@scenario("add_partitions_to_txn", since=4)
def add_partitions_batched(talk: Dialogue) -> None:
    """Requests of brokers: several transactions, some only to be verified."""
    topic = talk.make_topic("t", partitions=3)
    first, second = Producer(talk, "one").begin_session(), Producer(talk, "two").begin_session()
    partitions = {"topics": [{"name": topic, "partitions": [0, 1]}]}

    def batched(*transactions: dict[str, Any]) -> dict[str, Any]:
        return {"transactions": list(transactions)}

    verifying = {"verify_only": True, **partitions}
    talk.ask("verify before", **batched({**first.owner, **verifying}))
    talk.ask(
        "two at once",
        **batched(
            {**first.owner, **partitions}, {**second.owner, **partitions, "producer_epoch": 5}
        ),
    )
    talk.ask("verify", **batched({**first.owner, **verifying}, {**second.owner, **verifying}))
    third = {"verify_only": True, "topics": [{"name": topic, "partitions": [0, 2]}]}
    talk.ask("verify one that is not in", **batched({**first.owner, **third}))
    talk.ask("verify older epoch", **batched({**first.owner, **verifying, "producer_epoch": -1}))
    talk.ask(
        "verify other producer", **batched({**first.owner, **verifying, "producer_id": NEVER_GIVEN})
    )
    talk.ask(
        "verify unknown id", **batched({**first.owner, **verifying, "transactional_id": "unknown"})
    )
    talk.ask("verify empty id", **batched({**first.owner, **verifying, "transactional_id": ""}))
    missing = {"topics": [{"name": topic, "partitions": [0, 7]}]}
    talk.ask("no such partition", **batched({**first.owner, **missing}))
    talk.note("described", open_transaction(first))


@scenario("add_offsets_to_txn")
def add_offsets(talk: Dialogue) -> None:
    producer = Producer(talk).begin_session()
    group = talk.prefix + "group"
    talk.ask("first", group_id=group, **producer.owner)
    talk.note("described", open_transaction(producer))
    talk.ask("again", group_id=group, **producer.owner)
    talk.ask("older epoch", group_id=group, **{**producer.owner, "producer_epoch": -1})
    talk.ask("newer epoch", group_id=group, **{**producer.owner, "producer_epoch": 1})
    talk.ask("other producer", group_id=group, **{**producer.owner, "producer_id": NEVER_GIVEN})
    talk.ask("unknown id", group_id=group, **{**producer.owner, "transactional_id": "unknown"})
    talk.ask("empty id", group_id=group, **{**producer.owner, "transactional_id": ""})
    talk.ask("empty group", group_id="", **producer.owner)


# EndTxn.


@scenario("end_txn", until=4)
def end_session_epochs(talk: Dialogue) -> None:
    """The first protocol: the epoch stays; an end may be repeated, not reversed."""
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()
    for committed in (True, False):
        talk.ask(f"nothing begun, commit {committed}", committed=committed, **producer.owner)
    for number, committed in enumerate((True, False, True)):
        producer.add(topic, 0)
        producer.produce(topic, b"a", sequence=number)
        talk.ask(f"{number}: older epoch", **ending(producer, committed, producer_epoch=-1))
        talk.ask(f"{number}: newer epoch", **ending(producer, committed, producer_epoch=1))
        talk.ask(f"{number}: end", **ending(producer, committed))
        producer.settle()
        talk.note(f"{number}: described", open_transaction(producer))
        talk.ask(f"{number}: the same", **ending(producer, committed))
        talk.ask(f"{number}: the other", **ending(producer, not committed))
    talk.ask("other producer", **ending(producer, True, producer_id=NEVER_GIVEN))
    talk.ask("unknown id", **ending(producer, True, transactional_id="unknown"))
    talk.ask("empty id", **ending(producer, True, transactional_id=""))
    talk.note("stored", stored(talk, topic))


def ending(producer: Producer, committed: bool, **owner: Any) -> dict[str, Any]:
    return {"committed": committed, **producer.owner, **owner}


@scenario("end_txn", since=5)
def end_transaction_epochs(talk: Dialogue) -> None:
    """The second protocol (KIP-890): every end raises the epoch."""
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()
    talk.ask("nothing begun, commit", **ending(producer, True))
    talk.ask("nothing begun, older epoch", **ending(producer, False, producer_epoch=-1))
    _ask_end(talk, "nothing begun, abort", producer, False)
    for number, committed in enumerate((True, False, True)):
        producer.add(topic, 0)
        producer.produce(topic, b"a")
        _ask_end(talk, f"{number}: end", producer, committed)
        talk.note(f"{number}: described", open_transaction(producer))
        old_epoch = producer.epoch - 1
        for label, ago in (("the same", old_epoch), ("two behind", old_epoch - 1)):
            talk.ask(f"{number}: {label}", **ending(producer, committed, producer_epoch=ago))
        talk.ask(
            f"{number}: the other", **ending(producer, not committed, producer_epoch=old_epoch)
        )
        talk.ask(f"{number}: commit", **ending(producer, True))
        _ask_end(talk, f"{number}: abort", producer, False)
    talk.ask("other producer", **ending(producer, True, producer_id=NEVER_GIVEN))
    talk.ask("unknown id", **ending(producer, True, transactional_id="unknown"))
    talk.ask("empty id", **ending(producer, True, transactional_id=""))
    talk.note("stored", stored(talk, topic))


def _ask_end(talk: Dialogue, label: str, producer: Producer, committed: bool) -> None:
    answer = talk.ask(label, **ending(producer, committed))
    producer.settle()
    producer.producer_id, producer.epoch = answer["producer_id"], answer["producer_epoch"]


OVERDUE_MS = 2_000
"""Time-out of a transaction that gets a record before, also on a slow machine."""


@scenario("end_txn")
def end_of_an_overdue_transaction(talk: Dialogue) -> None:
    """The broker aborts an overdue transaction and fences its producer.

    The producer may recover (KIP-360) in a cluster of the second protocol, which Kafka 3.9 is not.
    """
    topic = talk.make_topic("t")
    producer = Producer(talk, timeout_ms=OVERDUE_MS).begin_session()
    producer.add(topic, 0)
    producer.produce(topic, b"a")
    talk.wait_until(
        lambda: producer.described()["transaction_state"] == "CompleteAbort", "the time-out"
    )
    talk.note("described", open_transaction(producer))
    for committed in (True, False):
        talk.ask(f"commit {committed}", **ending(producer, committed))
    records = producer.batch(b"b", sequence=1)
    produced = talk.quietly("produce", 9, **producing(talk, producer, topic, records))
    talk.note("late batch", produced["responses"][0]["partition_responses"][0]["error_code"])
    if talk.version >= 5:
        recovering = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        talk.also("recover", "init_producer_id", 4, **init(talk, producer, **recovering))
    talk.note("stored", stored(talk, topic))


# Produce and Fetch.


def producing(
    talk: Dialogue, producer: Producer, topic: str, records: bytes, **fields: Any
) -> dict[str, Any]:
    name_fields = {"topic_id": talk.topic_id(topic)} if talk.version >= 13 else {"name": topic}
    return {
        "transactional_id": producer.transactional_id,
        "acks": -1,
        "timeout_ms": 10_000,
        "topic_data": [{**name_fields, "partition_data": [{"index": 0, "records": records}]}],
        **fields,
    }


@scenario("produce", since=3, until=11)
def produce_transactional(talk: Dialogue) -> None:
    """The first protocol: partitions are added before they are written to."""
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()

    def ask(label: str, records: bytes, **fields: Any) -> None:
        talk.ask(label, **producing(talk, producer, topic, records, **fields))

    ask("not added", producer.batch(b"a"))
    producer.add(topic, 0)
    ask("first", producer.batch(b"a", b"b"))
    ask("second", producer.batch(b"c", sequence=2))
    ask("repeated", producer.batch(b"c", sequence=2))
    ask("out of order", producer.batch(b"d", sequence=9))
    ask("older epoch", producer.batch(b"d", sequence=3, epoch=-1))
    ask("outside", batch(b"d", producer_id=producer.producer_id, producer_epoch=0, sequence=3))
    ask("other id", producer.batch(b"d", sequence=3), transactional_id="unknown")
    ask("no id", producer.batch(b"d", sequence=3), transactional_id=None)
    producer.end(committed=True)
    ask("after the end", producer.batch(b"e", sequence=3))
    ask("repeated after the end", producer.batch(b"c", sequence=2))
    producer.begin_session()
    producer.add(topic, 0)
    ask("next session", producer.batch(b"f"))
    ask("the session before", producer.batch(b"g", epoch=0, sequence=4))
    talk.note("stored", stored(talk, topic))


@scenario(
    "produce",
    since=3,
    until=11,
    peer="4.4.0",
    because="3.9.1 takes the batch, as a transaction is open, and can never end it any more",
)
def produce_with_a_newer_epoch(talk: Dialogue) -> None:
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()
    producer.add(topic, 0)
    producer.produce(topic, b"a")
    records = producer.batch(b"b", epoch=1)
    talk.ask("newer epoch", **producing(talk, producer, topic, records))
    producer.end(committed=True)
    talk.note("stored", stored(talk, topic))


@scenario("produce", since=12)
def produce_adds_partitions(talk: Dialogue) -> None:
    """The second protocol: the first batch begins the transaction."""
    topic = talk.make_topic("t")
    producer = Producer(talk).begin_session()

    def ask(label: str, records: bytes, **fields: Any) -> None:
        talk.ask(label, **producing(talk, producer, topic, records, **fields))

    ask("not from the start", producer.batch(b"b", sequence=1))
    ask("first", producer.batch(b"a", b"b"))
    talk.note("described", open_transaction(producer))
    ask("second", producer.batch(b"c", sequence=2))
    ask("newer epoch", producer.batch(b"d", epoch=1))
    ask("unknown id", producer.batch(b"d", epoch=1), transactional_id="unknown")
    answer = talk.quietly("end_txn", 5, **ending(producer, True))
    producer.settle()
    ask("the transaction before", producer.batch(b"d", sequence=3))
    producer.epoch = answer["producer_epoch"]
    ask("next", producer.batch(b"e"))
    talk.quietly("end_txn", 5, **ending(producer, False))
    producer.settle()
    talk.note("stored", stored(talk, topic))


@scenario("fetch", since=4)
def fetch_committed(talk: Dialogue) -> None:
    """Committed, aborted, open and plain records of three producers, read from every offset."""
    topic = talk.make_topic("t")
    first, second = Producer(talk, "one").begin_session(), Producer(talk, "two").begin_session()
    talk.produce(topic, batch(b"plain"))
    first.add(topic, 0)
    first.produce(topic, b"aborted 1")
    second.add(topic, 0)
    second.produce(topic, b"committed")
    first.produce(topic, b"aborted 2", sequence=1)
    first.end(committed=False)
    talk.produce(topic, batch(b"plain"))
    second.end(committed=True)
    first.add(topic, 0)
    first.produce(topic, b"aborted 3", sequence=2)
    first.end(committed=False)
    second.add(topic, 0)
    second.produce(topic, b"open", sequence=1)
    talk.produce(topic, batch(b"plain"))
    for isolation_level in (0, 1):
        for offset in range(12):
            _note_fetch(talk, topic, offset, isolation_level)


def _note_fetch(talk: Dialogue, topic: str, offset: int, isolation_level: int) -> None:
    name_fields = {"topic_id": talk.topic_id(topic)} if talk.version >= 13 else {"topic": topic}
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    answer = talk.quietly(
        "fetch",
        talk.version,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        topics=[{**name_fields, "partitions": [part]}],
    )
    result = answer["responses"][0]["partitions"][0]
    result["batches"] = describe(result.pop("records") or b"")
    if result["aborted_transactions"]:
        result["aborted_transactions"].sort(key=lambda entry: entry["first_offset"])
    talk.note(f"isolation {isolation_level}, offset {offset}", result)
