"""FindCoordinator, OffsetCommit, OffsetFetch, OffsetDelete: commits of groups, and their
permission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from tests.compat.scenarios import scenario
from tests.compat.scenarios.group_members import Member, group_of

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

GROUP, TRANSACTION, SHARE = 0, 1, 2
COORDINATOR_NOT_AVAILABLE = 15
FETCH_VERSION = 5
METADATA_MAX = 4096
FAR_AWAY_MS = 1_000_000_000
UNKNOWN_ID = bytes(14) + b"\1\1"
"""An id of no topic; it sorts before any id of a broker."""


def part(index: int, offset: int, metadata: str | None = "", **fields: Any) -> dict[str, Any]:
    """Return one partition of an OffsetCommit request."""
    return {
        "partition_index": index,
        "committed_offset": offset,
        "committed_metadata": metadata,
        **fields,
    }


def topic_in(talk: Dialogue, name: str, since_ids: int, **fields: Any) -> dict[str, Any]:
    """Return a topic of a request as the version under test names it."""
    if talk.version >= since_ids:
        return {"topic_id": talk.topic_id(name), **fields}
    return {"name": name, **fields}


def commit(
    talk: Dialogue, label: str, group_id: str, topic: str, *parts: dict[str, Any], **fields: Any
) -> None:
    """Send OffsetCommit for one topic at the version under test, without a member."""
    if talk.version >= 1:
        fields = {"generation_id_or_member_epoch": -1, **fields}
    topics = [topic_in(talk, topic, 10, partitions=list(parts))]
    talk.ask(label, group_id=group_id, topics=topics, **fields)


def commit_quietly(talk: Dialogue, group_id: str, topic: str, *offsets: int) -> None:
    """Commit these offsets for partitions 0, 1 … as a preparation."""
    answer = talk.quietly(
        "offset_commit",
        3,
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        topics=[
            {
                "name": topic,
                "partitions": [part(index, offset) for index, offset in enumerate(offsets)],
            }
        ],
    )
    codes = [partition["error_code"] for partition in answer["topics"][0]["partitions"]]
    assert codes == [0] * len(offsets), codes


def read_back(talk: Dialogue, label: str, group_id: str, topic: str | None = None) -> None:
    """Record the group's offsets (in version 0 those of `topic`: it cannot ask for all)."""
    if talk.api == "offset_commit" and talk.version == 0:
        topics = [{"name": topic, "partition_indexes": [0, 1, 2]}]
        talk.also(label, "offset_fetch", 0, group_id=group_id, topics=topics)
    else:
        talk.also(label, "offset_fetch", FETCH_VERSION, group_id=group_id, topics=None)


def consumer(talk: Dialogue, group_id: str, name: str, *topics: str, **other: Any) -> Member:
    """Return a member of a consumer group that is subscribed to `topics` and has its share."""
    member = Member(talk, group_id, name, **other)
    metadata = ConsumerProtocolSubscription(topics=sorted(topics)).to_bytes(0)
    member.send_join(protocols=[{"name": "range", "metadata": metadata}])
    if member.hear()["error_code"]:
        member.send_join(protocols=[{"name": "range", "metadata": metadata}])
        member.hear()
    return member


# FindCoordinator.


def find(talk: Dialogue, label: str, key: str, key_type: int = GROUP) -> None:
    """Ask for one key as the version under test does, once its partition has a leader."""
    if key_type in (GROUP, TRANSACTION):

        def is_there() -> bool:
            answer = talk.quietly("find_coordinator", 1, key=key, key_type=key_type)
            return bool(answer["error_code"] != COORDINATOR_NOT_AVAILABLE)

        talk.wait_until(is_there, f"a coordinator of {key!r}")
    fields: dict[str, Any] = {"coordinator_keys": [key]} if talk.version >= 4 else {"key": key}
    if talk.version >= 1:
        fields["key_type"] = key_type
    talk.ask(label, **fields)


@scenario("find_coordinator")
def find_coordinator_of_groups(talk: Dialogue) -> None:
    group_id = group_of(talk)
    find(talk, "a group", group_id)
    find(talk, "an empty id", "")
    find(talk, "beyond ASCII", "gruppe-\N{LATIN SMALL LETTER U WITH DIAERESIS}-\N{GRINNING FACE}")


@scenario("find_coordinator", since=1)
def find_coordinator_of_transactions(talk: Dialogue) -> None:
    find(talk, "a transactional id", talk.topic("id"), TRANSACTION)
    find(talk, "an empty id", "", TRANSACTION)


