"""Messages that carry their own version: an int16, then the body in that version.

This is the form of keys and values of internal topics, control records, producer snapshots, entries
of a transaction index, and the metadata of classic consumers in JoinGroup. In keys of
`__consumer_offsets` the number is the kind of the record: the key class of each kind has its own
numbers, and `version_of` finds the kind.
"""

from typing import Protocol, Self, TypeVar

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.message import Message
from minibroker.kafka.protocol.primitives import Buffer, Reader, Writer


class _Versioned(Protocol):
    """The methods that a generated class adds to the base class below."""

    VERSIONS: tuple[int, int]

    @classmethod
    def read(cls, reader: Reader, version: int) -> Self:
        """Return the message read from its body."""

    def write(self, writer: Writer, version: int) -> None:
        """Write the body."""


M = TypeVar("M", bound=_Versioned)


class VersionedMessage(Message):
    """Base class of the generated keys and values."""

    __slots__ = ()

    def to_bytes(self: _Versioned, version: int) -> bytes:
        """Return two bytes of version (big-endian) and the message. Raises ValueError for an
        unknown version.
        """
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
        """Return the message in `data`, which begins with the version.
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

    @classmethod
    def from_client(cls: type[M], data: Buffer) -> M:
        """Return the message that a client of any age has embedded in a request: a newer version is
        read as the newest one of the class, and bytes behind the message are not looked at.
        Raises ProtocolError for a version below those of the class, and for bytes that do not hold
        the message. Source: Kafka ConsumerProtocol.
        """
        reader = Reader(data)
        version = reader.int16()
        first, last = cls.VERSIONS
        if version < first:
            name = cls.__name__
            raise ProtocolError(f"{name} has versions {first} to {last}, found {version}")
        return cls.read(reader, min(version, last))


def version_of(data: Buffer) -> int:
    """Return the int16 at the start. Raises ProtocolError if there are fewer than two bytes."""
    return Reader(data).int16()
