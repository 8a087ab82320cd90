"""Groups of the consumer protocol (KIP-848): members, epochs, offsets, describing, listing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.compat.scenarios.consumer_group_members import Consumer, consumer_group_of, describe
from tests.compat.scenarios.group_members import group_of

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

EXPIRING_MS = 600

# ConsumerGroupHeartbeat.


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_refused(talk: Dialogue) -> None:
    """Malformed requests, with one error at a time and then several."""
    topic = talk.make_topic("topic")
    member = Consumer(
        talk,
        consumer_group_of(talk),
        "m",
        subscribed_topic_names=[topic],
        rebalance_timeout_ms=5000,
    )
    member.join("no group id", group_id="")
    member.join("blank group id", group_id=" ")
    member.join("blank member id", member_id=" ")
    member.join("empty instance id", instance_id="")
    member.join("empty rack id", rack_id="")
    member.join("no rebalance time-out", rebalance_timeout_ms=-1)
    member.join("owned partitions are not said", topic_partitions=None)
    member.join(
        "it owns something", topic_partitions=[{"topic_id": bytes(15) + b"1", "partitions": [0]}]
    )
    member.join("no subscription", subscribed_topic_names=None)
    member.join("an assignor that nobody knows", server_assignor="sticky")
    member.join("an assignor without a name", server_assignor="")
    member.leave("leaves for a while without a name", epoch=-2)
    member.leave("an epoch that nobody has", epoch=-3)
    member.beat("no member id after joining", member_id="", member_epoch=1)
    member.beat("no member id when leaving", member_id="", member_epoch=-1)
    member.beat("a group that is not there", member_epoch=1)
    member.leave("leaves a group that is not there")
    member.join("everything is wrong", group_id="", member_id=" ", server_assignor="sticky")
    member.join("two are wrong", rebalance_timeout_ms=-1, server_assignor="sticky")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_alone(talk: Dialogue) -> None:
    """The life of a group with one member, and every epoch that it may send."""
    topic = talk.make_topic("topic", partitions=3)
    group_id = consumer_group_of(talk)
    member = Consumer(talk, group_id, "alone", subscribed_topic_names=[topic])
    member.join("join")
    member.beat("heartbeat")
    member.report("says what it owns")
    epoch = member.epoch
    member.beat("says everything", **{**member.joining, "topic_partitions": member.owned})
    member.beat("epoch before", member_epoch=epoch - 1)
    member.beat("epoch before, owns nothing", member_epoch=epoch - 1, topic_partitions=[])
    member.beat("epoch after", member_epoch=epoch + 1)
    member.epoch = epoch
    Consumer(talk, group_id, "stranger").beat("a stranger", member_epoch=epoch)
    Consumer(talk, group_id, "stranger").leave("a stranger leaves")
    member.beat("subscribes to nothing", subscribed_topic_names=[])
    member.report("still has it")
    member.owned = []
    member.report("has given it up")
    member.beat("subscribes to what is not there", subscribed_topic_names=[talk.topic("none")])
    member.beat("subscribes again", subscribed_topic_names=[topic])
    member.beat("a rack and a time-out", rack_id="rack", rebalance_timeout_ms=1234)
    member.join("joins again")
    member.leave("leave")
    describe(talk, "the empty group", group_id)
    member.beat("heartbeat after leaving", member_epoch=epoch)
    member.leave("leaves twice")
    member.join("joins anew")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_pair(talk: Dialogue) -> None:
    """A second member joins, the first revokes the excess; then one leaves."""
    topic = talk.make_topic("topic", partitions=3)
    group_id = consumer_group_of(talk)
    first = Consumer(talk, group_id, "first", subscribed_topic_names=[topic])
    second = Consumer(talk, group_id, "second", subscribed_topic_names=[topic])
    first.join("first")
    second.join("second gets nothing yet")
    describe(talk, "reconciling", group_id)
    owned = first.owned
    first.beat("first has to give up one")
    second.beat("second waits")
    first.beat("first has not given up", topic_partitions=owned)
    describe(talk, "giving up", group_id)
    first.report("first has given up")
    second.beat("second gets its share")
    describe(talk, "stable", group_id)
    second.beat("second heard and is silent")
    first.leave("first leaves")
    describe(talk, "one left", group_id)
    second.beat("second gets the rest")
    second.report("second has all")
    describe(talk, "stable again", group_id)


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_static(talk: Dialogue) -> None:
    """Static members: an instance id is used, released, and used by another member id."""
    topic = talk.make_topic("topic", partitions=2)
    group_id = consumer_group_of(talk)
    member = Consumer(talk, group_id, "id-1", instance_id="i", subscribed_topic_names=[topic])
    other = Consumer(talk, group_id, "id-2", instance_id="i", subscribed_topic_names=[topic])
    member.join("join")
    other.join("the name is taken")
    other.beat("fenced", member_epoch=2)
    member.beat("a name that nobody has", instance_id="j")
    other.leave("leaves under a foreign name")
    other.leave("leaves for a while under a foreign name", epoch=-2)
    epoch = member.epoch
    member.leave("leaves for a while", epoch=-2)
    describe(talk, "who left is still there", group_id)
    member.beat("heartbeat after leaving", member_epoch=epoch)
    other.join("takes over the name")
    describe(talk, "taken over", group_id)
    member.beat("is fenced", member_epoch=epoch)
    other.beat("goes on")
    other.leave("leaves for ever")
    describe(talk, "nobody", group_id)


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_assignors(talk: Dialogue) -> None:
    """The assignor with most votes is used; a change of it is a new epoch."""
    first_topic = talk.make_topic("a", partitions=4)
    names = [first_topic]
    group_id = consumer_group_of(talk)
    first = Consumer(talk, group_id, "one", subscribed_topic_names=names, server_assignor="range")
    second = Consumer(talk, group_id, "two", subscribed_topic_names=names)
    first.join("range")
    second.join("no wish")
    describe(talk, "by range", group_id)
    first.beat("to uniform", server_assignor="uniform")
    describe(talk, "by uniform", group_id)
    second.beat("the same wish", server_assignor="uniform")
    first.beat("an unknown wish", server_assignor="sticky")
    second.leave("two leaves")
    first.beat("back to range", server_assignor="range")
    describe(talk, "by range again", group_id)


@scenario("consumer_group_heartbeat", since=1)
def consumer_group_heartbeat_assignors_tie(talk: Dialogue) -> None:
    """As many members ask for one assignor as for the other."""
    names = [talk.make_topic("a", partitions=6)]
    group_id = consumer_group_of(talk)
    first = Consumer(talk, group_id, "one", subscribed_topic_names=names, server_assignor="range")
    second = Consumer(
        talk, group_id, "two", subscribed_topic_names=names, server_assignor="uniform"
    )
    first.join("range joins")
    second.join("uniform joins")
    describe(talk, "both", group_id)
    second.beat("uniform has a rack", rack_id="rack")
    describe(talk, "after uniform", group_id)
    first.beat("range has a rack", rack_id="rack")
    describe(talk, "after range", group_id)


@scenario("consumer_group_heartbeat", since=1)
def consumer_group_heartbeat_regex(talk: Dialogue) -> None:
    """Subscriptions by pattern, and malformed patterns."""
    topic = talk.make_topic("logs-1", partitions=2)
    group_id = consumer_group_of(talk)
    pattern = topic.replace(".", "[.]").removesuffix("1") + ".*"
    for name, regex in {
        "an open class": "[",
        "an open group": "(a",
        "nothing to repeat": "*a",
        "two repetitions": "a**",
        "a look-ahead": "(?=a)",
        "a back reference": r"(a)\1",
        "a range that runs back": "[b-a]",
        "a count that runs back": "a{2,1}",
        "a count too high": "a{1001}",
        "a trailing backslash": "\\",
        "a bad name": "(?P<n!>a)",
        "an unknown flag": "(?z)",
        "an unknown class": "[[:foo:]]",
        "a closing too much": "a)",
    }.items():
        Consumer(talk, group_id, "bad", subscribed_topic_regex=regex).join(name)
    member = Consumer(talk, group_id, "by pattern", subscribed_topic_regex=pattern)
    joined = member.join()
    talk.note("joins", joined["error_code"])
    talk.wait_until(
        lambda: bool(member.beat() and member.owned), "the partitions that the pattern matches"
    )
    describe(talk, "has what matches", group_id)
    by_name = Consumer(talk, group_id, "by name", subscribed_topic_names=[topic])
    by_name.join("somebody names the topic")
    member.beat("gives up")
    member.report("has given up")
    by_name.beat("gets it")
    describe(talk, "pattern and name", group_id)
    member.beat("another pattern", subscribed_topic_regex="[")
    member.beat("no pattern", subscribed_topic_regex="")
    describe(talk, "nothing subscribed", group_id)
    member.leave("leave")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_topics(talk: Dialogue) -> None:
    """Topics of a group appear, grow and disappear."""
    name = talk.topic("late")
    group_id = consumer_group_of(talk)
    member = Consumer(talk, group_id, "m", subscribed_topic_names=[name])
    member.join("before the topic")
    talk.make_topic("late")
    talk.wait_until(lambda: bool(member.beat() and member.owned), "the new topic")
    member.report("has the new topic")
    talk.quietly(
        "create_partitions",
        1,
        topics=[{"name": name, "count": 2, "assignments": None}],
        timeout_ms=60_000,
        validate_only=False,
    )
    talk.wait_until(
        lambda: bool(member.beat() and len(member.owned[0]["partitions"]) == 2), "the new partition"
    )
    member.report("has the new partition")
    describe(talk, "grown", group_id)
    talk.quietly("delete_topics", 4, topic_names=[name], timeout_ms=60_000)
    talk.wait_until(lambda: bool(member.beat() and not member.owned), "the topic is gone")
    member.report("has nothing")


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_expiring(talk: Dialogue) -> None:
    """A member that does not revoke in time is removed."""
    topic = talk.make_topic("topic", partitions=2)
    group_id = consumer_group_of(talk)
    slow = Consumer(
        talk, group_id, "slow", subscribed_topic_names=[topic], rebalance_timeout_ms=EXPIRING_MS
    )
    other = Consumer(talk, group_id, "other", subscribed_topic_names=[topic])
    slow.join("slow")
    other.join("other")
    slow.beat("slow has to give up")
    talk.wait_until(
        lambda: bool(other.beat() and other.owned and len(other.owned[0]["partitions"]) == 2),
        "the other to have all",
    )
    slow.report("slow is out")
    describe(talk, "without the slow one", group_id)


# Offsets of members.


def _commit(  # noqa: PLR0917  one commit, spelt out
    talk: Dialogue, label: str, group_id: str, topic: str, epoch: int, member_id: str, version: int
) -> None:
    talk.also(
        label,
        "offset_commit",
        version,
        group_id=group_id,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[
            {
                "name": topic,
                "partitions": [
                    {"partition_index": index, "committed_offset": 0} for index in range(2)
                ],
            }
        ],
    )


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_offsets(talk: Dialogue) -> None:
    """Offsets of a member at every epoch, of strangers, and of a client that is too old."""
    topic = talk.make_topic("topic", partitions=2)
    group_id = consumer_group_of(talk)
    member = Consumer(talk, group_id, "m", subscribed_topic_names=[topic])
    other = Consumer(talk, group_id, "o", subscribed_topic_names=[topic])
    member.join()
    first = member.epoch
    _commit(talk, "commit", group_id, topic, first, "m", 9)
    _commit(talk, "an old client", group_id, topic, first, "m", 8)
    _commit(talk, "an epoch ahead", group_id, topic, first + 1, "m", 9)
    _commit(talk, "an epoch behind", group_id, topic, first - 1, "m", 9)
    _commit(talk, "a stranger", group_id, topic, first, "nobody", 9)
    _commit(talk, "no member", group_id, topic, -1, "", 9)
    other.join()
    member.beat()
    _commit(talk, "while it gives up", group_id, topic, first, "m", 9)
    member.report()
    _commit(talk, "with the epoch before", group_id, topic, first, "m", 9)
    other.beat()
    _commit(talk, "of the other", group_id, topic, other.epoch, "o", 9)
    _commit(talk, "of the other with an older epoch", group_id, topic, first, "o", 9)
    for label, member_id, epoch in (
        ("fetch", "m", member.epoch),
        ("fetch with the epoch before", "m", first),
        ("fetch of a stranger", "nobody", 1),
        ("fetch of nobody", None, -1),
    ):
        groups = [{"group_id": group_id, "member_id": member_id, "member_epoch": epoch}]
        groups[0]["topics"] = [{"name": topic, "partition_indexes": [0]}]
        talk.also(label, "offset_fetch", 9, groups=groups, require_stable=False)
    talk.also("delete with members", "delete_groups", 2, groups_names=[group_id])
    member.leave("m leaves")
    other.leave("o leaves")
    _commit(talk, "commit to an empty group", group_id, topic, -1, "", 9)
    _commit(talk, "a member that left", group_id, topic, first, "m", 9)
    talk.also("delete", "delete_groups", 2, groups_names=[group_id])
    describe(talk, "deleted", group_id)


# ConsumerGroupDescribe, ListGroups.


@scenario("consumer_group_describe")
def consumer_group_describe_groups(talk: Dialogue) -> None:
    topic = talk.make_topic("topic", partitions=2)
    other_topic = talk.make_topic("other")
    group_id = consumer_group_of(talk)
    talk.ask("nobody", group_ids=[talk.topic("nobody")])
    talk.ask("no group", group_ids=[])
    talk.ask("empty id", group_ids=[""])
    member = Consumer(
        talk,
        group_id,
        "m",
        subscribed_topic_names=[topic, other_topic],
        rack_id="rack",
        instance_id="i",
    )
    member.join()
    describe(talk, "one member", group_id)
    answer = talk.quietly(
        "consumer_group_describe",
        talk.version,
        group_ids=[group_id],
        include_authorized_operations=True,
    )
    talk.note("operations", answer["groups"][0]["authorized_operations"])


@scenario(
    "list_groups", since=5, peer="4.4.0", because="3.9.1 has no consumer groups with ZooKeeper"
)
def list_groups_of_consumers(talk: Dialogue) -> None:
    """Filters by type and state, over groups of both kinds."""
    topic = talk.make_topic("topic")
    group_id = consumer_group_of(talk)
    member = Consumer(talk, group_id, "m", subscribed_topic_names=[topic])
    member.join()

    def note_groups(label: str, **filters: Any) -> None:
        answer = talk.quietly("list_groups", talk.version, **filters)
        answer["groups"] = [group for group in answer["groups"] if group["group_id"] == group_id]
        talk.note(label, answer)

    note_groups("all")
    note_groups("of its type", types_filter=["Consumer"])
    note_groups("of the other type", types_filter=["classic"])
    note_groups("in its state", states_filter=["stable"])
    note_groups("in another state", states_filter=["Empty", "Assigning"])
    member.beat(member_epoch=-1)
    note_groups("empty", states_filter=["empty"], types_filter=["consumer"])


@scenario("consumer_group_heartbeat")
def consumer_group_heartbeat_comes_back(talk: Dialogue) -> None:
    """Members that leave and come back at once, with the assignment interval of the defaults."""
    topics = [talk.make_topic(f"topic-{number}", partitions=2) for number in range(3)]
    group_id = group_of(talk, "group-that-waits")
    member = Consumer(talk, group_id, "m", subscribed_topic_names=topics[:1])
    member.join("join a new group")
    member.leave("the only member leaves")
    describe(talk, "nobody is left", group_id)
    member.join("comes back under its id")
    member.beat("is told once")
    member.leave("leaves again")
    other = Consumer(talk, group_id, "o", subscribed_topic_names=topics[1:2])
    other.join("another one comes with another subscription")
    other.leave("leaves too")
    static = Consumer(talk, group_id, "s-1", instance_id="i", subscribed_topic_names=topics[:1])
    static.join("a static one joins")
    static.leave("for a while", epoch=-2)
    again = Consumer(talk, group_id, "s-2", instance_id="i", subscribed_topic_names=topics[:1])
    again.join("under another id")
    again.leave("for a while again", epoch=-2)
    third = Consumer(talk, group_id, "s-3", instance_id="i", subscribed_topic_names=topics[2:])
    third.join("with another topic: the interval is not over")
    describe(talk, "the target waits", group_id)
    third.leave("for ever")
    member.join("into the empty group")
    describe(talk, "has all at once", group_id)
