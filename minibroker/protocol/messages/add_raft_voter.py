# fmt: off
# ruff: noqa: E501
"""AddRaftVoter: key 80, versions 0 to 1.

Generated from protocol_specs/apis/80_add_raft_voter.json by `python -m minibroker.codegen`; do not edit.
"""

from struct import Struct

from minibroker.protocol.message import Message, not_carried
from minibroker.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_II = Struct(">ii")

class Listener(Message):
    """Used above."""

    __slots__ = ("name", "host", "port")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name: str = name
        """"""
        self.host: str = host
        """"""
        self.port: int = port
        """"""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Listener":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.host = reader.compact_string()
        self.port = reader.uint16()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.append(b"\x00")


class AddRaftVoterRequest(Message):
    """Request of AddRaftVoter."""

    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "ack_when_committed")
    API_KEY = 80
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] | None = None,
        ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        """"""
        self.timeout_ms: int = timeout_ms
        """"""
        self.voter_id: int = voter_id
        """"""
        self.voter_directory_id: bytes = voter_directory_id
        """"""
        self.listeners: list[Listener] = [] if listeners is None else listeners
        """"""
        self.ack_when_committed: bool = ack_when_committed
        """v1+. """

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddRaftVoterRequest":
        self = cls.__new__(cls)
        self.cluster_id = reader.compact_nullable_string()
        self.timeout_ms, self.voter_id = reader.fixed(_II)
        self.voter_directory_id = reader.uuid()
        count = reader.compact_array_count()
        listeners: list[Listener] = []
        for _ in range(count):
            listeners.append(Listener.read(reader, version))
        self.listeners = listeners
        if version >= 1:
            self.ack_when_committed = reader.boolean()
        else:
            self.ack_when_committed = True
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.cluster_id)
        writer.append(_II.pack(self.timeout_ms, self.voter_id))
        writer.uuid(self.voter_directory_id)
        writer.compact_array_count(len(self.listeners))
        for listener in self.listeners:
            listener.write(writer, version)
        if version >= 1:
            writer.boolean(self.ack_when_committed)
        else:
            if not self.ack_when_committed:
                raise not_carried("AddRaftVoterRequest", "ack_when_committed", version)
        writer.append(b"\x00")


class AddRaftVoterResponse(Message):
    """Answer of AddRaftVoter."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 80
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """"""
        self.error_code: int = error_code
        """"""
        self.error_message: str | None = error_message
        """"""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddRaftVoterResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")