@scenario("find_coordinator", since=1)
def find_coordinator_of_unknown_type(talk: Dialogue) -> None:
    for key_type in (3, 100, -1):
        find(talk, f"type {key_type}", "key", key_type)
    find(talk, "share group without its form", "key", SHARE)


@scenario("find_coordinator", since=4)
def find_coordinators(talk: Dialogue) -> None:
    keys = [group_of(talk, name) for name in ("a", "b", "a")]
    talk.ask("several", key_type=GROUP, coordinator_keys=keys)
    talk.ask("none", key_type=GROUP, coordinator_keys=[])


# OffsetCommit.


@scenario("offset_commit")
def offset_commit_of_nobody(talk: Dialogue) -> None:
    """A consumer that assigns its partitions itself commits any offset, up and down."""
    group_id = group_of(talk)
    topic = talk.make_topic("read", partitions=3)
    commit(talk, "first", group_id, topic, part(0, 5, "five"), part(1, 7, None), part(2, 0))
    read_back(talk, "first read", group_id, topic)
    commit(talk, "forth", group_id, topic, part(0, 9))
    commit(talk, "back", group_id, topic, part(1, 3))
    read_back(talk, "then", group_id, topic)
    commit(talk, "odd offsets", group_id, topic, part(0, -1), part(1, 2**63 - 1), part(2, -7))
    read_back(talk, "odd", group_id, topic)
    commit(talk, "twice in one", group_id, topic, part(0, 1), part(0, 2))
    read_back(talk, "the last", group_id, topic)
    commit(talk, "no partitions", group_id, topic)
    talk.ask(
        "no topics",
        group_id=group_id,
        topics=[],
        **({"generation_id_or_member_epoch": -1} if talk.version else {}),
    )


@scenario("offset_commit", since=1)
def offset_commit_with_extras(talk: Dialogue) -> None:
    """Fields of some versions only: commit times, retention, leader epochs."""
    group_id = group_of(talk)
    topic = talk.make_topic("read")
    fields: dict[str, Any] = {}
    parts = [part(0, 5)]
    if talk.version == 1:
        parts = [part(0, 5, commit_timestamp=1_600_000_000_000)]
    elif talk.version <= 4:
        fields = {"retention_time_ms": FAR_AWAY_MS}
    elif talk.version >= 6:
        parts = [part(0, 5, committed_leader_epoch=3)]
    commit(talk, "commit", group_id, topic, *parts, **fields)
    read_back(talk, "read", group_id)


@scenario("offset_commit")
def offset_commit_of_what_is_not_there(talk: Dialogue) -> None:
    group_id = group_of(talk)
    topic = talk.make_topic("read", partitions=2)
    commit(talk, "partition", group_id, topic, part(2, 5), part(0, 1), part(-1, 5))
    extra = {"generation_id_or_member_epoch": -1} if talk.version else {}
    unknown: dict[str, Any] = {"partitions": [part(0, 5), part(1, 5)]}
    if talk.version >= 10:
        unknown["topic_id"] = UNKNOWN_ID
    else:
        unknown["name"] = talk.topic("unknown")
    existing = topic_in(talk, topic, 10, partitions=[part(0, 2)])
    talk.ask("topic", group_id=group_id, topics=[unknown, existing], **extra)
    talk.ask("only such", group_id=group_id, topics=[unknown], **extra)
    read_back(talk, "what is", group_id, topic)


