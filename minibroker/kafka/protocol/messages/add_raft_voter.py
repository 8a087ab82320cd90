# fmt: off
# ruff: noqa: E501
"""AddRaftVoter: key 80, versions 0 to 1.

Adds a voter to the KRaft quorum (KIP-853). A ZooKeeper-mode broker does not serve it.

Versions:
1: Caller chooses whether to wait for the commit (KIP-1186).

Generated from protocol_specs/apis/80_add_raft_voter.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_II = Struct(">ii")


class Listener(Message):
    """Controller listeners of the new voter."""

    __slots__ = ("name", "host", "port")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 1, False),
        ("host", "string", 0, 1, False),
        ("port", "uint16", 0, 1, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name: str = name
        """Listener, by name."""
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""

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
    JSON_FIELDS: JsonFields = (
        ("cluster_id", "string", 0, 1, False),
        ("timeout_ms", "int32", 0, 1, False),
        ("voter_id", "int32", 0, 1, False),
        ("voter_directory_id", "uuid", 0, 1, False),
        ("listeners", "Listener", 0, 1, False),
        ("ack_when_committed", "bool", 1, 1, False),
    )

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
        """Cluster meant; null skips the check, another one is INCONSISTENT_CLUSTER_ID."""
        self.timeout_ms: int = timeout_ms
        """How long to wait for the change, in ms."""
        self.voter_id: int = voter_id
        """node.id of the new voter."""
        self.voter_directory_id: bytes = voter_directory_id
        """Id of the metadata directory of the new voter."""
        self.listeners: list[Listener] = [] if listeners is None else listeners
        """Controller listeners of the new voter."""
        self.ack_when_committed: bool = ack_when_committed
        """v1+. True: answer once the voter set is committed; false: once the leader has written it."""

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
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """DUPLICATE_VOTER, INCONSISTENT_CLUSTER_ID, REQUEST_TIMED_OUT, …; 0 = added."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""

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
