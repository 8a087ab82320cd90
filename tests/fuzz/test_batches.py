"""Random bytes in the place of batches: an error of ours or a value, never another error or a hang.

Bytes come from nowhere, or from a good batch with bits flipped, parts cut or fields set to
extremes. Half of these get a CRC that fits, so that the later checks run too. Examples that once
failed, or that reach a rare branch, are at the tests.
"""

from __future__ import annotations

import contextlib
import os
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from hypothesis import example, given, settings
from hypothesis import strategies as st

from minibroker.broker.storage.epochs import LeaderEpochs
from minibroker.broker.storage.producer_state import ProducerState, parse_snapshot
from minibroker.broker.storage.record_checks import AppendRules
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import (
    HEADER_BYTES,
    batch_size_at,
    crc_is_valid,
    iterate_headers,
    read_header,
    read_produced_header,
)
from minibroker.kafka.records.compression import NONE, decompress
from minibroker.kafka.records.control import read_marker
from minibroker.kafka.records.produce_rules import check_produce_version
from minibroker.kafka.records.record import count_records, decode_records
from tests.fuzz.hostile_batches import EXTREMES, NOW, SEEDS
from tests.support.batches import batch, with_crc
from tests.support.logs import check_and_number

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig

LIMIT = 1_000_000
EXAMPLES = int(os.environ.get("MINIBROKER_FUZZ_EXAMPLES", "200"))
"""Examples of each test; `make fuzz` has more, and new ones each time."""


@st.composite
def broken_batches(draw: st.DrawFn) -> bytes:
    """Return a good batch, damaged in up to four places."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        position = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(("flip", "extreme", "cut", "double"))):
            case "flip" if data:
                data[position] ^= 1 << draw(st.integers(0, 7))
            case "extreme" if position + 4 <= len(data):
                struct.pack_into(">i", data, position, draw(st.sampled_from(EXTREMES)))
            case "cut":
                del data[position:]
            case "double":
                data += data[position:]
            case _:
                pass
    if len(data) >= HEADER_BYTES and draw(st.booleans()):
        length = len(data) - 12
        if draw(st.booleans()):
            struct.pack_into(">i", data, 8, length)
        return with_crc(bytes(data))
    return bytes(data)


BYTES = st.binary(max_size=200) | broken_batches()


def rules(**changes: object) -> AppendRules:
    values = {
        "max_message_bytes": LIMIT,
        "segment_bytes": LIMIT,
        "compact": False,
        "is_append_time": False,
        "message_timestamp_before_max_ms": 2**63 - 1,
        "message_timestamp_after_max_ms": 2**63 - 1,
        "compression_type": "producer",
        "compression_gzip_level": -1,
        "compression_lz4_level": 9,
        "compression_zstd_level": 3,
        "message_magic": 2,
    }
    return AppendRules(cast("TopicConfig", SimpleNamespace(**values | changes)))


RULES = [
    rules(),
    rules(is_append_time=True),
    rules(compact=True),
    rules(compression_type="zstd"),
    rules(compression_type="uncompressed", is_append_time=True),
    rules(message_timestamp_before_max_ms=10, message_timestamp_after_max_ms=10),
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=BYTES, applied=st.sampled_from(RULES))
@example(data=b"", applied=RULES[0])
@example(data=bytes(61), applied=RULES[0])
@example(data=batch(b"x", count=2**31 - 1, last_offset_delta=2**31 - 2), applied=RULES[1])
@example(data=batch(b"x", attributes=8, timestamp_ms=-1), applied=RULES[0])
@example(data=batch(b"x", timestamp_ms=2**63 - 1), applied=RULES[5])
@example(data=batch(payload=b"\x80" * 20, count=1, last_offset_delta=0), applied=RULES[0])
@example(data=batch(b"x", attributes=4, payload=b"\x28\xb5\x2f\xfd"), applied=RULES[2])
def test_an_accepted_batch_is_sound(data: bytes, applied: AppendRules) -> None:
    try:
        records, header = check_and_number(memoryview(bytearray(data)), applied, 2**40, 7, NOW)
    except KafkaError:
        return
    [(position, stored)] = iterate_headers(records)
    assert position == 0
    assert stored.size_bytes == header.size_bytes == len(records)
    assert (stored.base_offset, stored.leader_epoch) == (2**40, 7)
    assert stored.last_offset == 2**40 + stored.count - 1
    assert crc_is_valid(records, 0, len(records))
    assert ProducerState("topic-0").append(stored) is None
    if stored.codec == NONE:
        # Of records that stay compressed Kafka does not look at the lengths.
        decoded = decode_records(records)
        assert len(decoded) == stored.count
        assert stored.max_timestamp == max(-1, *(record.timestamp for record in decoded))


@settings(max_examples=EXAMPLES, deadline=None)
@given(BYTES)
@example(batch(b"x", attributes=7))
@example(batch(attributes=0x20))
@example(batch(b"x", b"y", count=1))
def test_readers_of_batches(data: bytes) -> None:
    for reader in (read_header, decode_records, read_marker):
        try:
            reader(data)
        except CorruptionError:
            continue
    with contextlib.suppress(CorruptionError):
        assert sum(header.size_bytes for _, header in iterate_headers(data)) <= len(data)
        batch_size_at(data, 0)


@settings(max_examples=EXAMPLES, deadline=None)
@given(BYTES, st.integers(0, 13))
def test_the_rules_of_produce_versions(data: bytes, version: int) -> None:
    try:
        view = memoryview(data)
        check_produce_version(view, read_produced_header(view), version)
    except KafkaError:
        return
    assert version < 3 or data[16] == 2


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=100), st.integers(-1, 2**31 - 1))
@example(b"\xfe\xff\xff\xff\x0f", 1)
def test_the_walk_over_lengths(data: bytes, count: int) -> None:
    try:
        count_records(memoryview(data), 0, len(data), count)
    except CorruptionError:
        return
    assert 7 * count <= len(data)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 7), BYTES.map(lambda data: data[HEADER_BYTES:]) | st.binary(max_size=200))
@example(4, b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8)
@example(2, b"\x82SNAPPY\x00")
@example(2, b"\x82SNAPPY\x00" + bytes(8) + b"\x7f\xff\xff\xff")
@example(3, b"\x04\x22\x4d\x18\x4c" + b"\xff" * 20)
@example(1, b"\x1f\x8b\x08\x08" + b"name without end")
def test_decompression(codec: int, data: bytes) -> None:
    with contextlib.suppress(CorruptionError):
        assert len(decompress(codec, data, LIMIT)) <= LIMIT


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=120))
@example(struct.pack(">hIi", 1, 0, -1))
def test_snapshots(data: bytes) -> None:
    with contextlib.suppress(CorruptionError):
        parse_snapshot(data)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(max_size=40) | st.text("0123456789 -\n", max_size=40).map("0\n".__add__))
@example("0\n1\n5 99999999999999999999999\n")
def test_epoch_checkpoints(text: str) -> None:
    try:
        history = LeaderEpochs.from_text(text)
    except CorruptionError:
        return
    assert LeaderEpochs.from_text(history.to_text()).entries == history.entries
