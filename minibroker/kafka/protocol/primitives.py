"""Kafka's primitive types: `Reader` takes them from a buffer, `Writer` collects them for a socket.

The generated messages call these and nothing else (`Writer` is in `writer.py`, for its length).
All integers are big-endian. "Compact" is the encoding of the flexible versions (KIP-482): a length
is an unsigned varint of length + 1, 0 = null.

| type           | before flexible versions        | compact                             |
|----------------|---------------------------------|-------------------------------------|
| string         | int16 length (< 0: null), UTF-8 | uvarint length + 1 (0: null), UTF-8 |
| bytes, records | int32 length (< 0: null), bytes | uvarint length + 1 (0: null), bytes |
| array          | int32 count (< 0: null), items  | uvarint count + 1 (0: null), items  |
| tagged fields  | none                            | count, then (tag, size, bytes) each |

A reader takes no memory for bytes that it has not seen: a count or a length beyond the end of the
buffer is a `ProtocolError`, like every other value that does not fit. A text that is not UTF-8 is
read with replacement characters, as in Java, so that its request gets an error code and the
connection stays open. Writing a value that the type cannot hold raises ValueError or struct.error.
"""

from struct import Struct, calcsize, unpack_from
from struct import error as struct_error
from typing import Any

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.writer import STRING_BYTES_MAX, UVARINT_BYTES_MAX, Buffer, Writer

__all__ = ("ZERO_UUID", "Buffer", "Reader", "Writer")

ZERO_UUID = bytes(16)
"""The uuid that means "none"."""
TAGS_MAX = 128
"""Tagged fields that a struct may have. Kafka has no such limit; no message has ten of them."""

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_FLOAT64 = Struct(">d")


def truncated(subject: str, position: int, end: int) -> ProtocolError:
    """Return the error for a value that reaches beyond the last byte."""
    return ProtocolError(
        f"{subject} at byte {position} does not fit into the {end} bytes there are"
    )


def null_refused(position: int) -> ProtocolError:
    """Return the error for a null where the protocol requires a value."""
    return ProtocolError(f"null before byte {position} where a value is required")


