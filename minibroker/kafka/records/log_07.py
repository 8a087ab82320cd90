"""Messages of Kafka 0.7 (2011 to 2012): one message of a log checked, and the values inside of it.

`tools.import_07` reads such logs from files; here are only bytes. A log is a run of messages, each
behind its length, all numbers big-endian:

| position | field      | type   | note                                                            |
|----------|------------|--------|-----------------------------------------------------------------|
| 0        | length     | int32  | of everything behind it                                         |
| 4        | magic      | int8   | 0, or 1 with attributes                                         |
| 5        | attributes | int8   | magic 1 only: bits 0-1 are the codec: 0 none, 1 gzip, 2 snappy  |
| 5 or 6   | crc        | uint32 | CRC-32 of the payload alone                                     |
| 9 or 10  | payload    |        | a value; with a codec: messages of this form, compressed        |

There is no key, no timestamp and no null, and a message has no offset of its own. Its address is
its position: the count of bytes before it in the log of its partition, since the partition began.
The messages in a compressed one have none. They may be compressed themselves.

Source: Kafka 0.7 Message, ByteBufferMessageSet, CompressionUtils.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.compression import CODEC_NAMES, NONE, SNAPPY, decompress

LENGTH: Final = Struct(">i")
"""The field before each message."""
SHORTEST: Final = 5
"""The length of a message of magic 0 without payload."""
UNPACKED_BYTES_MAX: Final = 100 << 20
"""The most bytes that one message of a log may unfold to, all levels together."""
VALUES_MAX: Final = 1_000_000
"""The most values of a compressed message; Kafka's producer packs 200 unless it is told more."""
DEPTH_MAX: Final = 8
"""The most levels of compressed messages in one another; Kafka's producer writes one."""
_CRC: Final = Struct(">I")
_CODEC_MASK: Final = 0x03


class Message07(NamedTuple):
    """A message that is whole: its CRC is right."""

    codec: int
    """0 none, 1 gzip, 2 snappy."""
    payload: memoryview


class _Unpacked:
    """The values of one message of a log, so far. Changed by its one reader."""

    __slots__ = ("left_bytes", "values")

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes
        """Bytes that the message may still unfold to."""
        self.values: list[bytes] = []


def read_message(content: bytes | memoryview) -> Message07:
    """Return the message in `content`, the bytes behind its length.

    Raises CorruptionError for a magic or a codec that Kafka 0.7 does not have, fields that are cut,
    and a wrong CRC.
    """
    view = memoryview(content)
    if len(view) < SHORTEST:
        raise CorruptionError(f"a message has {len(view)} bytes, expected {SHORTEST} at least")
    magic = view[0]
    if magic > 1:
        raise CorruptionError(f"a message has magic {magic}, expected 0 or 1")
    if len(view) < SHORTEST + magic:
        raise CorruptionError(
            f"a message of magic 1 has {len(view)} bytes, expected {SHORTEST + 1} at least"
        )
    codec = view[1] & _CODEC_MASK if magic else NONE
    if codec > SNAPPY:
        raise CorruptionError(f"a message has codec {codec}, expected 0, 1 or 2")
    payload = view[SHORTEST + magic :]
    stored_crc: int = _CRC.unpack_from(view, 1 + magic)[0]
    actual_crc = zlib.crc32(payload)
    if actual_crc != stored_crc:
        raise CorruptionError(
            f"a message has CRC {stored_crc:#010x}, its payload has {actual_crc:#010x}"
        )
    return Message07(codec, payload)


def values_of(message: Message07, size_bytes_max: int = UNPACKED_BYTES_MAX) -> list[bytes]:
    """Return the values of a message: its payload, or those of the messages inside.

    `size_bytes_max`: the most that it may unfold to. Raises CorruptionError for an inner message
    that `read_message` refuses or that is cut, for more than `DEPTH_MAX` levels or `VALUES_MAX`
    values, and for data that the codec does not write; UnfoldsTooFarError; KafkaError
    UNSUPPORTED_COMPRESSION_TYPE without the package for snappy.
    """
    if message.codec == NONE:
        return [bytes(message.payload)]
    unpacked = _Unpacked(size_bytes_max)
    _unpack(message, unpacked, 1)
    return unpacked.values


def _unpack(message: Message07, into: _Unpacked, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise CorruptionError(f"messages are compressed in one another more than {DEPTH_MAX} times")
    view = memoryview(decompress(message.codec, message.payload, into.left_bytes))
    into.left_bytes -= len(view)
    at = 0
    while at < len(view):
        end = _message_end(view, at)
        if end is None:
            raise CorruptionError(
                f"a set of messages in {CODEC_NAMES[message.codec]} is cut at byte {at}"
            )
        inner = read_message(view[at + LENGTH.size : end])
        if inner.codec != NONE:
            _unpack(inner, into, depth + 1)
        elif len(into.values) == VALUES_MAX:
            raise CorruptionError(f"a compressed message has more than {VALUES_MAX} values")
        else:
            into.values.append(bytes(inner.payload))
        at = end


def _message_end(view: memoryview, at: int) -> int | None:
    """Return the end of the message whose length stands at `at`, None where it is not whole."""
    if len(view) - at < LENGTH.size:
        return None
    length: int = LENGTH.unpack_from(view, at)[0]
    end = at + LENGTH.size + length
    return end if length >= 0 and end <= len(view) else None
