"""A part of an answer as bytes; it stands in the place of the message that it encodes.

It serves parts that are written more than once, and long lists that are encoded in slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.protocol.primitives import Writer

if TYPE_CHECKING:
    from typing import Protocol

    class Struct(Protocol):
        """A generated message, or a part of one."""

        def write(self, writer: Writer, version: int) -> None:
            """Append the bytes of this version."""


class EncodedStruct:
    """The bytes of one struct; constant after construction."""

    __slots__ = ("data", "error_code")

    def __init__(self, message: Struct, version: int, error_code: int) -> None:
        """Encode `message`. `error_code` is that of the struct, for the request log; 0 if it has
        none.
        """
        writer = Writer()
        message.write(writer, version)
        self.data = writer.to_bytes()
        self.error_code = error_code

    def write(self, writer: Writer, version: int) -> None:
        """Append the bytes; `version` has to be the one of the constructor."""
        writer.append(self.data)
