# fmt: off
# ruff: noqa: E501
"""RemoveRaftVoter: key 81, versions 0 to 0.

Removes a voter from the KRaft quorum (KIP-853). A ZooKeeper-mode broker does not serve it.

Generated from protocol_specs/apis/81_remove_raft_voter.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")


class RemoveRaftVoterRequest(Message):
    """Request of RemoveRaftVoter."""

    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")
    API_KEY = 81
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("cluster_id", "string", 0, 0, False),
        ("voter_id", "int32", 0, 0, False),
        ("voter_directory_id", "uuid", 0, 0, False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        """Cluster meant; null skips the check, another one is INCONSISTENT_CLUSTER_ID."""
        self.voter_id: int = voter_id
        """node.id of the voter to remove."""
        self.voter_directory_id: bytes = voter_directory_id
        """Id of its metadata directory: a voter is the pair of both."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoveRaftVoterRequest":
        self = cls.__new__(cls)
        self.cluster_id = reader.compact_nullable_string()
        self.voter_id = reader.int32()
        self.voter_directory_id = reader.uuid()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.cluster_id)
        writer.int32(self.voter_id)
        writer.uuid(self.voter_directory_id)
        writer.append(b"\x00")


class RemoveRaftVoterResponse(Message):
    """Answer of RemoveRaftVoter."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 81
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
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
        """VOTER_NOT_FOUND, INCONSISTENT_CLUSTER_ID, REQUEST_TIMED_OUT, …; 0 = removed."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoveRaftVoterResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")
