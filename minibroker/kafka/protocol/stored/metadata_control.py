# fmt: off
# ruff: noqa: E501
"""Control records of a KRaft controller's metadata log and of its snapshots.

Generated from protocol_specs/stored/metadata_control.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_HH = Struct(">hh")
_HQ = Struct(">hq")


class SnapshotHeaderRecord(Message):
    """First record of a snapshot."""

    __slots__ = ("version", "last_contained_log_timestamp")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("version", "int16", 0, 0, False),
        ("last_contained_log_timestamp", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version: int = version
        """Version of the record's own format."""
        self.last_contained_log_timestamp: int = last_contained_log_timestamp
        """Newest timestamp in the snapshot, ms since the epoch."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SnapshotHeaderRecord":
        self = cls.__new__(cls)
        self.version, self.last_contained_log_timestamp = reader.fixed(_HQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HQ.pack(self.version, self.last_contained_log_timestamp))
        writer.append(b"\x00")


class SnapshotFooterRecord(Message):
    """Last record of a snapshot."""

    __slots__ = ("version",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("version", "int16", 0, 0, False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
    ) -> None:
        self.version: int = version
        """Version of the record's own format."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SnapshotFooterRecord":
        self = cls.__new__(cls)
        self.version = reader.int16()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.version)
        writer.append(b"\x00")


class KRaftVersionRecord(Message):
    """The version of the quorum's protocol."""

    __slots__ = ("version", "k_raft_version")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("version", "int16", 0, 0, False),
        ("k_raft_version", "int16", 0, 0, False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        k_raft_version: int = 0,
    ) -> None:
        self.version: int = version
        """Version of the record's own format."""
        self.k_raft_version: int = k_raft_version
        """kraft.version of the quorum."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "KRaftVersionRecord":
        self = cls.__new__(cls)
        self.version, self.k_raft_version = reader.fixed(_HH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HH.pack(self.version, self.k_raft_version))
        writer.append(b"\x00")


class Endpoint(Message):
    """Listeners of the voter."""

    __slots__ = ("name", "host", "port")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("host", "string", 0, 0, False),
        ("port", "uint16", 0, 0, False),
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
        """Host that clients of the listener connect to."""
        self.port: int = port
        """Port of the listener."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Endpoint":
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


class KRaftVersionFeature(Message):
    """Versions of kraft.version that the voter supports."""

    __slots__ = ("min_supported_version", "max_supported_version")
    JSON_FIELDS: JsonFields = (
        ("min_supported_version", "int16", 0, 0, False),
        ("max_supported_version", "int16", 0, 0, False),
    )

    def __init__(
        self,
        *,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.min_supported_version: int = min_supported_version
        """Lowest version that the node supports."""
        self.max_supported_version: int = max_supported_version
        """Highest version that the node supports."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "KRaftVersionFeature":
        self = cls.__new__(cls)
        self.min_supported_version, self.max_supported_version = reader.fixed(_HH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HH.pack(self.min_supported_version, self.max_supported_version))
        writer.append(b"\x00")


class Voter(Message):
    """Voters of the quorum."""

    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "k_raft_version_feature")
    JSON_FIELDS: JsonFields = (
        ("voter_id", "int32", 0, 0, False),
        ("voter_directory_id", "uuid", 0, 0, False),
        ("endpoints", "Endpoint", 0, 0, False),
        ("k_raft_version_feature", "KRaftVersionFeature", 0, 0, False),
    )

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        endpoints: list[Endpoint] | None = None,
        k_raft_version_feature: KRaftVersionFeature | None = None,
    ) -> None:
        self.voter_id: int = voter_id
        """Voter, by node id."""
        self.voter_directory_id: bytes = voter_directory_id
        """Log directory of the voter's metadata log, by id."""
        self.endpoints: list[Endpoint] = [] if endpoints is None else endpoints
        """Listeners of the voter."""
        self.k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature
        """Versions of kraft.version that the voter supports."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Voter":
        self = cls.__new__(cls)
        self.voter_id = reader.int32()
        self.voter_directory_id = reader.uuid()
        count = reader.compact_array_count()
        endpoints: list[Endpoint] = []
        for _ in range(count):
            endpoints.append(Endpoint.read(reader, version))
        self.endpoints = endpoints
        self.k_raft_version_feature = KRaftVersionFeature.read(reader, version)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.voter_id)
        writer.uuid(self.voter_directory_id)
        writer.compact_array_count(len(self.endpoints))
        for endpoint in self.endpoints:
            endpoint.write(writer, version)
        self.k_raft_version_feature.write(writer, version)
        writer.append(b"\x00")


class VotersRecord(Message):
    """The voters of the quorum (KIP-853)."""

    __slots__ = ("version", "voters")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("version", "int16", 0, 0, False),
        ("voters", "Voter", 0, 0, False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[Voter] | None = None,
    ) -> None:
        self.version: int = version
        """Version of the record's own format."""
        self.voters: list[Voter] = [] if voters is None else voters
        """Voters of the quorum."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "VotersRecord":
        self = cls.__new__(cls)
        self.version = reader.int16()
        count = reader.compact_array_count()
        voters: list[Voter] = []
        for _ in range(count):
            voters.append(Voter.read(reader, version))
        self.voters = voters
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.version)
        writer.compact_array_count(len(self.voters))
        for voter in self.voters:
            voter.write(writer, version)
        writer.append(b"\x00")


RECORDS = {
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
"""Type → class."""
