"""CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

ILLEGAL_NAMES = ("", ".", "..", "a/b", "a b", "x" * 250)
UNKNOWN_ID = bytes(range(16))
POLICY_VIOLATION = 44
ENDLESS = "3.9.1 begins to make them and never answers"


def new(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> dict[str, Any]:
    """Return one topic of a CreateTopics request."""
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **fields}


def assigned(name: str, *replicas: list[int]) -> dict[str, Any]:
    """Return a topic with a manual assignment: partition i on the brokers `replicas[i]`."""
    places = [{"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)]
    return new(name, -1, -1, assignments=places)


def config(**values: str | None) -> list[dict[str, Any]]:
    """Return topic configs; a double underscore in a name stands for a dot."""
    return [{"name": key.replace("__", "."), "value": value} for key, value in values.items()]


@scenario("create_topics")
def create_topics_good(talk: Dialogue) -> None:
    name = talk.topic("good")
    talk.ask("create", topics=[new(name, 2)])
    talk.wait_for_topic(name, 2)
    talk.note("metadata", talk.metadata_of(name))
    talk.ask("again", topics=[new(name, 2)])


@scenario("create_topics", since=4)
def create_topics_defaults(talk: Dialogue) -> None:
    name = talk.topic("default")
    talk.ask("create", topics=[new(name, -1, -1)])
    talk.wait_for_topic(name)
    talk.note("metadata", talk.metadata_of(name))


@scenario("create_topics", until=3)
def create_topics_no_defaults_yet(talk: Dialogue) -> None:
    talk.ask("create", topics=[new(talk.topic("default"), -1, -1)])


@scenario("create_topics")
def create_topics_illegal_names(talk: Dialogue) -> None:
    for name in ILLEGAL_NAMES:
        talk.ask(repr(name[:4]), topics=[new(name)])


@scenario("create_topics")
def create_topics_colliding_names(talk: Dialogue) -> None:
    """Names that differ in dots and underscores collide in metric names."""
    talk.make_topic("a.b")
    talk.ask("underscore", topics=[new(talk.topic("a_b"))])


@scenario("create_topics")
def create_topics_bad_numbers(talk: Dialogue) -> None:
    for label, partitions, replicas in (
        ("no partitions", 0, 1),
        ("minus two partitions", -2, 1),
        ("no replicas", 1, 0),
        ("minus two replicas", 1, -2),
        ("more replicas than brokers", 1, 3),
    ):
        talk.ask(label, topics=[new(talk.topic("bad"), partitions, replicas)])


@scenario("create_topics")
def create_topics_assignments(talk: Dialogue) -> None:
    name = talk.topic("assigned")
    talk.ask("good", topics=[assigned(name, [0], [0])])
    talk.wait_for_topic(name, 2)
    talk.note("metadata", talk.metadata_of(name))


@scenario(
    "create_topics",
    since=2,
    peer="4.4.0",
    because="3.9.1 makes the topic on a broker that nobody knows, and never answers",
)
def create_topics_on_no_broker(talk: Dialogue) -> None:
    talk.ask("unknown broker", topics=[assigned(talk.topic("bad"), [7])])
    talk.ask("no brokers", topics=[assigned(talk.topic("bad"), [])])


@scenario("create_topics", since=2)
def create_topics_bad_assignments(talk: Dialogue) -> None:
    bad = talk.topic("bad")
    both = {**assigned(bad, [0]), "num_partitions": 1, "replication_factor": 1}
    gap = new(bad, -1, -1, assignments=[{"partition_index": 1, "broker_ids": [0]}])
    same = [{"partition_index": 0, "broker_ids": [0]}, {"partition_index": 0, "broker_ids": [0]}]
    negative = [{"partition_index": -1, "broker_ids": [0]}]
    talk.ask("with numbers", topics=[both])
    talk.ask("gap", topics=[gap])
    talk.ask("same broker twice", topics=[assigned(bad, [0, 0])])
    talk.ask("uneven", topics=[assigned(bad, [0], [0, 1])])
    talk.ask("negative partition", topics=[new(bad, -1, -1, assignments=negative)])
    topics = [new(bad, -1, -1, assignments=same)]
    answer = talk.quietly("create_topics", talk.version, topics=topics)
    talk.note("same partition twice", answer["topics"][0]["error_code"])


@scenario("create_topics", peer="4.4.0", since=2, because=ENDLESS)
def create_topics_too_many_partitions(talk: Dialogue) -> None:
    old = talk.make_topic("old")
    big, other = talk.topic("big"), talk.topic("other")
    retention = config(retention__ms="1000")
    every = [{"partition_index": index, "broker_ids": [0]} for index in range(10_001)]
    for label, *topics in (
        ("one topic", new(big, 1 << 30)),
        ("one too many", new(big, 10_001)),
        ("beside a good one", new(other), new(big, 2**31 - 1)),
        ("two topics", new(big, 5_000), new(other, 5_001)),
        ("negative beside it", new(other, -10), new(big, 10_001)),
        ("illegal names and replicas", new("a/b", 6_000), new(other, 6_000, 3)),
        ("a topic that exists", new(old, 10_001)),
        ("assigned", new(big, -1, -1, assignments=every)),
        ("records", new(big, 10_000)),
        ("records of configs", new(big, 9_999, configs=retention)),
        ("records of two topics", new(big, 5_000), new(other, 4_999)),
    ):
        talk.note(label, _validated(talk, topics))


@scenario("create_topics", peer="4.4.0", since=2, because=ENDLESS)
def create_topics_just_as_many_partitions(talk: Dialogue) -> None:
    """Names that occur twice do not count, nor do existing topics."""
    old = talk.make_topic("old")
    big, other = talk.topic("big"), talk.topic("other")
    for label, *topics in (
        ("one topic", new(big, 9_999)),
        ("with a config", new(big, 9_998, configs=config(retention__ms="1000"))),
        ("two topics", new(big, 4_999), new(other, 4_999)),
        ("beside one that exists", new(big, 9_998), new(old, 2)),
    ):
        talk.note(label, _validated(talk, topics))
    talk.note("twice", _validated(talk, [new(big, 9_000), new(other, 9_000), new(other, 9_000)]))


def _validated(talk: Dialogue, topics: list[dict[str, Any]]) -> list[list[Any]]:
    """Validate a request; return name and code of each refused topic, sorted.

    POLICY_VIOLATION comes with its message, which names the limit. Other messages differ by
    release.
    """
    answer = talk.quietly(
        talk.api, talk.version, topics=topics, timeout_ms=60_000, validate_only=True
    )
    results = answer.get("topics") or answer["results"]
    return sorted(
        [
            result["name"],
            result["error_code"],
            result["error_message"] if result["error_code"] == POLICY_VIOLATION else "",
        ]
        for result in results
        if result["error_code"]
    )


@scenario("create_topics")
def create_topics_configs(talk: Dialogue) -> None:
    name = talk.topic("good")
    talk.ask(
        "good", topics=[new(name, configs=config(retention__ms="1000", cleanup__policy="compact"))]
    )
    bad = talk.topic("bad")
    for label, configs in (
        ("unknown key", config(no__such__key="1")),
        ("not a number", config(retention__ms="soon")),
        ("out of range", config(segment__bytes="1")),
        ("not allowed", config(cleanup__policy="shred")),
        ("null value", config(retention__ms=None)),
        ("empty key", [{"name": "", "value": "x"}]),
        ("bad boolean", config(preallocate="maybe")),
        ("broker key", config(log__retention__ms="5")),
    ):
        talk.ask(label, topics=[new(bad, configs=configs)])
    twice = config(retention__ms="1") + config(retention__ms="2")
    talk.ask("key twice", topics=[new(bad, configs=twice)])


@scenario("create_topics", since=1)
def create_topics_validate_only(talk: Dialogue) -> None:
    name = talk.topic("only")
    talk.ask("good", topics=[new(name)], validate_only=True)
    talk.note("not there", talk.metadata_of(name)["error_code"])
    talk.ask("bad", topics=[new(name, 0)], validate_only=True)


@scenario("create_topics", since=2)
def create_topics_duplicates(talk: Dialogue) -> None:
    """A name that occurs twice is refused, the other topics are made; sorted here."""
    twice, once = talk.topic("twice"), talk.topic("once")
    answer = talk.quietly("create_topics", talk.version, topics=[new(twice), new(once), new(twice)])
    outcomes = sorted((topic["name"], topic["error_code"]) for topic in answer["topics"])
    talk.note("outcomes", outcomes)


@scenario("create_topics")
def create_topics_several(talk: Dialogue) -> None:
    names = [talk.topic(name) for name in ("b", "a", "c")]
    topics = [new(names[0]), new(names[1], 0), new(names[2])]
    answer = talk.quietly("create_topics", talk.version, topics=topics)
    talk.note("sorted", sorted(answer["topics"], key=lambda topic: str(topic["name"])))
    talk.ask("no topics", topics=[])


@scenario("delete_topics", since=1, until=5)
def delete_topics_by_name(talk: Dialogue) -> None:
    name = talk.make_topic("gone")
    talk.ask("delete", topic_names=[name], timeout_ms=60_000)
    talk.wait_until(lambda: talk.metadata_of(name)["error_code"] == 3, f"{name} gone")
    talk.ask("again", topic_names=[name], timeout_ms=60_000)
    talk.ask("illegal", topic_names=["a/b"], timeout_ms=60_000)
    talk.ask("none", topic_names=[], timeout_ms=60_000)


@scenario("delete_topics", since=6)
def delete_topics_by_id(talk: Dialogue) -> None:
    name = talk.make_topic("named")
    by_id = talk.make_topic("by-id")
    topic_id = talk.topic_id(by_id)
    talk.ask("by name", topics=[{"name": name}], timeout_ms=60_000)
    talk.ask("by id", topics=[{"name": None, "topic_id": topic_id}], timeout_ms=60_000)
    talk.wait_until(lambda: talk.metadata_of(by_id)["error_code"] == 3, f"{by_id} gone")
    talk.wait_until(lambda: talk.metadata_of(name)["error_code"] == 3, f"{name} gone")
    talk.ask("name again", topics=[{"name": name}], timeout_ms=60_000)
    talk.ask("unknown id", topics=[{"name": None, "topic_id": UNKNOWN_ID}], timeout_ms=60_000)
    talk.ask("neither", topics=[{"name": None}], timeout_ms=60_000)


@scenario(
    "delete_topics", since=6, peer="4.4.0", because="3.9.1 keeps a deleted topic's id for a moment"
)
def delete_topics_by_an_old_id(talk: Dialogue) -> None:
    topic_id = talk.topic_id(talk.make_topic("gone"))
    place = {"name": None, "topic_id": topic_id}
    talk.ask("once", topics=[place], timeout_ms=60_000)
    talk.wait_until(lambda: talk.metadata_of(talk.topic("gone"))["error_code"] == 3, "gone")
    talk.ask("again", topics=[place], timeout_ms=60_000)


@scenario("delete_topics", since=6)
def delete_topics_both_or_twice(talk: Dialogue) -> None:
    name = talk.make_topic("kept")
    topic_id = talk.topic_id(name)
    talk.ask("both", topics=[{"name": name, "topic_id": topic_id}], timeout_ms=60_000)
    answer = talk.quietly(
        "delete_topics",
        6,
        topics=[{"name": name}, {"name": None, "topic_id": topic_id}],
        timeout_ms=60_000,
    )
    talk.note("name and its id", sorted(topic["error_code"] for topic in answer["responses"]))


@scenario("delete_topics", until=5)
def delete_and_create_again(talk: Dialogue) -> None:
    """A new topic of an old name has another id and no records."""
    name = talk.make_topic("phoenix")
    first_id = talk.topic_id(name)
    talk.ask("delete", topic_names=[name], timeout_ms=60_000)
    talk.wait_until(lambda: talk.metadata_of(name)["error_code"] == 3, f"{name} gone")
    talk.wait_until(lambda: _created(talk, name), f"{name} created again")
    talk.wait_for_topic(name)
    talk.note("another id", talk.topic_id(name) != first_id)


def _created(talk: Dialogue, name: str) -> bool:
    """Create a topic; Kafka answers TOPIC_ALREADY_EXISTS until the deletion is done."""
    answer = talk.quietly("create_topics", 4, topics=[new(name)])
    return bool(answer["topics"][0]["error_code"] == 0)


@scenario("create_partitions")
def create_partitions_good(talk: Dialogue) -> None:
    name = talk.make_topic("grows")
    talk.ask("three", topics=[{"name": name, "count": 3, "assignments": None}], timeout_ms=60_000)
    talk.wait_for_topic(name, 3)
    talk.note("metadata", talk.metadata_of(name))
    assignments = [{"broker_ids": [0]}]
    talk.ask(
        "assigned",
        topics=[{"name": name, "count": 4, "assignments": assignments}],
        timeout_ms=60_000,
    )
    talk.wait_for_topic(name, 4)


@scenario("create_partitions")
def create_partitions_refused(talk: Dialogue) -> None:
    name = talk.make_topic("two", partitions=2)
    for label, count, assignments in (
        ("same", 2, None),
        ("fewer", 1, None),
        ("zero", 0, None),
        ("negative", -1, None),
        ("too few assignments", 4, [{"broker_ids": [0]}]),
        ("too many assignments", 3, [{"broker_ids": [0]}, {"broker_ids": [0]}]),
        ("unknown broker", 3, [{"broker_ids": [7]}]),
        ("same broker twice", 3, [{"broker_ids": [0, 0]}]),
        ("no brokers", 3, [{"broker_ids": []}]),
        ("empty assignments", 3, []),
    ):
        topic = {"name": name, "count": count, "assignments": assignments}
        talk.ask(label, topics=[topic], timeout_ms=60_000, validate_only=True)
    unknown = {"name": talk.topic("unknown"), "count": 3, "assignments": None}
    talk.ask("unknown topic", topics=[unknown], timeout_ms=60_000)
    talk.ask(
        "illegal name", topics=[{"name": "a/b", "count": 3, "assignments": None}], timeout_ms=60_000
    )
    twice = [{"name": name, "count": count, "assignments": None} for count in (3, 4)]
    talk.ask("twice", topics=twice, timeout_ms=60_000)
    talk.ask("none", topics=[], timeout_ms=60_000)


@scenario("create_partitions", peer="4.4.0", because=ENDLESS)
def create_partitions_too_many(talk: Dialogue) -> None:
    two = talk.make_topic("two", partitions=2)
    first_topic = talk.make_topic("one")
    for label, *counts in (
        ("one topic", (two, 1 << 30)),
        ("one too many", (two, 10_003)),
        ("two topics", (two, 5_002), (first_topic, 5_002)),
        ("fewer beside it", (first_topic, -10), (two, 10_003)),
        ("just as many", (two, 10_002)),
        ("just as many in two", (two, 5_002), (first_topic, 5_001)),
    ):
        topics = [{"name": name, "count": count, "assignments": None} for name, count in counts]
        talk.note(label, _validated(talk, topics))
    unknown = {"name": talk.topic("unknown"), "count": 1 << 30, "assignments": None}
    talk.note("unknown topic", _validated(talk, [unknown]))


@scenario("create_partitions")
def create_partitions_validate_only(talk: Dialogue) -> None:
    name = talk.make_topic("only")
    talk.ask(
        "good",
        topics=[{"name": name, "count": 5, "assignments": None}],
        timeout_ms=60_000,
        validate_only=True,
    )
    talk.note("still one", len(talk.metadata_of(name)["partitions"]))
