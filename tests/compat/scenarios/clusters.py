"""ApiVersions, Metadata, DescribeTopicPartitions, DescribeCluster, DescribeLogDirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.support.batches import batch
from tests.support.wire import request_header

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

UNKNOWN_ID = bytes(range(16))
ILLEGAL_NAMES = ("", ".", "..", "a/b", "a b", "ü", "x" * 250)


@scenario("api_versions")
def api_versions_good(talk: Dialogue) -> None:
    """The key list differs by design (we serve more versions), so only its shape is compared."""
    answer = talk.quietly(
        "api_versions",
        talk.version,
        **(
            {"client_software_name": "wire", "client_software_version": "1.0"}
            if talk.version >= 3
            else {}
        ),
    )
    talk.note("error", answer["error_code"])
    talk.note("throttle", answer.get("throttle_time_ms"))
    keys = [entry["api_key"] for entry in answer["api_keys"]]
    talk.note("has produce, fetch and itself", {0, 1, 3, 18} <= set(keys))
    talk.note("telemetry, which nobody collects", sorted({71, 72} & set(keys)))
    talk.note("each key once", len(keys) == len(set(keys)))
    talk.note(
        "ranges", all(entry["min_version"] <= entry["max_version"] for entry in answer["api_keys"])
    )


@scenario("api_versions", since=3)
def api_versions_bad_client_name(talk: Dialogue) -> None:
    for label, name, version in (
        ("empty name", "", "1.0"),
        ("empty version", "wire", ""),
        ("blank in name", "my client", "1.0"),
        ("underscore", "my_client", "1.0"),
        ("dash at end", "client-", "1.0"),
        ("good", "my-client.x", "1.0-beta"),
    ):
        answer = talk.quietly(
            "api_versions", talk.version, client_software_name=name, client_software_version=version
        )
        talk.note(label, [answer["error_code"], bool(answer["api_keys"])])


@scenario("api_versions", until=0)
def api_versions_too_new(talk: Dialogue) -> None:
    """Version 42 gets header 0 and the v0 body with error 35, byte for byte but for the ranges."""
    header = request_header(18, 42, 77, "wire", is_flexible=True)
    talk.client.send_frame(header + b"\x05wire\x041.0\x00")
    answer = talk.client.receive_frame()
    talk.note("correlation id and error", answer[:6])
    talk.note("array length and key", answer[6:12])
    talk.note("min version", answer[12:14])
    talk.note("length", len(answer))
    talk.also("connection lives", "list_offsets", 1, replica_id=-1, topics=[])


@scenario("metadata")
def metadata_one_topic(talk: Dialogue) -> None:
    name = talk.make_topic("three", partitions=3)
    talk.ask("one", topics=[{"name": name}])
    talk.ask("twice", topics=[{"name": name}, {"name": name}])


@scenario("metadata")
def metadata_all_topics(talk: Dialogue) -> None:
    talk.make_topic("a")
    talk.make_topic("b", partitions=2)
    answer = talk.quietly("metadata", talk.version, topics=None if talk.version else [])
    own = sorted(t["name"] for t in answer["topics"] if t["name"].startswith(talk.prefix))
    talk.note("all topics", own)
    talk.note("brokers", answer["brokers"])
    talk.note("controller", answer.get("controller_id"))
    talk.note("cluster id", bool(answer.get("cluster_id", "none in this version")))


@scenario("metadata", since=1)
def metadata_no_topics(talk: Dialogue) -> None:
    talk.ask("none", topics=[])


@scenario("metadata", since=4)
def metadata_unknown_topic(talk: Dialogue) -> None:
    name = talk.topic("unknown")
    for label in ("first", "again"):
        talk.ask(label, topics=[{"name": name}], allow_auto_topic_creation=False)


@scenario("metadata")
def metadata_auto_creation(talk: Dialogue) -> None:
    """The first answer says "not yet"; soon after, the topic has the default partitions."""
    name = talk.topic("auto")
    first = talk.quietly("metadata", talk.version, topics=[{"name": name}])["topics"][0]
    talk.note("first: retriable, named", [first["error_code"] in {3, 5}, first["name"]])
    talk.wait_for_topic(name)
    talk.ask("then", topics=[{"name": name}])


@scenario("metadata")
def metadata_illegal_names(talk: Dialogue) -> None:
    for name in ILLEGAL_NAMES:
        talk.ask(f"{name[:4]!r}", topics=[{"name": name}])


@scenario("metadata")
def metadata_known_and_unknown(talk: Dialogue) -> None:
    """The order of the answer differs by broker, so it is sorted here."""
    topic = talk.make_topic("known")
    fields = {"allow_auto_topic_creation": False} if talk.version >= 4 else {}
    names = [topic, "bad name"] + ([talk.topic("unknown")] if fields else [])
    answer = talk.quietly(
        "metadata", talk.version, topics=[{"name": name} for name in names], **fields
    )
    talk.note("sorted", sorted(answer["topics"], key=lambda topic: str(topic["name"])))


@scenario("metadata", since=8, until=10)
def metadata_authorized_operations(talk: Dialogue) -> None:
    name = talk.make_topic("ops")
    talk.ask(
        "both",
        topics=[{"name": name}],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


@scenario("metadata", since=11)
def metadata_topic_operations(talk: Dialogue) -> None:
    name = talk.make_topic("ops")
    talk.ask("topic", topics=[{"name": name}], include_topic_authorized_operations=True)


@scenario("metadata", since=10)
def metadata_topic_id(talk: Dialogue) -> None:
    """v10 and v11 have the id but refuse questions by id; v12 answers them."""
    name = talk.make_topic("id")
    topic_id = talk.topic_id(name)
    talk.ask("by name", topics=[{"name": name}])
    talk.ask("by id", topics=[{"name": None, "topic_id": topic_id}])
    talk.ask("by both", topics=[{"name": name, "topic_id": topic_id}])
    talk.ask("unknown id", topics=[{"name": None, "topic_id": UNKNOWN_ID}])
    talk.ask("two", topics=[{"topic_id": topic_id, "name": None}, {"name": name}])


@scenario("describe_topic_partitions")
def describe_topic_partitions_known(talk: Dialogue) -> None:
    first_topic = talk.make_topic("one")
    three = talk.make_topic("three", partitions=3)
    talk.ask("both", topics=[{"name": three}, {"name": first_topic}])
    talk.ask("same twice", topics=[{"name": first_topic}, {"name": first_topic}])
    talk.ask("unknown", topics=[{"name": talk.topic("unknown")}, {"name": first_topic}])
    talk.ask("illegal", topics=[{"name": "a/b"}])


@scenario("describe_topic_partitions")
def describe_topic_partitions_limits(talk: Dialogue) -> None:
    first_topic = talk.make_topic("one")
    three = talk.make_topic("three", partitions=3)
    names = [{"name": first_topic}, {"name": three}]
    for limit in (1, 2, 3, 4, 5):
        talk.ask(f"limit {limit}", topics=names, response_partition_limit=limit)
    talk.ask("limit 0", topics=names, response_partition_limit=0)
    talk.ask("limit -1", topics=names, response_partition_limit=-1)


@scenario("describe_topic_partitions")
def describe_topic_partitions_cursor(talk: Dialogue) -> None:
    first_topic = talk.make_topic("one")
    three = talk.make_topic("three", partitions=3)
    names = [{"name": first_topic}, {"name": three}]
    for label, topic, partition in (
        ("inside", three, 1),
        ("start", three, 0),
        ("beyond", three, 3),
        ("first topic", first_topic, 0),
        ("unknown topic between", talk.topic("other"), 0),
        ("after all", talk.topic("zzz"), 0),
        ("negative partition", three, -1),
    ):
        cursor = {"topic_name": topic, "partition_index": partition}
        talk.ask(label, topics=names, cursor=cursor)


@scenario("describe_cluster")
def describe_cluster_plain(talk: Dialogue) -> None:
    talk.ask("plain")
    talk.ask("operations", include_cluster_authorized_operations=True)


@scenario("describe_cluster", since=1)
def describe_cluster_endpoints(talk: Dialogue) -> None:
    talk.ask("brokers", endpoint_type=1)
    talk.ask("controllers", endpoint_type=2)
    talk.ask("unknown type", endpoint_type=7)


@scenario("describe_log_dirs")
def describe_log_dirs_topics(talk: Dialogue) -> None:
    name = talk.make_topic("sized", partitions=2)
    talk.produce(name, batch(b"one", b"two"))
    talk.wait_until(lambda: _size_of(talk, name) > 0, "the size of what was written")
    talk.ask("one partition", topics=[{"topic": name, "partitions": [0]}])
    answer = talk.quietly(
        "describe_log_dirs", talk.version, topics=[{"topic": name, "partitions": [0, 1]}]
    )
    partitions = [p for r in answer["results"] for t in r["topics"] for p in t["partitions"]]
    talk.note("both", sorted(partitions, key=lambda partition: str(partition["partition_index"])))
    talk.ask("unknown topic", topics=[{"topic": talk.topic("unknown"), "partitions": [0]}])
    talk.ask("unknown partition", topics=[{"topic": name, "partitions": [9]}])
    talk.ask("no partitions", topics=[{"topic": name, "partitions": []}])
    talk.ask("no topics", topics=[])


def _size_of(talk: Dialogue, name: str) -> int:
    answer = talk.quietly("describe_log_dirs", 1, topics=[{"topic": name, "partitions": [0]}])
    topics = [topic for result in answer["results"] for topic in result["topics"]]
    return sum(p["partition_size"] for topic in topics for p in topic["partitions"])


@scenario("describe_log_dirs")
def describe_log_dirs_all(talk: Dialogue) -> None:
    name = talk.make_topic("all")
    answer = talk.quietly("describe_log_dirs", talk.version, topics=None)
    talk.note("error", answer.get("error_code", 0))
    talk.note(
        "own",
        [
            topic
            for result in answer["results"]
            for topic in result["topics"]
            if topic["name"] == name
        ],
    )


@scenario("describe_quorum")
def describe_quorum(talk: Dialogue) -> None:
    """One node keeps the metadata alone; epochs and offsets differ by broker."""

    def partitions_of(topic: str, *numbers: int) -> dict[str, Any]:
        return {
            "topic_name": topic,
            "partitions": [{"partition_index": number} for number in numbers],
        }

    metadata = partitions_of("__cluster_metadata", 0)

    def note(label: str) -> int:
        answer = talk.quietly("describe_quorum", talk.version, topics=[metadata])
        partition = answer["topics"][0]["partitions"][0]
        (voter,) = partition.pop("current_voters")
        end_offset = int(partition.pop("high_watermark"))
        times = (voter.pop("last_fetch_timestamp"), voter.pop("last_caught_up_timestamp"))
        talk.note(f"{label}: times", [{"timestamp": time} for time in times])
        talk.note(f"{label}: has everything", voter.pop("log_end_offset") == end_offset > 0)
        talk.note(f"{label}: in an epoch", partition.pop("leader_epoch") > 0)
        talk.note(f"{label}: voter", voter)
        for listener in (entry for node in answer["nodes"] for entry in node["listeners"]):
            del listener["name"]
        talk.note(label, answer)
        return end_offset

    old_offset = note("one voter")
    talk.make_topic("t")
    talk.note("grows", note("after a change") > old_offset)
    other = partitions_of("other")
    talk.ask("another partition", topics=[partitions_of("__cluster_metadata", 1)])
    talk.ask("another topic", topics=[partitions_of("other", 0)])
    talk.ask("beside another", topics=[metadata, partitions_of("other", 0, 1)])
    talk.ask("twice", topics=[partitions_of("__cluster_metadata", 0, 0)])
    talk.ask("beside nothing of another", topics=[metadata, other])
    talk.ask("two of it", topics=[metadata, metadata])
    talk.ask("no partition", topics=[other])
    talk.ask("nothing", topics=[])
