"""Requests for the golden files of the old formats: every kind of message set, to every kind of
topic.
"""

from __future__ import annotations

import struct

from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.message_sets import (
    APPEND_TIME,
    GZIP,
    LZ4,
    SNAPPY,
    TIMESTAMP,
    ZSTD,
    message,
    plain,
    wrapper,
)

VALUES = (b"one", b"two", None, b"", b"five " * 20)
FORMATS = {"v0": "0.9.0", "v1": "0.10.2", "v2": "2.8"}
VARIANTS: dict[str, dict[str, str]] = {
    "plain": {},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "gzip": {"compression.type": "gzip"},
    "uncompressed": {"compression.type": "uncompressed"},
    "compact": {"cleanup.policy": "compact"},
    "limit": {"message.timestamp.difference.max.ms": "3600000"},
}


def topics() -> dict[str, dict[str, str]]:
    """Return topic name → its configuration."""
    return {
        f"{name}-{variant}": {"message.format.version": version, **settings}
        for name, version in FORMATS.items()
        for variant, settings in VARIANTS.items()
    }


def sets(topic: str) -> dict[str, tuple[int, bytes]]:
    """Return name → (Produce version, records) for a topic; each goes to a partition of its own."""
    good = _good_sets()
    if topic.endswith("-plain"):
        return {**good, **_odd_sets(), **_bad_sets()}
    chosen = ("plain0", "plain1", "gzip0", "gzip1", "lz4-1", "batch", "batch-gzip")
    return {
        # In version 2 at least, whose answer tells the append time.
        **{name: (max(good[name][0], 2), good[name][1]) for name in chosen},
        "no-key": (2, message(b"x") + message(b"y", None, offset=1)),
        "no-key-gzip": (2, wrapper(GZIP, message(b"x", None))),
        "says-append-time": (2, message(b"x", attributes=APPEND_TIME)),
        "gzip-says-append-time": (2, wrapper(GZIP, message(b"x"), attributes=APPEND_TIME)),
        "no-time": (2, message(b"x", timestamp=-1)),
        "no-time-says-append-time": (2, message(b"x", timestamp=-1, attributes=APPEND_TIME)),
    }


def _good_sets() -> dict[str, tuple[int, bytes]]:
    inner0, inner1 = plain(*VALUES, magic=0), plain(*VALUES)
    unnumbered = b"".join(message(value, timestamp=TIMESTAMP + n) for n, value in enumerate(VALUES))
    records = [Record(n, TIMESTAMP + (n + 2) % 5, b"k", value) for n, value in enumerate(VALUES)]
    return {
        "plain0": (0, inner0),
        "plain1": (2, inner1),
        "gzip0": (0, wrapper(GZIP, inner0, magic=0, offset=4)),
        "gzip0-unnumbered": (0, wrapper(GZIP, inner0, magic=0)),
        "snappy0": (0, wrapper(SNAPPY, inner0, magic=0, offset=4)),
        "lz4-0": (1, wrapper(LZ4, inner0, magic=0, offset=4)),
        "gzip1": (2, wrapper(GZIP, inner1, offset=4)),
        "gzip1-wrapper-at-0": (2, wrapper(GZIP, inner1)),
        "gzip1-unnumbered": (2, wrapper(GZIP, unnumbered)),
        "gzip1-other-time": (2, wrapper(GZIP, inner1, offset=4, timestamp=TIMESTAMP - 7)),
        "snappy1": (2, wrapper(SNAPPY, inner1, offset=4)),
        "lz4-1": (2, wrapper(LZ4, inner1, offset=4)),
        "one": (2, message(b"alone")),
        "batch": (3, bytes(build_batch(records))),
        "batch-gzip": (3, bytes(build_batch(records, codec="gzip"))),
        "batch-in-v2": (2, bytes(build_batch(records))),
    }


def _odd_sets() -> dict[str, tuple[int, bytes]]:
    inner1 = plain(*VALUES)
    return {
        "nothing": (2, b""),
        "half-a-message": (2, message(b"x")[:-1]),
        "and-a-half": (2, inner1 + message(b"x")[:-1]),
        "half-inside": (2, wrapper(GZIP, inner1 + message(b"x")[:-1], offset=4)),
        "large-offset": (2, message(b"x", offset=77) + message(b"y", offset=3)),
        "large-wrapper-offset": (2, wrapper(GZIP, inner1, offset=99)),
        "zero-attributes-0": (0, message(b"x", magic=0, attributes=APPEND_TIME)),
        "time-0": (2, message(b"x", timestamp=0)),
    }


def _bad_sets() -> dict[str, tuple[int, bytes]]:
    inner0, inner1 = plain(*VALUES, magic=0), plain(*VALUES)
    lying = bytearray(message(b"x"))
    struct.pack_into(">i", lying, 26, 1000)
    headers = build_batch([Record(0, TIMESTAMP, b"k", b"v", (("name", b"one"),))])
    idempotent = build_batch(
        [Record(0, TIMESTAMP, b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=0
    )
    return {
        "wrong-crc": (2, message(b"x") + message(b"y", wrong_crc=True)),
        "wrong-inner-crc": (2, wrapper(GZIP, message(b"x", wrong_crc=True))),
        "two-wrappers": (2, wrapper(GZIP, inner1, offset=4) * 2),
        "plain-and-wrapper": (2, message(b"x") + wrapper(GZIP, inner1, offset=4)),
        "two-formats": (2, message(b"x") + message(b"y", magic=0)),
        "two-formats-inside": (2, wrapper(GZIP, inner0, offset=4)),
        "compressed-inside": (2, wrapper(GZIP, wrapper(GZIP, inner1, offset=4), offset=0)),
        "zstd": (2, wrapper(ZSTD, inner1, offset=4)),
        "codec-5": (2, message(b"x", attributes=5)),
        "null-wrapper": (2, message(None, attributes=GZIP)),
        "empty-wrapper": (2, wrapper(GZIP, b"")),
        "no-gzip": (2, message(b"nothing of the kind", attributes=GZIP)),
        "low-wrapper-offset": (2, wrapper(GZIP, inner1, offset=2)),
        "negative-time": (2, message(b"x", timestamp=-2)),
        "headers": (3, bytes(headers)),
        "idempotent": (3, bytes(idempotent)),
        "batch-behind-message": (2, message(b"x") + bytes(headers)),
        "magic-3": (2, message(b"x", magic=3)),
    }
