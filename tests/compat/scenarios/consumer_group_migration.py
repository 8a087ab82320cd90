"""Groups that change their protocol while members go on, and their records in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.groups.records import OFFSET_COMMIT, decode_record
from minibroker.kafka.protocol.message import Message
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import TopicPartition
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.record import decode_records
from tests.compat.scenarios import scenario
from tests.compat.scenarios.consumer_group_members import (
    ClassicConsumer,
    Consumer,
    consumer_group_of,
    describe,
    share_of,
)
from tests.compat.scenarios.group_members import OFFSETS_TOPIC

if TYPE_CHECKING:
    from minibroker.kafka.records.record import Record
    from tests.compat.dialogue import Dialogue


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_upgrade(talk: Dialogue) -> None:
    """A classic group becomes a consumer group, its members go on, and it becomes classic again."""
    topic = talk.make_topic("topic", partitions=2)
    group_id = consumer_group_of(talk)
    classic = ClassicConsumer(talk, group_id, [topic])
    classic.join("classic")
    classic.sync("classic's share", {classic.member_id: share_of(topic, [0, 1])})
    describe(talk, "not yet a consumer group", group_id)
    consumer = Consumer(talk, group_id, "new", subscribed_topic_names=[topic])
    consumer.join("consumer")
    describe(talk, "a consumer group", group_id)
    talk.also("describe as classic", "describe_groups", 5, groups=[group_id])
    classic.beat("classic has to join again")
    classic.owned = [TopicPartition(topic=topic, partitions=[0, 1])]
    classic.join("classic joins again")
    classic.sync("classic has to give up")
    classic.beat("classic has to join once more")
    classic.owned = [TopicPartition(topic=topic, partitions=[0])]
    classic.join("classic has given up")
    classic.sync("classic's new share")
    consumer.beat("consumer gets its share")
    describe(talk, "both", group_id)
    classic.beat("classic is at peace")
    classic.beat("a wrong generation", generation_id=1)
    classic.beat("a member of the other protocol", member_id="new")
    classic.beat("a stranger", member_id="nobody")
    classic.sync("a wrong generation syncs", generation_id=1)
    classic.sync("a wrong protocol", protocol_name="sticky")
    classic.sync("a wrong type", protocol_type="connect")
    classic.join("another assignor", protocols=[{"name": "sticky", "metadata": b"\0\1"}])
    classic.join("another type", protocol_type="connect")
    classic.join("a session too short", session_timeout_ms=1)
    stranger = ClassicConsumer(talk, group_id, [topic])
    stranger.leave("a stranger leaves", member_id="nobody")
    consumer.leave("consumer leaves")
    describe(talk, "not a consumer group any more", group_id)
    classic.beat("classic has to join a classic group")
    classic.join("classic joins the classic group")
    classic.sync("it leads", {classic.member_id: share_of(topic, [0, 1])})
    classic.leave("classic leaves")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_joined_by_classic(talk: Dialogue) -> None:
    """A classic member comes to a consumer group, and stays alone."""
    topic = talk.make_topic("topic", partitions=2)
    group_id = consumer_group_of(talk)
    consumer = Consumer(talk, group_id, "new", subscribed_topic_names=[topic])
    consumer.join("consumer")
    classic = ClassicConsumer(talk, group_id, [topic])
    classic.join("no protocols", protocols=[])
    classic.join("not a subscription", protocols=[{"name": "range", "metadata": b""}])
    classic.join("classic")
    classic.sync("nothing yet")
    classic.beat("waits")
    consumer.beat("consumer has to give up")
    consumer.report("consumer has given up")
    classic.beat("its share is free")
    classic.join("gets its share")
    classic.sync("its share")
    describe(talk, "both", group_id)
    classic.leave("a member of the other protocol is removed", member_id="new")
    talk.also("list", "list_groups", 5, types_filter=["consumer"], states_filter=["dead"])
    describe(talk, "classic again", group_id)
    classic.leave("classic leaves")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_static_migration(talk: Dialogue) -> None:
    """One static member goes over to the consumer protocol and back."""
    topic = talk.make_topic("topic", partitions=2)
    group_id = consumer_group_of(talk)
    classic = ClassicConsumer(talk, group_id, [topic], instance_id="i")
    classic.join("classic")
    classic.sync("share", {classic.member_id: share_of(topic, [0, 1])})
    consumer = Consumer(talk, group_id, "new", instance_id="i", subscribed_topic_names=[topic])
    consumer.join("the same instance as a consumer")
    describe(talk, "taken over", group_id)
    classic.beat("the classic one is fenced")
    again = ClassicConsumer(talk, group_id, [topic], instance_id="i")
    again.join("and back")
    again.sync("share again", {again.member_id: share_of(topic, [0, 1])})
    describe(talk, "classic once more", group_id)
    again.leave("leave")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_after_offsets(talk: Dialogue) -> None:
    """Groups that only store offsets, and empty groups of both kinds, become the requested kind."""
    topic = talk.make_topic("topic")
    group_id = consumer_group_of(talk)
    talk.also(
        "offsets only",
        "offset_commit",
        7,
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 0}]}],
    )
    member = Consumer(talk, group_id, "m", subscribed_topic_names=[topic])
    member.beat("heartbeat to a group of offsets", member_epoch=3)
    member.join("joins the group of offsets")
    member.leave("leaves")
    classic = ClassicConsumer(talk, group_id, [topic])
    classic.join("classic joins the empty group")
    classic.sync("share", {classic.member_id: share_of(topic, [0])})
    describe(talk, "a classic group", group_id)
    classic.leave("classic leaves")
    member.join("consumer joins the empty group")
    other = ClassicConsumer(talk, group_id, [topic])
    other.leave("leaves where it never was", member_id="nobody")
    member.leave("leaves again")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_not_a_consumer_protocol(talk: Dialogue) -> None:
    """A consumer cannot join a classic group of another protocol type."""
    group_id = consumer_group_of(talk)
    connect = ClassicConsumer(talk, group_id, [])
    connect.join("connect", protocol_type="connect", protocols=[{"name": "v0", "metadata": b"x"}])
    member = Consumer(talk, group_id, "m", subscribed_topic_names=[])
    member.join("consumer")
    member.beat("heartbeat", member_epoch=1)
    member.leave("leave")


# The records.

ANY_TIME = ("metadata_hash", "assignment_timestamp", "current_state_timestamp", "timestamp")
"""Fields of records that depend on the topic's id, or on the time."""


