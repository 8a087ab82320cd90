"""LZ4 as messages of format 0 carry it: a sound frame whose header checksum is computed wrongly.

The checksum byte of an LZ4 frame covers its descriptor (flags, block size, content size); the first
Java producers took the four bytes of the frame's magic number along. Format 1 put that right, so a
reader of format 0 must not look at the byte and a writer must write the wrong one, or clients of
that age refuse the frame. Everything behind the header is the same in both.

The codec itself is in `compression`; this module turns a frame's header from one form into the
other.

Source: Kafka Lz4BlockInputStream, Lz4BlockOutputStream (KAFKA-3160); LZ4 frame format; xxHash
specification (XXH32 of fewer than 16 bytes, all that a frame header needs).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from minibroker.kafka.errors import CorruptionError

FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
_FLAGS_AT: Final = 4
_DESCRIPTOR_BYTES: Final = 2
_CONTENT_SIZE_FLAG: Final = 0x08
_CONTENT_SIZE_BYTES: Final = 8

_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_MASK: Final = 0xFFFFFFFF
_STRIPE_BYTES: Final = 16
_WORD: Final = Struct("<I")


def to_broken(frame: bytes) -> bytes:
    """Return the sound `frame` with the header checksum that format 0 expects."""
    end = _header_end(frame)
    return frame[:end] + _checksum(frame[:end]) + frame[end + 1 :]


def to_sound(frame: bytes) -> bytes:
    """Return a `frame` of format 0 with the right header checksum, whichever it had.

    Raises CorruptionError where it does not begin with the header of an LZ4 frame.
    """
    end = _header_end(frame)
    return frame[:end] + _checksum(frame[_FLAGS_AT:end]) + frame[end + 1 :]


def _header_end(frame: bytes) -> int:
    """Return the position of the checksum byte. Raises CorruptionError where there is none."""
    if frame[:_FLAGS_AT] != FRAME_MAGIC or len(frame) <= _FLAGS_AT:
        raise CorruptionError("lz4 data does not begin with a frame header")
    end = _FLAGS_AT + _DESCRIPTOR_BYTES
    if frame[_FLAGS_AT] & _CONTENT_SIZE_FLAG:
        end += _CONTENT_SIZE_BYTES
    if len(frame) <= end:
        raise CorruptionError(f"lz4 frame header is cut after {len(frame)} bytes")
    return end


def _checksum(covered: bytes) -> bytes:
    """Return the checksum byte: bits 8 to 15 of the hash."""
    return bytes((xxh32_of_few(covered) >> 8 & 0xFF,))


def xxh32_of_few(data: bytes) -> int:
    """Return XXH32 (seed 0) of at most 15 bytes. Raises ValueError for more."""
    if len(data) >= _STRIPE_BYTES:
        raise ValueError(f"{len(data)} bytes, at most {_STRIPE_BYTES - 1} are hashed here")
    value = _PRIME_5 + len(data)
    position = 0
    while position + _WORD.size <= len(data):
        value = value + _WORD.unpack_from(data, position)[0] * _PRIME_3 & _MASK
        value = (value << 17 | value >> 15) * _PRIME_4 & _MASK
        position += _WORD.size
    for byte in data[position:]:
        value = value + byte * _PRIME_5 & _MASK
        value = (value << 11 | value >> 21) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16
