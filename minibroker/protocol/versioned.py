"""Messages that carry their own version: an int16 in front, then the body in that version.

Keys and values of the internal topics are written like this, and so are control records and the
entries of a segment's transaction index. For keys of `__consumer_offsets` the number in front says
which kind of record it is, and each kind's key class lists only its own numbers.
"""

from typing import Protocol, Self, TypeVar

from minibroker.errors import ProtocolError
from minibroker.protocol.primitives import Buffer, Reader, Writer


class Versioned(Protocol):
    """A generated message class, as far as it matters here."""

    VERSIONS: tuple[int, int]

    @classmethod
    def read(cls, reader: Reader, version: int) -> Self:
        """The body of a message."""

    def write(self, writer: Writer, version: int) -> None:
        """The inverse."""


M = TypeVar("M", bound=Versioned)


def version_of(data: Buffer) -> int:
    """The int16 in front. Raises ProtocolError when there are not even two bytes."""
    return Reader(data).int16()


def encode_versioned(message: Versioned, version: int) -> bytes:
    """Two bytes of version (big-endian), then the message. ValueError: no such version."""
    first, last = message.VERSIONS
    if not first <= version <= last:
        raise ValueError(f"{type(message).__name__} has versions {first} to {last}, not {version}")
    writer = Writer()
    writer.int16(version)
    message.write(writer, version)
    return writer.to_bytes()


def decode_versioned(message_class: type[M], data: Buffer) -> M:
    """The message behind the version in front of it, all of `data`.

    Raises ProtocolError for a version that the class does not have, for bytes that do not hold the
    message, and for bytes left over.
    """
    reader = Reader(data)
    version = reader.int16()
    first, last = message_class.VERSIONS
    if not first <= version <= last:
        name = message_class.__name__
        raise ProtocolError(f"{name} has versions {first} to {last}, found {version}")
    message = message_class.read(reader, version)
    if reader.remaining:
        raise ProtocolError(f"{reader.remaining} bytes behind a {message_class.__name__}")
    return message
