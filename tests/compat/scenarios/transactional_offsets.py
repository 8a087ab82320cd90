"""TxnOffsetCommit: offsets that count when their transaction is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.compat.scenarios.committed_offsets import (
    METADATA_MAX,
    commit_quietly,
    consumer,
    part,
    topic_in,
)
from tests.compat.scenarios.group_members import group_of
from tests.compat.transactional import CONCURRENT_TRANSACTIONS, NOT_YET, Producer

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

FIRST_ADDING = 5
"""The first version in which the broker adds the group's partition to the transaction."""
FIRST_WITH_MEMBERS = 3


def add_group(talk: Dialogue, producer: Producer, group_id: str) -> None:
    """Add the group's offsets to the transaction, where the version does not do it itself."""
    if talk.version >= FIRST_ADDING:
        return

    def is_added() -> bool:
        answer = talk.quietly("add_offsets_to_txn", 0, group_id=group_id, **producer.owner)
        assert answer["error_code"] in {0, *NOT_YET}, answer
        return bool(answer["error_code"] == 0)

    talk.wait_until(is_added, f"offsets of {group_id} in {producer.transactional_id}")


def commit(
    talk: Dialogue,
    label: str,
    producer: Producer,
    group_id: str,
    topic: str,
    *parts: dict[str, Any],
    **fields: Any,
) -> None:
    """Send TxnOffsetCommit for one topic; ask again while the last transaction ends."""
    topics = [topic_in(talk, topic, 6, partitions=list(parts))]
    request = {"group_id": group_id, **producer.owner, "topics": topics, **fields}
    answer: dict[str, Any] = {}

    def is_ready() -> bool:
        answer.update(talk.quietly("txn_offset_commit", talk.version, **request))
        codes = {
            partition["error_code"]
            for topic in answer["topics"]
            for partition in topic["partitions"]
        }
        return CONCURRENT_TRANSACTIONS not in codes

    talk.wait_until(is_ready, "the end of the transaction before")
    talk.note(label, answer)


def read(talk: Dialogue, label: str, group_id: str) -> None:
    """Record all offsets of the group, and only the stable ones."""
    talk.also(label, "offset_fetch", 7, group_id=group_id, topics=None)
    talk.also(
        f"{label}, stable", "offset_fetch", 7, group_id=group_id, topics=None, require_stable=True
    )


def end(talk: Dialogue, producer: Producer, group_id: str, *, committed: bool) -> None:
    """End the transaction, and wait until the group's offsets are stable.

    Kafka 3.9 applies the marker to the group on another thread, after the transaction is complete.
    """
    producer.end(committed=committed)

    def is_stable() -> bool:
        answer = talk.quietly(
            "offset_fetch", 7, group_id=group_id, topics=None, require_stable=True
        )
        return not any(
            partition["error_code"]
            for topic in answer["topics"]
            for partition in topic["partitions"]
        )

    talk.wait_until(is_stable, f"stable offsets of {group_id}")


@scenario("txn_offset_commit")
def txn_offset_commit_and_the_end(talk: Dialogue) -> None:
    """Offsets are invisible before the marker, visible after a commit, gone after an abort."""
    group_id = group_of(talk)
    topic = talk.make_topic("read", partitions=3)
    producer = Producer(talk).begin_session()
    commit_quietly(talk, group_id, topic, 1)
    add_group(talk, producer, group_id)
    commit(talk, "first", producer, group_id, topic, part(0, 5), part(1, 6, "text"))
    read(talk, "before the end", group_id)
    commit(talk, "again", producer, group_id, topic, part(0, 7), part(2, 1, None))
    end(talk, producer, group_id, committed=True)
    read(talk, "after the end", group_id)
    add_group(talk, producer, group_id)
    commit(talk, "second", producer, group_id, topic, part(0, 9), part(1, 9))
    read(talk, "before the abort", group_id)
    end(talk, producer, group_id, committed=False)
    read(talk, "after the abort", group_id)


@scenario("txn_offset_commit")
def txn_offset_commit_beside_another_commit(talk: Dialogue) -> None:
    """The later record in the log counts, whenever the transaction ends."""
    group_id = group_of(talk)
    topic = talk.make_topic("read", partitions=2)
    producer = Producer(talk).begin_session()
    add_group(talk, producer, group_id)
    commit(talk, "pending", producer, group_id, topic, part(0, 9), part(1, 9))
    commit_quietly(talk, group_id, topic, 4)
    end(talk, producer, group_id, committed=True)
    read(talk, "then", group_id)


@scenario("txn_offset_commit")
def txn_offset_commit_refused(talk: Dialogue) -> None:
    group_id = group_of(talk)
    topic = talk.make_topic("read", partitions=2)
    producer = Producer(talk).begin_session().begin_session()
    if talk.version < FIRST_ADDING:
        commit(talk, "not in the transaction", producer, group_id, topic, part(0, 5))
    add_group(talk, producer, group_id)
    long = "x" * (METADATA_MAX + 1)
    commit(talk, "one too much", producer, group_id, topic, part(0, 5, long), part(1, 5))
    commit(talk, "no such partition", producer, group_id, topic, part(2, 5), part(0, 6))
    unknown: dict[str, Any] = {"partitions": [part(0, 5)]}
    if talk.version >= 6:
        unknown["topic_id"] = b"\1" * 16
    else:
        unknown["name"] = talk.topic("unknown")
    talk.ask("no such topic", group_id=group_id, **producer.owner, topics=[unknown])
    talk.ask("no topics", group_id=group_id, **producer.owner, topics=[])
    commit(talk, "no group", producer, "", topic, part(0, 7))
    older = {"producer_epoch": producer.epoch - 1}
    commit(talk, "an older epoch", producer, group_id, topic, part(0, 8), **older)
    if talk.version >= FIRST_WITH_MEMBERS:
        fields = {"generation_id_or_member_epoch": 3, "member_id": "who"}
        commit(
            talk, "of a generation that never was", producer, group_id, topic, part(0, 9), **fields
        )
    read(talk, "left", group_id)


@scenario("txn_offset_commit", since=FIRST_WITH_MEMBERS)
def txn_offset_commit_of_members(talk: Dialogue) -> None:
    """KIP-447: a producer of a member in an old generation is fenced."""
    group_id = group_of(talk)
    topic = talk.make_topic("read")
    member = consumer(talk, group_id, "member", topic)
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    producer = Producer(talk).begin_session()
    add_group(talk, producer, group_id)
    own = {"generation_id_or_member_epoch": member.generation, "member_id": member.member_id}
    commit(talk, "member", producer, group_id, topic, part(0, 1), **own)
    later = {**own, "generation_id_or_member_epoch": member.generation + 1}
    commit(talk, "later generation", producer, group_id, topic, part(0, 2), **later)
    commit(talk, "stranger", producer, group_id, topic, part(0, 3), **{**own, "member_id": "who"})
    commit(talk, "no member", producer, group_id, topic, part(0, 4))
    end(talk, producer, group_id, committed=True)
    read(talk, "read", group_id)
