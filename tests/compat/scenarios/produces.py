"""Produce and InitProducerId: good and bad batches, idempotence, timestamps, acknowledgements."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario
from tests.compat.transactional import Producer
from tests.support.batches import CONTROL, TIMESTAMP, TRANSACTIONAL, Item, batch, describe, with_crc

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

BY_ID = 13
"""From this version on Produce names topics by id."""

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
UNKNOWN_ID = bytes(range(16))


def request(
    talk: Dialogue, topic: str, *entries: tuple[int, bytes | None], acks: int = -1, **fields: Any
) -> dict[str, Any]:
    """Return fields of a Produce request with one topic; `entries` are (partition, records)."""
    data = [{"index": partition, "records": records} for partition, records in entries]
    name = name_fields(talk, topic)
    return {
        "acks": acks,
        "timeout_ms": 10_000,
        "topic_data": [{**name, "partition_data": data}],
        **fields,
    }


def name_fields(talk: Dialogue, topic: str) -> dict[str, Any]:
    """Return a topic as this version names it: by name, or by id."""
    return {"topic_id": talk.topic_id(topic)} if talk.version >= BY_ID else {"name": topic}


def stored(talk: Dialogue, topic: str, partition: int = 0) -> Any:
    """Return every batch of the partition from offset 0, as a consumer reads it."""
    answer = talk.quietly(
        "fetch",
        4,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        topics=[
            {
                "topic": topic,
                "partitions": [
                    {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
                ],
            }
        ],
    )
    result = answer["responses"][0]["partitions"][0]
    return {
        "error": result["error_code"],
        "high watermark": result["high_watermark"],
        "batches": describe(result["records"]),
    }


@scenario("produce")
def produce_good(talk: Dialogue) -> None:
    topic = talk.make_topic("good", partitions=2)
    records = batch(b"a", Item(b"b", key=b"k"), Item(None, key=b"gone"))
    for acks in (-1, 1):
        talk.ask(f"acks {acks}", **request(talk, topic, (0, records), acks=acks))
    headed = batch(Item(b"v", b"k", TIMESTAMP + 5, ((b"h", b"1"), (b"h", None))))
    talk.ask("both partitions", **request(talk, topic, (1, headed), (0, records)))
    talk.note("partition 0", stored(talk, topic))
    talk.note("partition 1", stored(talk, topic, 1))


@scenario("produce")
def produce_without_answer(talk: Dialogue) -> None:
    topic = talk.make_topic("silent")
    talk.ask_without_answer("good", **request(talk, topic, (0, batch(b"a")), acks=0))
    talk.note("stored", stored(talk, topic))


@scenario("produce")
def produce_without_answer_fails(talk: Dialogue) -> None:
    """An error with acks=0 closes the connection, so that the client notices."""
    topic = talk.make_topic("silent")
    talk.ask_without_answer("no such partition", **request(talk, topic, (5, batch(b"a")), acks=0))
    if talk.version >= 3:
        open_batch = batch(
            b"a", producer_id=5, producer_epoch=0, sequence=0, attributes=TRANSACTIONAL
        )
        talk.ask_without_answer(
            "the whole request", **request(talk, topic, (0, open_batch), acks=0)
        )
    talk.note("stored", stored(talk, topic))


@scenario("produce")
def produce_bad_acks(talk: Dialogue) -> None:
    topic = talk.make_topic("acks")
    for acks in (2, -2):
        talk.ask(f"acks {acks}", **request(talk, topic, (0, batch(b"a")), acks=acks))
    talk.note("stored", stored(talk, topic))


@scenario("produce")
def produce_unknown_places(talk: Dialogue) -> None:
    topic = talk.make_topic("known")
    good = batch(b"a")
    talk.ask("partition", **request(talk, topic, (0, good), (7, good), (-1, good)))
    name: dict[str, Any] = {"name": talk.topic("unknown")}
    if talk.version >= BY_ID:
        name = {"topic_id": UNKNOWN_ID}
    data = [{**name, "partition_data": [{"index": 0, "records": good}]}]
    talk.ask("topic", acks=-1, timeout_ms=1000, topic_data=data)
    talk.ask("no topics", acks=-1, timeout_ms=1000, topic_data=[])
    talk.ask("no partitions", **request(talk, topic))


@scenario("produce", since=8, until=9)
def produce_few_bytes_that_unfold_to_much(talk: Dialogue) -> None:
    """Compressed batches whose work is out of all proportion to their bytes."""
    topic = talk.make_topic("unfolded")
    record = bytes((12, 0, 0, 0, 1, 1, 0))

    def ask(label: str, payload: bytes, count: int, attributes: int = GZIP) -> None:
        last = count - 1
        packed = batch(payload=payload, attributes=attributes, count=count, last_offset_delta=last)
        talk.ask(label, **request(talk, topic, (0, packed)))

    for count in (2, 5_000, 1_000_000):
        ask(f"{count} times offset 0", gzip.compress(record * count, mtime=0), count)
        ask(f"{count} without sizes", gzip.compress(bytes(7 * count), mtime=0), count)
        ask(f"{count} of one less", gzip.compress(record * (count - 1), mtime=0), count)
    ask("broken at the end", gzip.compress(record * 5_000 + b"\xff" * 7, mtime=0), 5_001)
    ask("empty members", gzip.compress(b"", mtime=0) * 5_000 + gzip.compress(record, mtime=0), 1)
    ask("only empty members", gzip.compress(b"", mtime=0) * 5_000, 1)
    talk.note("stored", stored(talk, topic))


@scenario("produce", until=12)
def produce_illegal_topic_name(talk: Dialogue) -> None:
    data = [{"name": "a/b", "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    talk.ask("illegal", acks=-1, timeout_ms=1000, topic_data=data)


@scenario("produce", since=3)
def produce_bad_batches(talk: Dialogue) -> None:
    """Each is refused; the good batch of another partition is kept."""
    topic = talk.make_topic("bad", partitions=2)
    good = batch(b"good")
    broken = bytearray(good)
    broken[-1] ^= 1
    for label, records in (
        ("wrong crc", bytes(broken)),
        ("count too high", batch(b"a", count=2)),
        ("count too low", batch(b"a", b"b", count=1)),
        ("last offset delta too high", batch(b"a", last_offset_delta=4)),
        ("last offset delta negative", batch(b"a", last_offset_delta=-1)),
        ("no records", batch()),
        ("count negative", batch(b"a", count=-1)),
        ("control batch", batch(Item(b"\0\0\0\0\0\0", b"\0\0\0\1"), attributes=CONTROL)),
        ("sequence without producer", batch(b"a", sequence=3)),
        ("producer without sequence", batch(b"a", producer_id=4711, producer_epoch=0)),
        ("transactional without producer", batch(b"a", attributes=TRANSACTIONAL)),
        ("base offset set", batch(b"a", base_offset=17)),
        ("leader epoch set", batch(b"a", leader_epoch=9)),
        ("unused attribute bits", batch(b"a", attributes=0x0100)),
    ):
        talk.ask(label, **request(talk, topic, (0, records), (1, good)))
    talk.note("stored", stored(talk, topic))


@scenario("produce", since=7)
def produce_unknown_codec(talk: Dialogue) -> None:
    topic = talk.make_topic("codec")
    for codec in (5, 6, 7):
        talk.ask(f"codec {codec}", **request(talk, topic, (0, batch(b"a", attributes=codec))))


@scenario("produce", since=3)
def produce_garbage_records(talk: Dialogue) -> None:
    """A good header with a good CRC, and malformed records."""
    topic = talk.make_topic("garbage")
    garbage = batch(payload=b"\xff" * 20, count=1, last_offset_delta=0)
    talk.ask("garbage", **request(talk, topic, (0, garbage)))
    talk.note("stored", stored(talk, topic)["high watermark"])


@scenario("produce", since=3)
def produce_bad_frames_of_records(talk: Dialogue) -> None:
    """More or less than exactly one batch of magic 2."""
    topic = talk.make_topic("frames")
    good = batch(b"good")
    longer = good[:8] + struct.pack(">i", len(good)) + good[12:]
    for label, records in (
        ("empty", b""),
        ("half a header", good[:30]),
        ("cut batch", good[:-1]),
        ("length beyond the end", longer),
        ("length negative", good[:8] + struct.pack(">i", -5) + good[12:]),
        ("length too small", good[:8] + struct.pack(">i", 20) + good[12:]),
        ("two batches", good + good),
        ("batch and rest", good + b"\0" * 5),
        ("magic 3", with_crc(batch(b"a", magic=3))),
        ("magic negative", with_crc(batch(b"a", magic=-1))),
    ):
        talk.ask(label, **request(talk, topic, (0, records)))
    talk.note("stored", stored(talk, topic))


@scenario("produce")
def produce_too_large(talk: Dialogue) -> None:
    topic = talk.make_topic("small", configs={"max.message.bytes": "200"})
    fits = batch(b"x" * 100)
    at_limit = batch(b"x" * (200 - len(batch(b"x" * 100)) + 100))
    talk.note("sizes", [len(fits), len(at_limit)])
    talk.ask("fits", **request(talk, topic, (0, fits)))
    talk.ask("at the limit", **request(talk, topic, (0, at_limit)))
    talk.ask("one byte more", **request(talk, topic, (0, batch(b"x" * 131))))
    talk.ask("far too large", **request(talk, topic, (0, batch(b"x" * 1000))))
    talk.note("stored", stored(talk, topic)["high watermark"])


@scenario("produce")
def produce_with_one_replica_where_two_should_be_in_sync(talk: Dialogue) -> None:
    """`min.insync.replicas` never asks for more replicas than the partition has."""
    topic = talk.make_topic("safe", configs={"min.insync.replicas": "2"})
    for acks in (-1, 1):
        talk.ask(f"acks {acks}", **request(talk, topic, (0, batch(b"a")), acks=acks))
    talk.note("stored", stored(talk, topic))


@scenario("produce")
def produce_larger_than_segment(talk: Dialogue) -> None:
    topic = talk.make_topic(
        "segment", configs={"segment.bytes": "1048576", "max.message.bytes": "4000000"}
    )
    talk.ask("too large for a segment", **request(talk, topic, (0, batch(b"x" * 1_100_000))))


@scenario("produce")
def produce_compressed(talk: Dialogue) -> None:
    topic = talk.make_topic("gzip")
    plain = batch(b"one", b"two", Item(b"three", b"k"))
    packed = batch(
        b"one",
        b"two",
        Item(b"three", b"k"),
        payload=gzip.compress(plain[61:], mtime=0),
        attributes=GZIP,
    )
    talk.ask("gzip", **request(talk, topic, (0, packed)))
    talk.note("stored", stored(talk, topic))
    damaged = batch(b"one", payload=b"no gzip at all", attributes=GZIP)
    talk.ask("not gzip", **request(talk, topic, (0, damaged)))


def packed(plain: bytes, *, claim: tuple[int, int] | None = None, count: int = 0) -> bytes:
    """Return the batch `plain` in gzip, with these timestamps (base, largest) and this count."""
    whole = bytearray(plain[:61] + gzip.compress(plain[61:], mtime=0))
    whole[22] |= GZIP
    struct.pack_into(">i", whole, 8, len(whole) - 12)
    if claim is not None:
        struct.pack_into(">qq", whole, 27, *claim)
    if count:
        struct.pack_into(">i", whole, 23, count - 1)
        struct.pack_into(">i", whole, 57, count)
    return with_crc(bytes(whole))


def claiming(plain: bytes, base_timestamp: int, max_timestamp: int) -> bytes:
    """Return the batch `plain` with other timestamps in its header."""
    return with_crc(plain[:27] + struct.pack(">qq", base_timestamp, max_timestamp) + plain[43:])


@scenario("produce", since=3)
def produce_headers_that_lie(talk: Dialogue) -> None:
    """A header contradicts its records, plain and compressed."""
    topic = talk.make_topic("lies")
    two = batch(Item(b"one", b"k"), Item(b"two", b"k", TIMESTAMP + 5))
    gap = bytearray(batch(Item(b"one", b"k"), Item(b"two", b"k")))
    gap[-8] = 8  # the offset delta of the second record
    for label, records in (
        ("two billion records", packed(two, count=2**31 - 1)),
        ("one record too many", packed(two, count=3)),
        ("one record too few", packed(two, count=1)),
        ("later than its records", claiming(two, TIMESTAMP, TIMESTAMP + 99)),
        ("later, compressed", packed(two, claim=(TIMESTAMP, TIMESTAMP + 99))),
        ("earlier than its records", claiming(two, TIMESTAMP, 0)),
        ("earlier, compressed", packed(two, claim=(TIMESTAMP, -1))),
        ("no timestamps", claiming(batch(b"a", b"b"), -1, 0)),
        ("no timestamps, compressed", packed(batch(b"a", b"b"), claim=(-1, 0))),
        ("offsets with a gap", with_crc(bytes(gap))),
        ("offsets with a gap, compressed", packed(bytes(gap))),
        ("nothing in it, compressed", packed(batch(payload=b"", count=1, last_offset_delta=0))),
    ):
        talk.ask(label, **request(talk, topic, (0, records)))
    talk.note("stored", stored(talk, topic))


@scenario("produce", since=3)
def produce_records_that_lie(talk: Dialogue) -> None:
    """The fields of a record do not fit in it."""
    topic = talk.make_topic("fields")
    for label, body in (
        ("good", b"\x10\0\0\0\x02k\x02v\0"),
        ("key too long", b"\x10\0\0\0\x40k\x02v\0"),
        ("value too long", b"\x10\0\0\0\x02k\x40v\0"),
        ("header count too high", b"\x10\0\0\0\x02k\x02v\x02"),
        ("header count negative", b"\x10\0\0\0\x02k\x02v\x01"),
        ("header without key", b"\x14\0\0\0\x02k\x02v\x02\x01\x01"),
        ("length too small", b"\x0e\0\0\0\x02k\x02v\0"),
        ("length too large", b"\x7e\0\0\0\x02k\x02v\0"),
        ("bytes behind", b"\x10\0\0\0\x02k\x02v\0\0"),
    ):
        plain = batch(payload=body, count=1, last_offset_delta=0)
        talk.ask(label, **request(talk, topic, (0, plain)))
        talk.ask(f"{label}, compressed", **request(talk, topic, (0, packed(plain))))
    talk.note("high watermark", stored(talk, topic)["high watermark"])


@scenario("produce", since=3)
def produce_compressed_damage(talk: Dialogue) -> None:
    """The CRC is right, and the compressed bytes are malformed."""
    topic = talk.make_topic("damage", partitions=2)
    good = packed(batch(b"one", b"two"))
    damage = (
        ("cut", good[:-5]),
        ("rest behind", good + b"rest"),
        ("first byte", good[:61] + b"\0" + good[62:]),
        ("middle", good[:75] + bytes((good[75] ^ 255,)) + good[76:]),
        ("lz4 instead", good[:22] + bytes((LZ4,)) + good[23:]),
        ("snappy instead", good[:22] + bytes((SNAPPY,)) + good[23:]),
    )
    for label, whole in damage:
        records = with_crc(whole[:8] + struct.pack(">i", len(whole) - 12) + whole[12:])
        talk.ask(label, **request(talk, topic, (0, records), (1, batch(b"good"))))
    talk.note("stored", stored(talk, topic))


@scenario("produce")
def produce_zstd(talk: Dialogue) -> None:
    """Version 7 is the first with zstd."""
    cramjam = __import__("cramjam")
    topic = talk.make_topic("zstd")
    plain = batch(b"one", b"two")
    payload = bytes(cramjam.zstd.compress(plain[61:]))
    packed = batch(b"one", b"two", payload=payload, attributes=ZSTD)
    talk.ask("zstd", **request(talk, topic, (0, packed)))
    talk.note("high watermark", stored(talk, topic)["high watermark"])


@scenario("produce")
def produce_append_time(talk: Dialogue) -> None:
    topic = talk.make_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    talk.ask("append time", **request(talk, topic, (0, batch(b"a", b"b", timestamp_ms=5))))
    talk.note("stored", stored(talk, topic))


@scenario("produce")
def produce_bad_timestamps(talk: Dialogue) -> None:
    limits = {
        "message.timestamp.before.max.ms": "3600000",
        "message.timestamp.after.max.ms": "3600000",
    }
    topic = talk.make_topic("strict", configs=limits)
    talk.ask("too old", **request(talk, topic, (0, batch(b"a", b"b"))))
    far = TIMESTAMP * 3
    talk.ask("too new", **request(talk, topic, (0, batch(b"a", timestamp_ms=far))))
    mixed = batch(Item(b"a", timestamp_ms=far), Item(b"b", timestamp_ms=TIMESTAMP))
    talk.ask("both", **request(talk, topic, (0, mixed)))
    talk.note("stored", stored(talk, topic))
    loose = talk.make_topic("loose")
    talk.ask("no timestamp", **request(talk, loose, (0, batch(b"a", timestamp_ms=-1))))
    talk.ask("negative", **request(talk, loose, (0, batch(b"a", timestamp_ms=-2))))


@scenario("produce")
def produce_compacted_without_key(talk: Dialogue) -> None:
    topic = talk.make_topic("compacted", configs={"cleanup.policy": "compact"})
    talk.ask("keys", **request(talk, topic, (0, batch(Item(b"v", b"k")))))
    talk.ask("no key", **request(talk, topic, (0, batch(b"v"))))
    mixed = batch(Item(b"v", b"k"), b"v", Item(b"v", b"k"), b"v")
    talk.ask("some keys", **request(talk, topic, (0, mixed)))
    talk.note("stored", stored(talk, topic))


@scenario("produce", since=3)
def produce_idempotent(talk: Dialogue) -> None:
    """Duplicates of the last five batches are answered, gaps and older ones refused (KIP-98)."""
    topic = talk.make_topic("once")
    producer = talk.producer_id()

    def send(label: str, sequence: int, count: int = 1, epoch: int = 0) -> None:
        records = batch(
            *(b"%d" % n for n in range(count)),
            producer_id=producer,
            producer_epoch=epoch,
            sequence=sequence,
        )
        talk.ask(label, **request(talk, topic, (0, records)))

    send("first", 0)
    send("duplicate of the first", 0)
    send("next", 1, 2)
    send("gap", 5)
    send("next again", 3)
    send("overlap", 2, 2)
    for sequence in range(4, 9):
        send(f"fill {sequence}", sequence)
    send("duplicate of five ago", 4)
    send("older than five", 0)
    send("part of an old batch", 1)
    send("new epoch, sequence not 0", 3, epoch=1)
    send("new epoch", 0, epoch=1)
    send("old epoch", 9, epoch=0)
    send("old epoch, duplicate", 8, epoch=0)
    send("same epoch goes on", 1, epoch=1)
    talk.note("high watermark", stored(talk, topic)["high watermark"])


@scenario("produce", since=3)
def produce_idempotent_unknown_producer(talk: Dialogue) -> None:
    topic = talk.make_topic("stranger")
    last = 2**31 - 1
    for label, producer, sequence, count in (
        ("starts in the middle", 900_001, 7, 1),
        ("goes on", 900_001, 8, 1),
        ("near the end", 900_002, last - 1, 2),
        ("wraps to 0", 900_002, 0, 1),
        ("wraps inside", 900_003, last, 3),
        ("after the wrap", 900_003, 2, 1),
        ("gap after the wrap", 900_003, 9, 1),
    ):
        records = batch(
            *(b"v" for _ in range(count)), producer_id=producer, producer_epoch=3, sequence=sequence
        )
        talk.ask(label, **request(talk, topic, (0, records)))
    bad = batch(b"v", producer_id=900_004, producer_epoch=-1, sequence=0)
    talk.ask("negative epoch", **request(talk, topic, (0, bad)))
    bad = batch(b"v", producer_id=900_005, producer_epoch=0, sequence=-1)
    talk.ask("negative sequence", **request(talk, topic, (0, bad)))


@scenario("produce", since=3)
def produce_several_in_one_request(talk: Dialogue) -> None:
    """The same partition twice in one request, the same topic twice in one request."""
    topic = talk.make_topic("double", partitions=2)
    first = {"index": 0, "records": batch(b"one")}
    second = {"index": 1, "records": batch(b"two")}
    name = name_fields(talk, topic)
    data = [{**name, "partition_data": [first]}, {**name, "partition_data": [second]}]
    answer = talk.quietly("produce", talk.version, acks=-1, timeout_ms=1000, topic_data=data)
    outcomes = [
        (partition["index"], partition["error_code"], partition["base_offset"])
        for response in answer["responses"]
        for partition in response["partition_responses"]
    ]
    talk.note("topic twice", sorted(outcomes))
    talk.note("its entries", len(answer["responses"]))
    last = {"index": 0, "records": batch(b"last", b"of two")}
    data = [{**name, "partition_data": [first, last]}]
    answer = talk.quietly("produce", talk.version, acks=-1, timeout_ms=1000, topic_data=data)
    talk.note("partition twice", answer["responses"])
    talk.ask("after it", **request(talk, topic, (0, batch(b"next"))))


@scenario("produce", since=3, until=12)
def produce_transactional_id_without_transaction(talk: Dialogue) -> None:
    """A request with a transactional id and no transactional batch."""
    topic = talk.make_topic("tx")
    fields = request(talk, topic, (0, batch(b"a")))
    talk.ask("plain batch", **fields, transactional_id="t")


@scenario("produce")
def produce_transactional_without_id(talk: Dialogue) -> None:
    """Transactional records need their id, also in a version that has no field for it."""
    topic = talk.make_topic("tx", partitions=2)
    producer = Producer(talk).begin_session()
    producer.add(topic, 0)
    open_batch = producer.batch(b"a")
    talk.ask("alone", **request(talk, topic, (0, open_batch)))
    talk.ask("beside a plain batch", **request(talk, topic, (1, batch(b"b")), (0, open_batch)))
    talk.ask("no such partition", **request(talk, topic, (7, open_batch)))
    talk.note("partition 0", stored(talk, topic))
    talk.note("partition 1", stored(talk, topic, 1))


@scenario("init_producer_id")
def init_producer_id_fresh(talk: Dialogue) -> None:
    talk.producer_id()  # Kafka just started has no block of them yet, and says so
    talk.ask("first", transactional_id=None, transaction_timeout_ms=60_000)
    talk.ask("second", transactional_id=None, transaction_timeout_ms=0)
    talk.ask("no time-out", transactional_id=None, transaction_timeout_ms=-1)
    talk.ask("empty transactional id", transactional_id="", transaction_timeout_ms=60_000)


@scenario("init_producer_id", since=3)
def init_producer_id_with_id(talk: Dialogue) -> None:
    talk.producer_id()  # as above
    for label, producer_id, epoch in (
        ("id and epoch", 17, 3),
        ("id alone", 17, -1),
        ("epoch alone", -1, 3),
        ("negative id", -2, 3),
    ):
        talk.ask(
            label,
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
