"""`Writer` encodes Kafka's primitive types; `primitives.py` has the table of encodings."""

from struct import Struct, pack
from typing import Any

Buffer = bytes | bytearray | memoryview

RECORDS_BY_REFERENCE_BYTES = 1024
"""Records of at least this size are not copied; copying smaller ones is cheaper."""

STRING_BYTES_MAX = 0x7FFF
"""Longest string of the protocol, in bytes of UTF-8; the compact encoding could carry more."""

UVARINT_BYTES_MAX = 5

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_UINT16 = Struct(">H")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT64 = Struct(">q")
_FLOAT64 = Struct(">d")
_ONE_BYTE = [*map(bytes, zip(range(256)))]
_NULL_STRING = b"\xff\xff"
_NULL_BYTES = b"\xff\xff\xff\xff"


class Writer:
    """Collects a message as chunks; `parts` returns few large ones, in order.
    `append(chunk)` is the method of the list and takes encoded bytes: generated code calls it
    directly. Records of `RECORDS_BY_REFERENCE_BYTES` or more are kept by reference, so they must
    not change until the parts are on the socket.
    """

    __slots__ = ("_chunks", "_parts", "append")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._parts: list[Buffer] = []
        self.append = self._chunks.append

    @property
    def size(self) -> int:
        """Return the number of bytes collected so far."""
        return sum(map(len, self._chunks)) + sum(map(len, self._parts))

    def parts(self) -> list[Buffer]:
        """Return everything collected, as the buffers to send in order."""
        if self._chunks:
            self._parts.append(b"".join(self._chunks))
            self._chunks.clear()
        return self._parts

    def frame_parts(self) -> list[Buffer]:
        """Like `parts`, with the frame's length (int32, without itself) in front."""
        parts = self.parts()
        size_bytes = _INT32.pack(sum(map(len, parts)))
        if parts:
            parts[0] = size_bytes + parts[0]
        else:
            parts.append(size_bytes)
        return parts

    def to_bytes(self) -> bytes:
        """Return everything collected as one copy; for tests, tools and small records."""
        return b"".join(self.parts())

    def boolean(self, value: bool) -> None:
        """Write one byte, 1 or 0."""
        self.append(b"\x01" if value else b"\x00")

    def int8(self, value: int) -> None:
        """Write one byte, -128 to 127."""
        self.append(_INT8.pack(value))

    def int16(self, value: int) -> None:
        """Write two bytes, signed."""
        self.append(_INT16.pack(value))

    def uint16(self, value: int) -> None:
        """Write two bytes, unsigned."""
        self.append(_UINT16.pack(value))

    def int32(self, value: int) -> None:
        """Write four bytes, signed."""
        self.append(_INT32.pack(value))

    def uint32(self, value: int) -> None:
        """Write four bytes, unsigned."""
        self.append(_UINT32.pack(value))

    def int64(self, value: int) -> None:
        """Write eight bytes, signed."""
        self.append(_INT64.pack(value))

    def float64(self, value: float) -> None:
        """Write eight bytes, IEEE 754."""
        self.append(_FLOAT64.pack(value))

    def uuid(self, value: bytes) -> None:
        """Write sixteen bytes."""
        if len(value) != 16:
            raise ValueError(f"a uuid has 16 bytes, not {len(value)}")
        self.append(value)

    def uvarint(self, value: int) -> None:
        """Write an unsigned varint of a value from 0 to 2**35 - 1."""
        self.append(_ONE_BYTE[value] if 0 <= value < 128 else uvarint_bytes(value))

    def string(self, value: str) -> None:
        """Write a string with an int16 length."""
        data = value.encode()
        if len(data) > STRING_BYTES_MAX:
            raise ValueError(f"string of {len(data)} bytes, the protocol allows 32767")
        self.append(_INT16.pack(len(data)) + data)

    def nullable_string(self, value: str | None) -> None:
        """Write a string with an int16 length; None is length -1."""
        if value is None:
            self.append(_NULL_STRING)
        else:
            self.string(value)

    def compact_string(self, value: str) -> None:
        """Write a string with a varint length."""
        data = value.encode()
        size_bytes = len(data) + 1
        if size_bytes < 128:
            self.append(_ONE_BYTE[size_bytes] + data)
        elif size_bytes <= STRING_BYTES_MAX + 1:
            self.append(uvarint_bytes(size_bytes) + data)
        else:
            raise ValueError(f"string of {len(data)} bytes, the protocol allows 32767")

    def compact_nullable_string(self, value: str | None) -> None:
        """Write a string with a varint length; None is length 0."""
        if value is None:
            self.append(b"\x00")
        else:
            self.compact_string(value)

    def byte_string(self, value: Buffer) -> None:
        """Write bytes with an int32 length."""
        self.append(_INT32.pack(len(value)))
        self.append(bytes(value))

    def nullable_byte_string(self, value: Buffer | None) -> None:
        """Write bytes with an int32 length; None is length -1."""
        if value is None:
            self.append(_NULL_BYTES)
        else:
            self.byte_string(value)

    def compact_byte_string(self, value: Buffer) -> None:
        """Write bytes with a varint length."""
        self.uvarint(len(value) + 1)
        self.append(bytes(value))

    def compact_nullable_byte_string(self, value: Buffer | None) -> None:
        """Write bytes with a varint length; None is length 0."""
        if value is None:
            self.append(b"\x00")
        else:
            self.compact_byte_string(value)

    def records(self, value: Buffer | None) -> None:
        """Write record batches with an int32 length; large ones are kept by reference."""
        if value is None:
            self.append(_NULL_BYTES)
        else:
            self.append(_INT32.pack(len(value)))
            self._records(value)

    def compact_records(self, value: Buffer | None) -> None:
        """Write record batches with a varint length; large ones are kept by reference."""
        if value is None:
            self.append(b"\x00")
        else:
            self.uvarint(len(value) + 1)
            self._records(value)

    def _records(self, value: Buffer) -> None:
        if len(value) < RECORDS_BY_REFERENCE_BYTES:
            self.append(bytes(value))
        else:
            self.parts().append(value)

    def array_count(self, count: int) -> None:
        """Write an int32 number of items, -1 for a null array."""
        self.append(_INT32.pack(count))

    def compact_array_count(self, count: int) -> None:
        """Write a varint number of items, -1 for a null array."""
        self.append(_ONE_BYTE[count + 1] if count < 127 else uvarint_bytes(count + 1))

    def numbers(self, values: list[Any], code: str) -> None:
        """Write numbers of one type without a count; `code` as in `Reader.numbers`."""
        self.append(pack(f">{len(values)}{code}", *values))

    def tagged_fields(self, fields: list[tuple[int, "Writer"]]) -> None:
        """Write a struct's tagged fields as (tag, writer of the value), in ascending order
        of tag.
        """
        self.uvarint(len(fields))
        for tag, field in fields:
            self.uvarint(tag)
            self.uvarint(field.size)
            for part in field.parts():
                self.append(bytes(part))


def uvarint_bytes(value: int) -> bytes:
    """Return the unsigned varint of `value`. Raises ValueError below 0 and above five bytes."""
    if 127 < value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if not 0 <= value < 1 << 7 * UVARINT_BYTES_MAX:
        raise ValueError(f"{value} does not fit into a varint of {UVARINT_BYTES_MAX} bytes")
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    octets.append(value)
    return bytes(octets)
