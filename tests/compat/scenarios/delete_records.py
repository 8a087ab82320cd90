"""DeleteRecords, and the answers of Fetch, ListOffsets and OffsetForLeaderEpoch afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.support.batches import TIMESTAMP, Item, batch

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

HIGH_WATERMARK = -1
TIMEOUT_MS = 5_000


def to(offset: int, partition: int = 0) -> dict[str, int]:
    """Return one partition of a request."""
    return {"partition_index": partition, "offset": offset}


def delete(talk: Dialogue, label: str, topic: str, *partitions: dict[str, int]) -> None:
    """Send DeleteRecords for one topic."""
    talk.ask(label, topics=[{"name": topic, "partitions": list(partitions)}], timeout_ms=TIMEOUT_MS)


def filled(talk: Dialogue, **configs: str) -> str:
    """Return a topic of two partitions; the first has offsets 0 … 5 in batches of three, two and
    one.
    """
    topic_configs = {key.replace("_", "."): value for key, value in configs.items()}
    topic = talk.make_topic("records", partitions=2, configs=topic_configs)
    key = b"k" if "cleanup.policy" in topic_configs else None
    for start, count in ((0, 3), (3, 2), (5, 1)):
        items = [
            Item(b"value", key, timestamp_ms=TIMESTAMP + start + index) for index in range(count)
        ]
        talk.produce(topic, batch(*items))
    return topic


SEGMENT_BYTES = 1 << 20  # the smallest that Kafka 4 takes


@scenario("delete_records")
def delete_records_before_a_later_time(talk: Dialogue) -> None:
    """The record with the largest time of a segment is deleted; a later segment has a later one."""
    topic = talk.make_topic("segments", configs={"segment.bytes": str(SEGMENT_BYTES)})
    deltas = (100, 50, 50, 110, 120)  # three batches and two
    for delta in deltas:
        talk.produce(topic, batch(Item(bytes(270_000), timestamp_ms=TIMESTAMP + delta)))
    delete(talk, "the first", topic, to(1))
    for delta in (40, 50, 51, 100, 101, 110, 120, 121):
        talk.also(
            f"+{delta}",
            "list_offsets",
            7,
            replica_id=-1,
            isolation_level=0,
            topics=[
                {
                    "name": topic,
                    "partitions": [{"partition_index": 0, "timestamp": TIMESTAMP + delta}],
                }
            ],
        )


def look(talk: Dialogue, label: str, topic: str, fetch_offsets: tuple[int, ...]) -> None:
    """Record start and end of the log, lookups by time, and a consumer's records."""
    for name, timestamp in (("latest", -1), ("earliest", -2), ("time", TIMESTAMP), ("max", -3)):
        talk.also(
            f"{label}: {name}",
            "list_offsets",
            7,
            replica_id=-1,
            isolation_level=0,
            topics=[
                {"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
            ],
        )
    for offset in fetch_offsets:
        talk.also(
            f"{label}: fetch {offset}",
            "fetch",
            11,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": topic, "partitions": [_fetching(offset)]}],
            forgotten_topics_data=[],
            rack_id="",
        )
    talk.also(
        f"{label}: epoch",
        "offset_for_leader_epoch",
        3,
        replica_id=-1,
        topics=[
            {
                "topic": topic,
                "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
            }
        ],
    )


def _fetching(offset: int) -> dict[str, Any]:
    return {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }


@scenario("delete_records")
def delete_records_to_an_offset(talk: Dialogue) -> None:
    """At the start, in the middle of a batch, behind one, backwards, at the end."""
    topic = filled(talk)
    look(talk, "before", topic, (0,))
    for offset in (0, 1, 3, 2, 5):
        delete(talk, f"to {offset}", topic, to(offset))
        look(talk, f"after {offset}", topic, tuple({0, max(offset - 1, 0), offset}))
    delete(talk, "all", topic, to(6))
    look(talk, "after all", topic, (5, 6))
    talk.produce(topic, batch(b"next"))
    look(talk, "after the next", topic, (6,))


@scenario("delete_records")
def delete_records_to_the_high_watermark(talk: Dialogue) -> None:
    topic = filled(talk)
    delete(talk, "all", topic, to(HIGH_WATERMARK))
    look(talk, "after", topic, (0, 6))
    delete(talk, "empty partition", topic, to(HIGH_WATERMARK, 1))
    delete(talk, "again", topic, to(HIGH_WATERMARK))


@scenario("delete_records")
def delete_records_out_of_range(talk: Dialogue) -> None:
    topic = filled(talk)
    for offset in (7, -2, -100, 1 << 62):
        delete(talk, f"to {offset}", topic, to(offset))
    delete(talk, "beyond the end of an empty partition", topic, to(1, 1))
    look(talk, "after", topic, (0,))


@scenario("delete_records")
def delete_records_unknown(talk: Dialogue) -> None:
    topic = filled(talk)
    delete(talk, "partition", topic, to(0, 9))
    delete(talk, "negative partition", topic, to(0, -1))
    delete(talk, "topic", talk.topic("unknown"), to(0))
    delete(talk, "illegal topic", "a/b", to(0))
    delete(talk, "no partitions", topic)
    talk.ask("no topics", topics=[], timeout_ms=TIMEOUT_MS)


@scenario("delete_records")
def delete_records_policies(talk: Dialogue) -> None:
    """A topic that is only compacted refuses any offset."""
    for policy in ("compact", "compact,delete"):
        topic = talk.make_topic(policy.replace(",", "-"), configs={"cleanup.policy": policy})
        talk.produce(topic, batch(Item(b"value", b"key")))
        for offset in (1, HIGH_WATERMARK, 5, -2):
            delete(talk, f"{policy} to {offset}", topic, to(offset))


@scenario("delete_records")
def delete_records_several(talk: Dialogue) -> None:
    """Good and bad partitions in one request; one partition named twice."""
    topic = filled(talk)
    answer = talk.quietly(
        "delete_records",
        talk.version,
        topics=[
            {"name": topic, "partitions": [to(2), to(0, 1), to(0, 7)]},
            {"name": talk.topic("unknown"), "partitions": [to(0)]},
        ],
        timeout_ms=TIMEOUT_MS,
    )
    talk.note("mixed", _outcomes(talk, answer))
    answer = talk.quietly(
        "delete_records",
        talk.version,
        topics=[{"name": topic, "partitions": [to(3), to(4)]}],
        timeout_ms=TIMEOUT_MS,
    )
    talk.note("twice", _outcomes(talk, answer))


def _outcomes(talk: Dialogue, answer: dict[str, Any]) -> list[list[Any]]:
    """Return the outcomes sorted: Kafka's order is that of a hash map."""
    return sorted(
        [
            topic["name"].removeprefix(talk.prefix),
            part["partition_index"],
            part["low_watermark"],
            part["error_code"],
        ]
        for topic in answer["topics"]
        for part in topic["partitions"]
    )


@scenario("delete_records")
def delete_records_of_an_internal_topic(talk: Dialogue) -> None:
    name = "__consumer_offsets"

    def is_there() -> bool:
        answer = talk.quietly(
            "metadata", 8, topics=[{"name": name}], allow_auto_topic_creation=True
        )
        return bool(answer["topics"][0]["error_code"] == 0)

    talk.wait_until(is_there, name)
    delete(talk, "offset 0", name, to(0))
    delete(talk, "high watermark", name, to(HIGH_WATERMARK))
    delete(talk, "unknown partition", name, to(0, 5000))
