"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.support.batches import TIMESTAMP, Item, batch, with_crc

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = (
    -1, -2, -3, -4, -5, -6,
)  # fmt: skip


def at(timestamp: int, partition: int = 0, **fields: Any) -> dict[str, Any]:
    """Return one partition of a ListOffsets request."""
    return {"partition_index": partition, "timestamp": timestamp, **fields}


def ask(talk: Dialogue, label: str, topic: str, *partitions: dict[str, Any], **fields: Any) -> None:
    """Send ListOffsets for one topic, as a consumer."""
    talk.ask(
        label, replica_id=-1, topics=[{"name": topic, "partitions": list(partitions)}], **fields
    )


def timed_log(talk: Dialogue) -> str:
    """Make offsets 0 … 6 in three batches, at base +10, +30, +20, +50, +50, +40, +60 ms."""
    topic = talk.make_topic("timed", partitions=2)
    times = ((10, 30, 20), (50, 50), (40, 60))
    batches = [
        batch(*(Item(b"v", timestamp_ms=TIMESTAMP + delta) for delta in deltas)) for deltas in times
    ]
    talk.produce(topic, *batches)
    return topic


@scenario("list_offsets", since=1)
def list_offsets_by_time(talk: Dialogue) -> None:
    topic = timed_log(talk)
    for delta in (-1000, 0, 10, 11, 20, 25, 30, 31, 45, 50, 51, 60, 61, 1000):
        ask(talk, f"+{delta}", topic, at(TIMESTAMP + delta))
    ask(talk, "zero", topic, at(0))
    ask(talk, "empty partition", topic, at(TIMESTAMP, 1))


@scenario("list_offsets", since=1)
def list_offsets_special(talk: Dialogue) -> None:
    topic = timed_log(talk)
    for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP):
        ask(talk, f"special {timestamp}", topic, at(timestamp), at(timestamp, 1))


@scenario("list_offsets", since=1)
def list_offsets_without_timestamps(talk: Dialogue) -> None:
    """Batches without timestamps whose header has 0, like librdkafka's."""
    topic = talk.make_topic("timeless", partitions=2)
    without = batch(b"a", b"b", timestamp_ms=-1)
    claiming = with_crc(without[:35] + bytes(8) + without[43:])
    talk.produce(topic, claiming, batch(b"c"))
    talk.produce(topic, claiming, partition=1)
    for timestamp in (0, 1, TIMESTAMP, TIMESTAMP + 1, LATEST, EARLIEST, MAX_TIMESTAMP):
        ask(talk, f"at {timestamp}", topic, at(timestamp), at(timestamp, 1))


@scenario("list_offsets", since=1)
def list_offsets_tiered(talk: Dialogue) -> None:
    """Timestamps of tiered storage, which is off, and unknown special timestamps."""
    topic = timed_log(talk)
    for timestamp in (EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING, -7, -100):
        ask(talk, f"special {timestamp}", topic, at(timestamp))


@scenario("list_offsets", until=0)
def list_offsets_v0(talk: Dialogue) -> None:
    topic = timed_log(talk)
    for timestamp in (LATEST, EARLIEST, TIMESTAMP, TIMESTAMP * 3):
        for count in (0, 1, 2, 10):
            ask(talk, f"{timestamp} {count}", topic, at(timestamp, max_num_offsets=count))
    ask(talk, "empty partition", topic, at(LATEST, 1, max_num_offsets=5))


@scenario("list_offsets", until=0)
def list_offsets_v0_segments(talk: Dialogue) -> None:
    topic = talk.make_topic("rolled", configs={"segment.bytes": "1048576"})
    for _ in range(3):
        talk.produce(topic, batch(b"x" * 600_000))
    for timestamp in (LATEST, EARLIEST):
        for count in (1, 2, 3, 10):
            ask(talk, f"{timestamp} {count}", topic, at(timestamp, max_num_offsets=count))


@scenario("list_offsets")
def list_offsets_unknown(talk: Dialogue) -> None:
    topic = timed_log(talk)
    ask(talk, "partition", topic, at(LATEST, 9), at(LATEST, 0))
    ask(talk, "topic", talk.topic("unknown"), at(LATEST))
    ask(talk, "illegal topic", "a/b", at(LATEST))
    ask(talk, "no partitions", topic)
    talk.ask("no topics", replica_id=-1, topics=[])


@scenario("list_offsets", since=1)
def list_offsets_twice(talk: Dialogue) -> None:
    """A partition asked for twice in one request is refused, the others are answered."""
    topic = timed_log(talk)
    answer = talk.quietly(
        "list_offsets",
        talk.version,
        replica_id=-1,
        topics=[{"name": topic, "partitions": [at(LATEST), at(EARLIEST), at(LATEST, 1)]}],
    )
    outcomes = [
        (partition["partition_index"], partition["error_code"], partition["offset"])
        for response in answer["topics"]
        for partition in response["partitions"]
    ]
    talk.note("outcomes", sorted(outcomes))


@scenario("list_offsets", since=2)
def list_offsets_isolation(talk: Dialogue) -> None:
    topic = timed_log(talk)
    for level in (0, 1):
        ask(talk, f"level {level}", topic, at(LATEST), at(EARLIEST, 1), isolation_level=level)


@scenario("list_offsets", since=4)
def list_offsets_epochs(talk: Dialogue) -> None:
    topic = timed_log(talk)
    for epoch in (-(2**31), -2, -1, 0, 1):
        ask(talk, f"epoch {epoch}", topic, at(LATEST, current_leader_epoch=epoch))


@scenario("list_offsets", since=1)
def list_offsets_append_time(talk: Dialogue) -> None:
    topic = talk.make_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    talk.produce(topic, batch(b"a", b"b"), batch(b"c"))
    for label, timestamp in (("early", 5), ("late", TIMESTAMP * 3)):
        answer = talk.quietly(
            "list_offsets",
            talk.version,
            replica_id=-1,
            topics=[{"name": topic, "partitions": [at(timestamp)]}],
        )
        result = answer["topics"][0]["partitions"][0]
        talk.note(label, [result["error_code"], result["offset"], result["timestamp"] > 0])


@scenario("offset_for_leader_epoch")
def offset_for_leader_epoch_answers(talk: Dialogue) -> None:
    topic = timed_log(talk)

    def asking(label: str, name: str, *partitions: dict[str, Any]) -> None:
        fields = {"replica_id": -1} if talk.version >= 3 else {}
        talk.ask(label, topics=[{"topic": name, "partitions": list(partitions)}], **fields)

    for epoch in (0, 1, 5, -1, -2):
        asking(f"epoch {epoch}", topic, {"partition": 0, "leader_epoch": epoch})
    asking("empty partition", topic, {"partition": 1, "leader_epoch": 0})
    asking("unknown partition", topic, {"partition": 9, "leader_epoch": 0})
    asking("unknown topic", talk.topic("unknown"), {"partition": 0, "leader_epoch": 0})
    if talk.version >= 2:
        for current in (-(2**31), -2, -1, 0, 1):
            place = {"partition": 0, "leader_epoch": 0, "current_leader_epoch": current}
            asking(f"current {current}", topic, place)