def _plain(value: Any) -> Any:
    """Return a generated message as dictionaries and lists."""
    if isinstance(value, Message):
        names = type(value).__slots__
        return {
            name: "some"
            if name in ANY_TIME and getattr(value, name)
            else _plain(getattr(value, name))
            for name in names
        }
    return [_plain(item) for item in value] if isinstance(value, list) else value


def note_records(talk: Dialogue, label: str, group_id: str) -> None:
    """Record every record of the group in `__consumer_offsets`, in order."""
    topics = talk.metadata_of(OFFSETS_TOPIC)
    entries: list[dict[str, Any]] = []
    for index in range(len(topics["partitions"])):
        position = 0
        while True:
            answer = talk.quietly(
                "fetch",
                11,
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                topics=[
                    {
                        "topic": OFFSETS_TOPIC,
                        "partitions": [
                            {
                                "partition": index,
                                "fetch_offset": position,
                                "partition_max_bytes": 1 << 24,
                            }
                        ],
                    }
                ],
            )
            records = bytes(answer["responses"][0]["partitions"][0]["records"] or b"")
            if not records:
                break
            for start, header in iterate_headers(records):
                if not header.is_control:  # the end of a transaction with offsets of another test
                    entries += _of_group(decode_records(records, start, header=header), group_id)
                position = header.last_offset + 1
    talk.note(label, entries)


def _of_group(records: list[Record], group_id: str) -> list[dict[str, Any]]:
    entries = [decode_record(record.key, record.value) for record in records]
    return [
        {
            "kind": entry.kind,
            # Members are removed in the order of Kafka's hash table.
            "key": _plain(entry.key) if entry.value is not None else "some member",
            "value": _plain(entry.value),
        }
        for entry in entries
        if entry is not None
        and getattr(entry.key, "group_id", group_id) == group_id
        and getattr(entry.key, "group", group_id) == group_id
        and entry.kind > OFFSET_COMMIT
    ]


@scenario("consumer_group_heartbeat", since=1)
def consumer_group_heartbeat_records(talk: Dialogue) -> None:
    """The log after members came, moved, were replaced, migrated and left."""
    topic = talk.make_topic("topic", partitions=3)
    group_id = consumer_group_of(talk)
    first = Consumer(talk, group_id, "first", subscribed_topic_names=[topic], rack_id="rack")
    static = Consumer(
        talk, group_id, "static", instance_id="i", subscribed_topic_names=[topic, talk.topic("no")]
    )
    first.join("first")
    static.join("static")
    first.beat("first gives up")
    first.report("first has given up")
    static.beat("static gets its share")
    static.leave("static leaves for a while", epoch=-2)
    static.member_id = "static again"
    static.join("static comes back")
    first.beat("first asks for range", server_assignor="range")
    first.report("first has what range gives")
    static.report("static has what range gives")
    classic = ClassicConsumer(talk, group_id, [topic])
    # A random id would make it random who gets what.
    classic.member_id = "classic"
    classic.join("classic")
    classic.sync("nothing yet")
    static.leave("static leaves")
    first.leave("first leaves")
    classic.leave("classic leaves")
    note_records(talk, "records", group_id)
