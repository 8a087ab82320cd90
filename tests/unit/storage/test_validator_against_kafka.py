"""The validator and Apache Kafka 3.9.1 judge the same batches: same error codes, same refused
records, same bytes in the log. Where they may differ, the case says what Kafka does and why we do
not."""

from __future__ import annotations

import struct
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.config.definition import parse_value
from minibroker.config.topic import TopicConfig
from minibroker.config.topic_keys import TOPIC_KEYS
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.records.batch import assign, read_header, set_append_time
from minibroker.records.builder import build_batch
from minibroker.records.produce_rules import InvalidRecordsError, check_produce_version
from minibroker.records.record import Record, decode_records
from minibroker.storage.append_rules import AppendRules
from minibroker.storage.validator import validate
from tests.compat.dialogue import Dialogue
from tests.support.batches import (
    CONTROL,
    TIMESTAMP,
    Item,
    batch,
    with_crc,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.peers import KafkaPeer

PRODUCE_VERSION = 9
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
APPENDED_AT = 1_800_000_000_000
NOW = 1_795_000_000_000
"""Our clock. The cases' timestamps are years from it and from the real one, on the same side."""

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "compact": {"cleanup.policy": "compact"},
    "recent": {
        "message.timestamp.before.max.ms": "3600000",
        "message.timestamp.after.max.ms": "3600000",
    },
    "zstd": {"compression.type": "zstd"},
    "uncompressed": {"compression.type": "uncompressed", "message.timestamp.type": "LogAppendTime"},
    "small": {"max.message.bytes": "150", "segment.bytes": "100000"},
    "small-segment": {"segment.bytes": "120"},
}

KEYED = [Record(0, TIMESTAMP, b"a", b"one"), Record(1, TIMESTAMP - 9, b"b", b"two")]
KEYLESS = [Record(0, TIMESTAMP, b"a", b"1"), Record(1, 5, None, b"2"), Record(2, 5, None, None)]


def length_of(length: int) -> bytes:
    return struct.pack(">qi", 0, length) + batch(b"x" * 50)[12:]


def flipped(position: int) -> bytes:
    data = bytearray(batch(b"x"))
    data[position] ^= 1
    return bytes(data)


def lying_max_timestamp(codec: str) -> bytes:
    data = build_batch(KEYED, codec=codec)
    struct.pack_into(">q", data, 35, TIMESTAMP + 77)
    return with_crc(bytes(data))


def lying_count(codec: str) -> bytes:
    data = build_batch(KEYED, codec=codec)
    struct.pack_into(">i", data, 23, 2)
    struct.pack_into(">i", data, 57, 3)
    return with_crc(bytes(data))


def cases() -> Iterator[tuple[str, bytes]]:
    """Name → the records of one partition."""
    for codec in CODECS:
        yield f"keys, {codec}", bytes(build_batch(KEYED, codec=codec))
        yield f"no keys, {codec}", bytes(build_batch(KEYLESS, codec=codec))
        yield (
            f"append time, {codec}",
            bytes(build_batch(KEYED, codec=codec, append_time_ms=TIMESTAMP + 3)),
        )
        yield f"append time -1, {codec}", bytes(build_batch(KEYED, codec=codec, append_time_ms=-1))
        yield f"count too large, {codec}", lying_count(codec)
        yield f"max timestamp lies, {codec}", lying_max_timestamp(codec)
        yield (
            f"no timestamps, {codec}",
            bytes(build_batch([Record(0, -1, b"k", b"v")], codec=codec)),
        )
    good = batch(Item(b"x", b"k"))
    yield "empty", b""
    yield "cut", good[:-1]
    yield "rest behind", good + b"rest"
    yield "part of a batch behind", good + good[:-1]
    yield "two batches", good + good
    yield "bad length behind", good + length_of(5)
    for length in (-1, 0, 13, 15, 20, 48, 100_000, 2**31 - 13):
        yield f"length {length}", length_of(length)
    for magic in (0, 1, 3, -1):
        yield f"magic {magic}", batch(b"x", magic=magic)
    yield "crc", flipped(18)
    yield "body flipped", flipped(65)
    yield "base offset", batch(b"x", base_offset=4)
    yield "large", batch(Item(b"x" * 500, b"k"))
    yield "count 0", batch(b"x", count=0)
    yield "no records", batch(last_offset_delta=0, count=0)
    yield "delta too large", batch(b"x", last_offset_delta=1)
    yield "delta negative", batch(b"x", last_offset_delta=-1)
    yield "count too small", batch(b"x", b"y", last_offset_delta=0, count=1)
    yield "control", batch(b"x", attributes=CONTROL)
    yield "no sequence", batch(b"x", producer_id=1, producer_epoch=0, sequence=-1)
    yield "producer id -5", batch(Item(b"x", b"k"), producer_id=-5)
    yield "unknown attributes", batch(Item(b"x", b"k"), attributes=0x4700)
    yield "far future", batch(Item(b"x", b"k"), timestamp_ms=4_000_000_000_000)
    yield "codec rubbish", batch(b"x", attributes=1, payload=b"no gzip at all")
    yield (
        "malformed record",
        batch(payload=b"\x0c\x00\x00\x00\x08\x01\x00", count=1, last_offset_delta=0),
    )
    yield "negative record length", batch(payload=b"\x05" + bytes(8), count=1, last_offset_delta=0)