@scenario("offset_commit")
def offset_commit_with_much_metadata(talk: Dialogue) -> None:
    """`offset.metadata.max.bytes` counts UTF-16 code units, not bytes."""
    group_id = group_of(talk)
    topic = talk.make_topic("read", partitions=3)
    longest = "x" * METADATA_MAX
    umlauts = "\N{LATIN SMALL LETTER U WITH DIAERESIS}" * METADATA_MAX
    faces = "\N{GRINNING FACE}" * (METADATA_MAX // 2)
    commit(talk, "one too much", group_id, topic, part(0, 5, longest + "x"), part(1, 5, longest))
    commit(talk, "all too much", group_id, topic, part(0, 6, longest + "x"))
    commit(talk, "many bytes", group_id, topic, part(1, 6, umlauts), part(2, 6, faces))
    commit(talk, "too many units", group_id, topic, part(2, 7, faces + "x"))
    read_back(talk, "read", group_id, topic)


@scenario("offset_commit", since=1)  # ZooKeeper takes neither id as a path
def offset_commit_to_odd_groups(talk: Dialogue) -> None:
    group_of(talk)
    topic = talk.make_topic("read")
    commit(talk, "empty id", "", topic, part(0, 5))
    odd = talk.topic("gr\N{LATIN SMALL LETTER U WITH DIAERESIS}ppe \N{GRINNING FACE}")

    def is_ready() -> bool:
        answer = talk.quietly("offset_fetch", 2, group_id=odd, topics=None)
        return bool(answer["error_code"] == 0)

    talk.wait_until(is_ready, f"a coordinator of {odd}")
    commit(talk, "odd id", odd, topic, part(0, 5))
    read_back(talk, "read", odd, topic)


@scenario("offset_commit", since=1)
def offset_commit_of_a_generation_that_never_was(talk: Dialogue) -> None:
    group_id = group_of(talk)
    topic = talk.make_topic("read")
    label = "unknown group"
    commit(talk, label, group_id, topic, part(0, 5), generation_id_or_member_epoch=3)
    fields = {"generation_id_or_member_epoch": 0, "member_id": "somebody"}
    commit(talk, "of a member", group_id, topic, part(0, 5), **fields)
    commit(talk, "member without a generation", group_id, topic, part(0, 5), member_id="somebody")
    commit(talk, "now it is there", group_id, topic, part(0, 5), **fields)
    read_back(talk, "read", group_id)


@scenario("offset_commit", since=8, until=9)
def offset_commit_of_a_long_member_id(talk: Dialogue) -> None:
    """Its length takes two bytes; read as one byte, the request would have the usual shape."""
    group_id = group_of(talk)
    counts = {"\2": 1, "\1": 3}
    talk.ask(
        "two topics",
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="m" * 199 + "\x19",
        group_instance_id="",
        topics=[
            {"name": name, "partitions": [part(index, 0) for index in range(count)]}
            for name, count in counts.items()
        ],
    )
    topic = talk.make_topic("read")
    commit(talk, "one topic", group_id, topic, part(0, 5), member_id="m" * 200)
    read_back(talk, "read", group_id)


@scenario("offset_commit", since=1)
def offset_commit_beside_members(talk: Dialogue) -> None:
    """Members commit in their generation, and nobody else while there are members."""
    group_id = group_of(talk)
    topic = talk.make_topic("read", partitions=2)
    member = consumer(talk, group_id, "member", topic)
    own = {"generation_id_or_member_epoch": member.generation, "member_id": member.member_id}
    commit(talk, "before the share", group_id, topic, part(0, 1), **own)
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    commit(talk, "member", group_id, topic, part(0, 2), part(1, 2), **own)
    commit(talk, "stranger", group_id, topic, part(0, 3))
    commit(talk, "unknown member", group_id, topic, part(0, 4), **{**own, "member_id": "who"})
    later = {**own, "generation_id_or_member_epoch": member.generation + 1}
    commit(talk, "later generation", group_id, topic, part(0, 5), **later)
    without = {**own, "generation_id_or_member_epoch": -1}
    commit(talk, "no generation", group_id, topic, part(0, 6), **without)
    commit(talk, "no member", group_id, topic, part(0, 7), **{**own, "member_id": ""})
    commit(talk, "stranger, unknown partition", group_id, topic, part(9, 1), part(0, 8))
    read_back(talk, "read", group_id)
    member.send("leave_group", {"members": [{"member_id": member.member_id}]})
    member.hear()
    commit(talk, "after it left", group_id, topic, part(0, 9), **own)
    commit(talk, "stranger when nobody is there", group_id, topic, part(0, 10))
    read_back(talk, "at last", group_id)


@scenario("offset_commit", since=1)
def offset_commit_during_a_rebalance(talk: Dialogue) -> None:
    """While others join, the old generation may commit; once all have joined, it may not."""
    group_id = group_of(talk)
    topic = talk.make_topic("read")
    member = consumer(talk, group_id, "member", topic)
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    own = {"generation_id_or_member_epoch": member.generation, "member_id": member.member_id}
    metadata = ConsumerProtocolSubscription(topics=[topic]).to_bytes(0)
    protocols = [{"name": "range", "metadata": metadata}]
    other = Member(talk, group_id, "other")
    other.send_join(protocols=protocols)
    if other.version_of("join_group") >= 4:
        other.hear()
        other.send_join(protocols=protocols)
    member.wait_for_rebalance()
    commit(talk, "while others join", group_id, topic, part(0, 1), **own)
    member.send_join(protocols=protocols)
    member.hear()
    other.hear()
    commit(talk, "the generation is over", group_id, topic, part(0, 2), **own)
    fresh = {**own, "generation_id_or_member_epoch": member.generation}
    commit(talk, "the next one has no shares", group_id, topic, part(0, 3), **fresh)
    read_back(talk, "read", group_id)


@scenario("offset_commit", since=7)
def offset_commit_of_static_members(talk: Dialogue) -> None:
    group_id = group_of(talk)
    topic = talk.make_topic("read")
    member = consumer(talk, group_id, "member", topic, instance_id="one")
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    own = {
        "generation_id_or_member_epoch": member.generation,
        "member_id": member.member_id,
        "group_instance_id": "one",
    }
    commit(talk, "itself", group_id, topic, part(0, 1), **own)
    commit(talk, "another id", group_id, topic, part(0, 2), **{**own, "member_id": "other"})
    commit(talk, "another name", group_id, topic, part(0, 3), **{**own, "group_instance_id": "two"})
    commit(talk, "no member id", group_id, topic, part(0, 4), **{**own, "member_id": ""})
    read_back(talk, "read", group_id)


# OffsetFetch.


def fetch(
    talk: Dialogue, label: str, group_id: str, topics: list[tuple[str, list[int]]] | None, **f: Any
) -> None:
    """Send OffsetFetch for one group at the version under test."""
    entries = None
    if topics is not None:
        entries = [
            topic_in(talk, name, 10, partition_indexes=indexes)
            if talk.version < 10 or not name.endswith("unknown")
            else {"topic_id": UNKNOWN_ID, "partition_indexes": indexes}
            for name, indexes in topics
        ]
    if talk.version >= 8:
        talk.ask(label, groups=[{"group_id": group_id, "topics": entries}], **f)
    else:
        talk.ask(label, group_id=group_id, topics=entries, **f)


@scenario("offset_fetch")
def offset_fetch_some(talk: Dialogue) -> None:
    """Committed, not committed and unknown partitions; an unknown group has -1 for all."""
    group_id = group_of(talk)
    topic, other = talk.make_topic("read", partitions=2), talk.make_topic("other")
    unknown = talk.topic("unknown")
    fetch(talk, "unknown group", group_id, [(topic, [0, 1, 9])])
    fetch(talk, "unknown group and topic", group_id, [(unknown, [0])])
    commit_quietly(talk, group_id, topic, 5)
    if talk.version == 0:
        talk.quietly(
            "offset_commit",
            0,
            group_id=group_id,
            topics=[{"name": topic, "partitions": [part(0, 6, "text")]}],
        )
    fetch(talk, "some", group_id, [(topic, [0, 1, 9, -1])])
    fetch(talk, "another", group_id, [(other, [0])])
    fetch(talk, "unknown topic", group_id, [(unknown, [0])])
    if talk.version < 10:
        fetch(talk, "together", group_id, [(topic, [1]), (other, [0]), (unknown, [0])])
    fetch(talk, "no partitions", group_id, [(topic, [])])
    fetch(talk, "no topics", group_id, [])
    if talk.version:
        fetch(talk, "empty group id", "", [(topic, [0])])


@scenario("offset_fetch", since=2)
def offset_fetch_all(talk: Dialogue) -> None:
    group_id = group_of(talk)
    fetch(talk, "unknown group", group_id, None)
    commit_quietly(talk, group_id, talk.make_topic("a", partitions=2), 5, 0)
    if talk.version < 10:  # topics without names come in any order
        commit_quietly(talk, group_id, talk.make_topic("b"), 7)
    fetch(talk, "all", group_id, None)
    if talk.version >= 7:
        fetch(talk, "all that is stable", group_id, None, require_stable=True)


@scenario("offset_fetch", since=8)
def offset_fetch_of_several_groups(talk: Dialogue) -> None:
    first, second = group_of(talk, "first"), group_of(talk, "second")
    topic = talk.make_topic("read")
    commit_quietly(talk, first, topic, 5)
    entries = [topic_in(talk, topic, 10, partition_indexes=[0])]
    groups = [
        {"group_id": first, "topics": entries},
        {"group_id": second, "topics": None},
        {"group_id": first, "topics": None},
    ]
    talk.ask("several", groups=groups)
    if talk.version >= 10:  # Kafka 3.9 does not answer
        talk.ask("none", groups=[])


@scenario("offset_fetch", since=9)
def offset_fetch_as_a_member(talk: Dialogue) -> None:
    """Anybody may read the offsets of a classic group, with any member id."""
    group_id = group_of(talk)
    topic = talk.make_topic("read")
    commit_quietly(talk, group_id, topic, 5)
    entries = [topic_in(talk, topic, 10, partition_indexes=[0])]
    for member_id, epoch in (("who", 3), ("who", -1), (None, 5)):
        group = {
            "group_id": group_id,
            "topics": entries,
            "member_id": member_id,
            "member_epoch": epoch,
        }
        talk.ask(f"{member_id} {epoch}", groups=[group])


@scenario("offset_fetch", since=1)
def offset_fetch_after_its_topic_is_deleted(talk: Dialogue) -> None:
    """Offsets of a topic go with it, and a later topic of its name begins without any."""
    group_id = group_of(talk)
    topic, namesake = talk.make_topic("kept"), talk.make_topic("gone")
    commit_quietly(talk, group_id, topic, 5)
    commit_quietly(talk, group_id, namesake, 7)
    talk.quietly("delete_topics", 1, topic_names=[namesake], timeout_ms=60_000)

    def is_gone() -> bool:
        answer = talk.quietly("offset_fetch", 2, group_id=group_id, topics=None)
        return [topic["name"] for topic in answer["topics"]] == [topic]

    talk.wait_until(is_gone, "the offsets of a deleted topic to go")
    talk.wait_until(lambda: _can_be_made(talk, namesake), "a deleted topic's name to be free")
    fetch(talk, "what is left", group_id, [(topic, [0])])
    fetch(talk, "the namesake", group_id, [(namesake, [0])])


def _can_be_made(talk: Dialogue, name: str) -> bool:
    """Create a topic; return False while the old one of its name is still being deleted."""
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
    answer = talk.quietly("create_topics", 4, topics=topics)
    if answer["topics"][0]["error_code"]:
        return False
    talk.wait_for_topic(name)
    return True


# OffsetDelete.


def delete(
    talk: Dialogue, label: str, group_id: str, *topics: tuple[str, list[int]], **fields: Any
) -> None:
    entries = [
        {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
        for name, indexes in topics
    ]
    talk.ask(label, group_id=group_id, topics=entries, **fields)


@scenario("offset_delete")
def offset_delete_of_an_empty_group(talk: Dialogue) -> None:
    group_id = group_of(talk)
    topic, other = talk.make_topic("read", partitions=3), talk.make_topic("other")
    unknown = talk.topic("unknown")
    delete(talk, "unknown group", group_id, (topic, [0]))
    delete(talk, "unknown group and topic", group_id, (unknown, [0]))
    delete(talk, "empty group id", "", (topic, [0]))
    commit_quietly(talk, group_id, topic, 5, 6, 7)
    commit_quietly(talk, group_id, other, 8)
    delete(talk, "some", group_id, (topic, [0, 9]), (unknown, [0, 1]), (topic + "x", []))
    read_back(talk, "left", group_id)
    delete(talk, "the same again", group_id, (topic, [0]))
    delete(talk, "none", group_id)
    delete(talk, "more", group_id, (topic, [1, 2]))
    read_back(talk, "in the end", group_id)


@scenario("offset_delete")
def offset_delete_beside_members(talk: Dialogue) -> None:
    """Consumers keep offsets of subscribed topics; other protocols' subscriptions are unknown."""
    group_id, others = group_of(talk), group_of(talk, "others")
    topic, unread_topic = talk.make_topic("read"), talk.make_topic("left")
    for group in (group_id, others):
        commit_quietly(talk, group, topic, 5)
        commit_quietly(talk, group, unread_topic, 6)
    member = consumer(talk, group_id, "member", topic)
    member.sync(None, {member.member_id: b"share"})
    member.hear()
    delete(talk, "consumers", group_id, (topic, [0, 7]), (unread_topic, [0]))
    read_back(talk, "left", group_id)
    worker = consumer(talk, others, "worker", topic, protocol_type="connect")
    worker.sync(None, {worker.member_id: b"share"})
    worker.hear()
    delete(talk, "workers", others, (topic, [0]), (unread_topic, [0]))
    read_back(talk, "all is left", others)