class Reader:
    """Reads a message from `buffer`, from byte `position` to the buffer's end.
    Strings and bytes are copied. `records` are memoryviews of the buffer and live as long as it
    does. A method raises ProtocolError if the bytes do not hold the value.
    """

    __slots__ = ("buffer", "end", "position")

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        self.buffer = buffer if type(buffer) is memoryview else memoryview(buffer)
        self.position = position
        self.end = len(buffer)

    @property
    def remaining(self) -> int:
        """Return the number of bytes that are not read yet."""
        return self.end - self.position

    def fixed(self, layout: Struct) -> tuple[Any, ...]:
        """Read several numbers of fixed size at once; `layout` (big-endian) describes them."""
        position = self.position
        try:
            values = layout.unpack_from(self.buffer, position)
        except struct_error:
            raise truncated("a run of numbers", position, self.end) from None
        self.position = position + layout.size
        return values

    def boolean(self) -> bool:
        """Read one byte; every value but 0 is true."""
        return self.uint8() != 0

    def uint8(self) -> int:
        """Read one byte, 0 to 255."""
        position = self.position
        try:
            value = self.buffer[position]
        except IndexError:
            raise truncated("a byte", position, self.end) from None
        self.position = position + 1
        return value

    def int8(self) -> int:
        """Read one byte, -128 to 127."""
        value = self.uint8()
        return value - 256 if value > 127 else value

    def int16(self) -> int:
        """Read two bytes, signed."""
        position = self.position
        try:
            (value,) = _INT16.unpack_from(self.buffer, position)
        except struct_error:
            raise truncated("an int16", position, self.end) from None
        self.position = position + 2
        return value  # type: ignore[no-any-return]

    def uint16(self) -> int:
        """Read two bytes, unsigned."""
        return self.int16() & 0xFFFF

    def int32(self) -> int:
        """Read four bytes, signed."""
        position = self.position
        try:
            (value,) = _INT32.unpack_from(self.buffer, position)
        except struct_error:
            raise truncated("an int32", position, self.end) from None
        self.position = position + 4
        return value  # type: ignore[no-any-return]

    def uint32(self) -> int:
        """Read four bytes, unsigned."""
        return self.int32() & 0xFFFFFFFF

    def int64(self) -> int:
        """Read eight bytes, signed."""
        position = self.position
        try:
            (value,) = _INT64.unpack_from(self.buffer, position)
        except struct_error:
            raise truncated("an int64", position, self.end) from None
        self.position = position + 8
        return value  # type: ignore[no-any-return]

    def float64(self) -> float:
        """Read eight bytes, IEEE 754."""
        (value,) = _FLOAT64.unpack(self.take(8))
        return value  # type: ignore[no-any-return]

    def uuid(self) -> bytes:
        """Read sixteen bytes; all zero means "none"."""
        position = self.position
        end = position + 16
        if end > self.end:
            raise truncated("a uuid", position, self.end)
        self.position = end
        return self.buffer[position:end].tobytes()

    def uvarint(self) -> int:
        """Read an unsigned varint: seven bits per byte, lowest first, at most five bytes."""
        position = self.position
        try:
            value = self.buffer[position]
            position += 1
            if value > 127:
                value &= 127
                shift = 7
                while (byte := self.buffer[position]) > 127:
                    value |= (byte & 127) << shift
                    shift += 7
                    position += 1
                    if shift == 7 * UVARINT_BYTES_MAX:
                        raise ProtocolError(f"varint before byte {position} is longer than 5 bytes")
                value |= byte << shift
                position += 1
        except IndexError:
            raise truncated("a varint", position, self.end) from None
        self.position = position
        return value

    def take(self, size_bytes: int) -> memoryview:
        """Return the next `size_bytes` (≥ 0) bytes without a copy."""
        position = self.position
        end = position + size_bytes
        if end > self.end:
            raise truncated(f"a value of {size_bytes} bytes", position, self.end)
        self.position = end
        return self.buffer[position:end]

    def _length(self) -> int:
        """Read a compact length or count, -1 for null. The usual single byte is tried first."""
        position = self.position
        try:
            length = self.buffer[position]
        except IndexError:
            raise truncated("a length", position, self.end) from None
        if length > 127:
            return self.uvarint() - 1
        self.position = position + 1
        return length - 1

    def _text(self, size_bytes: int) -> str:
        if not size_bytes:
            return ""
        position = self.position
        end = position + size_bytes
        if end > self.end or size_bytes > STRING_BYTES_MAX:
            raise truncated(f"a string of {size_bytes} bytes", position, self.end)
        self.position = end
        try:
            return self.buffer[position:end].tobytes().decode()
        except UnicodeDecodeError:
            text = str(self.buffer[position:end], "utf-8", "replace")
        # Replacing a byte makes three bytes of it; a longer text could not be repeated in an
        # answer.
        if len(text.encode()) > STRING_BYTES_MAX:
            raise ProtocolError(f"a string of {size_bytes} bytes at byte {position} is not UTF-8")
        return text

    def string(self) -> str:
        """Read a string with an int16 length; null is refused."""
        size_bytes = self.int16()
        if size_bytes < 0:
            raise null_refused(self.position)
        return self._text(size_bytes)

    def nullable_string(self) -> str | None:
        """Read a string with an int16 length, or None."""
        size_bytes = self.int16()
        return None if size_bytes < 0 else self._text(size_bytes)

    def compact_string(self) -> str:
        """Read a string with a varint length; null is refused."""
        size_bytes = self._length()
        if size_bytes < 0:
            raise null_refused(self.position)
        return self._text(size_bytes)

    def compact_nullable_string(self) -> str | None:
        """Read a string with a varint length, or None."""
        position = self.position
        if position < self.end and not self.buffer[position]:
            self.position = position + 1
            return None
        size_bytes = self._length()
        return None if size_bytes < 0 else self._text(size_bytes)

    def byte_string(self) -> bytes:
        """Read and copy bytes with an int32 length; null is refused."""
        return bytes(self.take(self.array_count()))

    def nullable_byte_string(self) -> bytes | None:
        """Read and copy bytes with an int32 length, or None."""
        size_bytes = self.int32()
        return None if size_bytes < 0 else bytes(self.take(size_bytes))

    def compact_byte_string(self) -> bytes:
        """Read and copy bytes with a varint length; null is refused."""
        return bytes(self.take(self.compact_array_count()))

    def compact_nullable_byte_string(self) -> bytes | None:
        """Read and copy bytes with a varint length, or None."""
        size_bytes = self._length()
        return None if size_bytes < 0 else bytes(self.take(size_bytes))

    def records(self) -> memoryview | None:
        """Return record batches with an int32 length without a copy, or None."""
        size_bytes = self.int32()
        return None if size_bytes < 0 else self.take(size_bytes)

    def compact_records(self) -> memoryview | None:
        """Return record batches with a varint length without a copy, or None."""
        size_bytes = self._length()
        return None if size_bytes < 0 else self.take(size_bytes)

    def array_count(self) -> int:
        """Read an int32 number of items; null is refused, and so is a number above the
        bytes left.
        """
        count = self.int32()
        if count < 0:
            raise null_refused(self.position)
        if count > self.end - self.position:
            raise truncated(f"an array of {count} items", self.position, self.end)
        return count

    def nullable_array_count(self) -> int:
        """Like `array_count`, but return -1 for a null array."""
        count = self.int32()
        if count > self.end - self.position:
            raise truncated(f"an array of {count} items", self.position, self.end)
        return count if count >= 0 else -1

    def compact_array_count(self) -> int:
        """Like `array_count`, but the count is a varint."""
        position = self.position
        try:  # `_length`, without a call for each array
            count = self.buffer[position] - 1
        except IndexError:
            raise truncated("a length", position, self.end) from None
        if count > 126:
            count = self.uvarint() - 1
        else:
            self.position = position + 1
        if count < 0:
            raise null_refused(self.position)
        if count > self.end - self.position:
            raise truncated(f"an array of {count} items", self.position, self.end)
        return count

    def compact_nullable_array_count(self) -> int:
        """Like `nullable_array_count`, but the count is a varint."""
        count = self._length()
        if count > self.end - self.position:
            raise truncated(f"an array of {count} items", self.position, self.end)
        return count

    def numbers(self, count: int, code: str) -> list[Any]:
        """Read `count` numbers of one type; `code` is its letter in the struct module (b, h, i, q
        …).
        """
        position = self.position
        layout = f">{count}{code}"
        try:
            values = unpack_from(layout, self.buffer, position)
        except struct_error:
            raise truncated(f"an array of {count} numbers", position, self.end) from None
        self.position = position + calcsize(layout)
        return list(values)

    def skip_tagged_fields(self) -> None:
        """Skip the tagged fields of a struct whose tags are all unknown."""
        position = self.position
        if position < self.end and not self.buffer[position]:
            self.position = position + 1
            return
        for _ in range(self.tag_count()):
            self.uvarint()
            self.take(self.uvarint())

    def tag_count(self) -> int:
        """Read the number of tagged fields of a struct; refused is one above TAGS_MAX."""
        position = self.position
        if position < self.end and not self.buffer[position]:
            self.position = position + 1
            return 0
        count = self.uvarint()
        if count > TAGS_MAX:
            raise ProtocolError(
                f"{count} tagged fields before byte {self.position}, expected {TAGS_MAX} at most"
            )
        return count

    def tag_end(self) -> int:
        """Read the size of a tagged field; return the position of its end."""
        size_bytes = self.uvarint()
        end = self.position + size_bytes
        if end > self.end:
            raise truncated(f"a tagged field of {size_bytes} bytes", self.position, self.end)
        return end

    def finish_tag(self, end: int) -> None:
        """Raise ProtocolError if a known tagged field was longer or shorter than its size."""
        if self.position != end:
            raise ProtocolError(f"tagged field ends at byte {self.position}, announced was {end}")


def uvarint_in(data: bytes | bytearray, at: int, end: int) -> tuple[int, int]:
    """Return the varint at `at` and the position behind it. It ends at `end` or after five bytes at
    the latest: the bytes may be cut or damaged.
    """
    value = shift = 0
    while at < end and shift < 7 * UVARINT_BYTES_MAX:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, at