CASES = dict(cases())


class Verdict(NamedTuple):
    """What was answered, and what stands in the log if the batch was taken."""

    code: ErrorCode
    refused: list[int]
    tells_why: bool
    """Whether the text of the error is sent. For a broken length or magic Kafka fails the whole
    request, and then it is; which is the handler's matter."""
    stored: bytes


# Case → Kafka's code, where we take it: Kafka unpacks every batch, we where the topic asks for it.
TAKEN_UNREAD = {
    "count too large, gzip": ErrorCode.INVALID_RECORD,
    "count too large, snappy": ErrorCode.INVALID_RECORD,
    "count too large, lz4": ErrorCode.INVALID_RECORD,
    "count too large, zstd": ErrorCode.INVALID_RECORD,
    "codec rubbish": ErrorCode.UNKNOWN_SERVER_ERROR,
    "malformed record": ErrorCode.INVALID_RECORD,
}
STORED_AS_SENT = {f"max timestamp lies, {codec}" for codec in CODECS}


def ask_kafka(talk: Dialogue, topic: str, records: bytes) -> Verdict:
    answer = talk.quietly(
        "produce",
        PRODUCE_VERSION,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
    )
    outcome = answer["responses"][0]["partition_responses"][0]
    stored = b""
    if outcome["error_code"] == 0:
        stored = read_batch(talk, topic, outcome["base_offset"])
    return Verdict(
        ErrorCode(outcome["error_code"]),
        [error["batch_index"] for error in outcome["record_errors"]],
        outcome["error_message"] is not None or outcome["error_code"] == ErrorCode.CORRUPT_MESSAGE,
        stored,
    )


def read_batch(talk: Dialogue, topic: str, offset: int) -> bytes:
    """The batch at `offset`, with what the broker and its clock put there made equal."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    answer = talk.quietly(
        "fetch",
        11,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[{"topic": topic, "partitions": [partition]}],
    )
    return comparable(answer["responses"][0]["partitions"][0]["records"])


def comparable(records: bytes | memoryview) -> bytes:
    data = bytearray(records)
    del data[read_header(data).size_bytes :]
    assign(data, 0, 0, 0)
    if read_header(data).is_append_time:
        set_append_time(data, 0, APPENDED_AT)
    return bytes(data)


def judge(rules: AppendRules, now_ms: int, records: bytes) -> Verdict:
    """What we answer: the handler's check, then the log's."""
    memory = memoryview(bytearray(records))
    try:
        check_produce_version(memory, PRODUCE_VERSION)
        taken, _ = validate(memory, rules, 0, 0, now_ms, "topic-0")
    except InvalidRecordsError as error:
        return Verdict(error.code, [e.batch_index for e in error.record_errors], True, b"")
    except KafkaError as error:
        return Verdict(error.code, [], error.code == ErrorCode.CORRUPT_MESSAGE, b"")
    return Verdict(ErrorCode.NONE, [], False, comparable(taken))


def topic_rules(own: dict[str, str]) -> AppendRules:
    values = {
        name: None if key.default is None else parse_value(key, own.get(name, key.default))
        for name, key in TOPIC_KEYS.items()
    }
    return AppendRules(TopicConfig(values))


def is_recompressed(topic: str, name: str) -> bool:
    return topic in {"zstd", "uncompressed"} and not name.endswith(topic)


@pytest.mark.java
@pytest.mark.parametrize("topic", TOPICS)
def test_T3_T4_same_verdict_as_kafka(kafka_39: KafkaPeer, topic: str) -> None:
    rules = topic_rules(TOPICS[topic])
    talk = Dialogue(kafka_39.host, kafka_39.port, scenario="validator", api="produce", version=9)
    wrong = []
    with closing(talk):
        full_name = talk.make_topic(topic, configs=TOPICS[topic])
        for name, records in CASES.items():
            theirs = ask_kafka(talk, full_name, records)
            ours = judge(rules, NOW, records)
            if problem := difference(topic, name, theirs, ours):
                wrong.append(f"{name}: {problem}")
    assert not wrong, "\n".join(wrong)


def difference(topic: str, name: str, theirs: Verdict, ours: Verdict) -> str | None:
    if ours.code == ErrorCode.NONE and TAKEN_UNREAD.get(name) == theirs.code:
        return None
    if topic == "zstd" and name == "producer id -5":
        # Kafka's builder stumbles over a negative id, which elsewhere means none, as here.
        return None
    if ours[:3] != theirs[:3]:
        return f"Kafka says {theirs[:3]}, we say {ours[:3]}"
    if ours.code != ErrorCode.NONE or name in STORED_AS_SENT:
        return None
    if is_recompressed(topic, name):
        if decode_records(ours.stored) != decode_records(theirs.stored):
            return "other records after recompression"
    elif ours.stored != theirs.stored:
        return f"Kafka stored {theirs.stored.hex()}, we store {ours.stored.hex()}"
    return None
