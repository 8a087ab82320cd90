"""Good batches of every codec, and what seeded chance makes of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from minibroker.kafka.records.batch import HEADER_BYTES
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.record import Record
from tests.support.batches import with_crc

if TYPE_CHECKING:
    from random import Random

NOW: Final = 1_700_000_000_000
SEEDS: Final = [
    bytes(
        build_batch(
            [
                Record(0, NOW, b"key", b"value " * 20, (("h", None), ("", b"x"))),
                Record(1, NOW + 5, None, None),
                Record(2, NOW, b"", b"y" * 200),
            ],
            codec=codec,
            producer_id=3,
            producer_epoch=1,
            base_sequence=7,
        )
    )
    for codec in CODEC_NAMES
]
SEEDS.append(
    bytes(
        build_marker(TransactionMarker(True, 1), producer_id=1, producer_epoch=0, timestamp_ms=NOW)
    )
)
EXTREMES: Final = [0, 1, -1, 13, 14, 48, 49, 2**31 - 1, -(2**31), 0x7F, -128]
_LENGTH_AT: Final = 8
_LENGTH_END: Final = 12
_PRODUCER_AT: Final = 43
"""Start of producer id, epoch and sequence; -1 in all of them is a batch without a producer."""
_NO_PRODUCER: Final = b"\xff" * 14


def hostile_batch(chance: Random) -> bytes:
    """Return a good batch, damaged in up to three places. Most have a length and a CRC that fit, so
    that the later checks run too; half have no producer, whose sequence would be wrong early.
    """
    data = bytearray(chance.choice(SEEDS))
    if chance.random() < 0.5:
        data[_PRODUCER_AT : _PRODUCER_AT + len(_NO_PRODUCER)] = _NO_PRODUCER
    for _ in range(chance.randrange(4)):
        position = chance.randrange(len(data))
        match chance.choice(("flip", "flip", "extreme", "cut", "double")):
            case "flip":
                data[position] ^= 1 << chance.randrange(8)
            case "extreme" if position + 4 <= len(data):
                struct.pack_into(">i", data, position, chance.choice(EXTREMES))
            case "cut":
                del data[max(position, 1) :]
            case "double":
                data += data[position:]
            case _:
                pass
    if len(data) >= HEADER_BYTES and chance.random() < 0.8:
        struct.pack_into(">i", data, _LENGTH_AT, len(data) - _LENGTH_END)
        return with_crc(bytes(data))
    return bytes(data)
