"""Messages that carry their own version: an int16 in front, then the body in that version.

Keys and values of the internal topics are written like this, and so are control records, producer
snapshots, the entries of a transaction index and what classic consumers put into JoinGroup. For
keys of `__consumer_offsets` the number in front says which kind of record it is: each kind's key
class has only its own numbers, and `version_of` finds the kind.
"""

from typing import Protocol, Self, TypeVar

from minibroker.errors import ProtocolError
from minibroker.protocol.message import Message
from minibroker.protocol.primitives import Buffer, Reader, Writer


class _Versioned(Protocol):
    """What a generated class adds to the base below."""

    VERSIONS: tuple[int, int]

    @classmethod
    def read(cls, reader: Reader, version: int) -> Self:
        """The body of a message."""

    def write(self, writer: Writer, version: int) -> None:
        """The inverse."""


M = TypeVar("M", bound=_Versioned)


class VersionedMessage(Message):
    """Base of the generated keys and values."""

    __slots__ = ()

    def to_bytes(self: _Versioned, version: int) -> bytes:
        """Two bytes of version (big-endian), then the message. ValueError: no such version."""
        first, last = self.VERSIONS
        if not first <= version <= last:
            name = type(self).__name__
            raise ValueError(f"{name} has versions {first} to {last}, not {version}")
        writer = Writer()
        writer.int16(version)
        self.write(writer, version)
        return writer.to_bytes()

    @classmethod
    def from_bytes(cls: type[M], data: Buffer) -> M:
        """The message behind the version in front of it, all of `data`.

        Raises ProtocolError for a version that the class does not have, for bytes that do not hold
        the message, and for bytes left over.
        """
        reader = Reader(data)
        version = reader.int16()
        first, last = cls.VERSIONS
        if not first <= version <= last:
            name = cls.__name__
            raise ProtocolError(f"{name} has versions {first} to {last}, found {version}")
        message = cls.read(reader, version)
        if reader.remaining:
            raise ProtocolError(f"{reader.remaining} bytes behind a {cls.__name__}")
        return message


def version_of(data: Buffer) -> int:
    """The int16 in front. Raises ProtocolError when there are not even two bytes."""
    return Reader(data).int16()
