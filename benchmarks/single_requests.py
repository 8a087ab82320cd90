"""Loads of requests that a client sends one after the other, each when the last one is answered.

Such a load shows what a client waits for. A function here prepares a load on a connection that has
the topic of `sides`, and returns it. A load sends a number of requests, checks every answer, and
returns that number.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

from benchmarks import wire
from benchmarks.rows import groups
from benchmarks.rows.raw import RawClient
from benchmarks.sides import START_PATIENCE_S, TOPIC
from tests.support.codec import codec_of

Load = Callable[[int], int]

PARTITION_COUNTS: Final = (12, 100)
_GROUP: Final = "counted"
_VALUE: Final = b"x" * 200
_SESSION_TIMEOUT_MS: Final = 300_000
_POLL_MS: Final = 60_000
_POLL_BYTES: Final = 1 << 20


def loads(connection: wire.Connection, port: int) -> Iterator[tuple[str, Load]]:
    """Yield name and load, each prepared when its turn comes: members of groups expire."""
    yield "CreateTopics, one topic", creations(connection)
    yield "Produce, acks=all", produced_to_all(connection)
    for count in PARTITION_COUNTS:
        yield f"Produce to {count} partitions, 200 bytes each", produced(connection, count)
    yield "Produce and the waiting Fetch", produced_and_fetched(connection, port)
    yield "OffsetCommit of one partition", commits(connection)
    yield "Heartbeat of a classic group", classic_heartbeats(connection)
    yield "Heartbeat of a consumer group", consumer_heartbeats(connection)


def creations(connection: wire.Connection) -> Load:
    """Return a load of CreateTopics with a new topic of one partition each."""
    numbers = itertools.count()

    def create(count: int) -> int:
        for number in itertools.islice(numbers, count):
            wire.create_topic(connection, f"created-{number}")
        return count

    return create


def produced_to_all(connection: wire.Connection) -> Load:
    """Return a load of Produce with one record and acks=all."""
    frame = wire.produce_frame(TOPIC, wire.one_record_batch(_VALUE), acks=-1)

    def produce(count: int) -> int:
        return wire.pipeline(connection, TOPIC, frame, count, in_flight=1)

    return produce


def produced(connection: wire.Connection, partitions: int) -> Load:
    """Return a load of Produce with one record for each partition of a new topic."""
    topic = f"{TOPIC}-{partitions}"
    wire.create_topic(connection, topic, partitions)
    wire.wait_for_leader(connection, topic, partitions=partitions, timeout_s=START_PATIENCE_S)
    batch = wire.one_record_batch(_VALUE)
    client = RawClient(connection, topic, batch, partitions=partitions)

    def produce(count: int) -> int:
        return client.exchange(1, count)

    return produce


def produced_and_fetched(connection: wire.Connection, port: int) -> Load:
    """Return a load of a Fetch that waits, on another connection, and the Produce that ends it."""
    frame = wire.produce_frame(TOPIC, wire.one_record_batch(_VALUE))
    consumer = wire.Connection(port, timeout_s=START_PATIENCE_S)

    def exchange(count: int) -> int:
        error, offset = wire.produce_answer(connection.ask(frame), TOPIC)
        for next_offset in range(offset + 1, offset + 1 + count):
            consumer.send_bytes(_poll_frame(next_offset))  # the broker reads it first
            error, base_offset = wire.produce_answer(connection.ask(frame), TOPIC)
            if error or base_offset != next_offset or _VALUE not in consumer.receive():
                raise wire.WireError(f"Produce at {next_offset} answered {error}, {base_offset}")
        return count

    return exchange


def _poll_frame(offset: int) -> bytes:
    """Return a Fetch v11, which has no session, as librdkafka sends it."""
    partition = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "partition_max_bytes": _POLL_BYTES,
    }
    fields = {
        "max_wait_ms": _POLL_MS,
        "min_bytes": 1,
        "max_bytes": _POLL_BYTES,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": [partition]}],
    }
    codec = codec_of("fetch")
    return wire.frame(codec.api_key, 11, codec.encode_request(11, fields))


def commits(connection: wire.Connection) -> Load:
    """Return a load of OffsetCommit of one partition, by a consumer that is no member."""
    groups.make_topic(connection)
    groups.wait_for_coordinator(connection, _GROUP)
    frame = groups.commit_frame(_GROUP, range(1))

    def commit(count: int) -> int:
        for _ in range(count):
            if codes := [code for code in groups.codes_of(connection.ask(frame)) if code]:
                raise wire.WireError(f"OffsetCommit answered {codes}")
        return count

    return commit


def classic_heartbeats(connection: wire.Connection) -> Load:
    """Return a load of Heartbeat of the one member of a classic group."""
    group_id = f"{_GROUP}-classic"
    groups.wait_for_coordinator(connection, group_id)
    joined = wire.call(
        connection,
        *("join_group", 2),
        group_id=group_id,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=_SESSION_TIMEOUT_MS,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )
    member = {
        "group_id": group_id,
        "generation_id": joined["generation_id"],
        "member_id": joined["member_id"],
    }
    assignments = [{"member_id": joined["member_id"], "assignment": b""}]
    wire.call(connection, "sync_group", 1, **member, assignments=assignments)

    def beat(count: int) -> int:
        for _ in range(count):
            if code := wire.call(connection, "heartbeat", 1, **member)["error_code"]:
                raise wire.WireError(f"Heartbeat answered error {code}")
        return count

    return beat


def consumer_heartbeats(connection: wire.Connection) -> Load:
    """Return a load of ConsumerGroupHeartbeat of the one member of a consumer group, which has the
    one partition of the topic.
    """
    joining = {"rebalance_timeout_ms": _SESSION_TIMEOUT_MS, "subscribed_topic_names": [TOPIC]}
    group_id = f"{_GROUP}-consumer"
    joined = _beat(connection, group_id, "", 0, topic_partitions=[], **joining)
    member_id, epoch = joined["member_id"], joined["member_epoch"]
    assigned = joined["assignment"]["topic_partitions"]
    _beat(connection, group_id, member_id, epoch, topic_partitions=assigned)

    def beat(count: int) -> int:
        for _ in range(count):
            _beat(connection, group_id, member_id, epoch)
        return count

    return beat


def _beat(
    connection: wire.Connection, group_id: str, member_id: str, epoch: int, **more: object
) -> dict[str, Any]:
    member = {"group_id": group_id, "member_id": member_id, "member_epoch": epoch}
    answer = wire.call(connection, "consumer_group_heartbeat", 0, **member, **more)
    if code := answer["error_code"]:
        raise wire.WireError(f"ConsumerGroupHeartbeat answered error {code}")
    return answer
