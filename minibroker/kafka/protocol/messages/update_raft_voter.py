# fmt: off
# ruff: noqa: E501
"""UpdateRaftVoter: key 82, versions 0 to 0.

A KRaft voter tells the leader its new addresses and versions; between controllers only (KIP-853).

Generated from protocol_specs/apis/82_update_raft_voter.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_HH = Struct(">hh")
_IH = Struct(">ih")
_II = Struct(">ii")


class Listener(Message):
    """New controller listeners of the voter."""

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


class KRaftVersionFeature(Message):
    """kraft.version levels the voter can run."""

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
        """Lowest kraft.version it can run."""
        self.max_supported_version: int = max_supported_version
        """Highest kraft.version it can run."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "KRaftVersionFeature":
        self = cls.__new__(cls)
        self.min_supported_version, self.max_supported_version = reader.fixed(_HH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HH.pack(self.min_supported_version, self.max_supported_version))
        writer.append(b"\x00")


class UpdateRaftVoterRequest(Message):
    """Request of UpdateRaftVoter."""

    __slots__ = ("cluster_id", "current_leader_epoch", "voter_id", "voter_directory_id", "listeners", "k_raft_version_feature")
    API_KEY = 82
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("cluster_id", "string", 0, 0, False),
        ("current_leader_epoch", "int32", 0, 0, False),
        ("voter_id", "int32", 0, 0, False),
        ("voter_directory_id", "uuid", 0, 0, False),
        ("listeners", "Listener", 0, 0, False),
        ("k_raft_version_feature", "KRaftVersionFeature", 0, 0, False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] | None = None,
        k_raft_version_feature: KRaftVersionFeature | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        """Cluster meant; null skips the check, another one is INCONSISTENT_CLUSTER_ID."""
        self.current_leader_epoch: int = current_leader_epoch
        """Quorum epoch the sender believes in, for fencing; -1 when unknown."""
        self.voter_id: int = voter_id
        """node.id of the voter that changed."""
        self.voter_directory_id: bytes = voter_directory_id
        """Id of its metadata directory."""
        self.listeners: list[Listener] = [] if listeners is None else listeners
        """New controller listeners of the voter."""
        self.k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature
        """kraft.version levels the voter can run."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateRaftVoterRequest":
        self = cls.__new__(cls)
        self.cluster_id = reader.compact_nullable_string()
        self.current_leader_epoch, self.voter_id = reader.fixed(_II)
        self.voter_directory_id = reader.uuid()
        count = reader.compact_array_count()
        listeners: list[Listener] = []
        for _ in range(count):
            listeners.append(Listener.read(reader, version))
        self.listeners = listeners
        self.k_raft_version_feature = KRaftVersionFeature.read(reader, version)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.cluster_id)
        writer.append(_II.pack(self.current_leader_epoch, self.voter_id))
        writer.uuid(self.voter_directory_id)
        writer.compact_array_count(len(self.listeners))
        for listener in self.listeners:
            listener.write(writer, version)
        self.k_raft_version_feature.write(writer, version)
        writer.append(b"\x00")


class CurrentLeader(Message):
    """Tagged: the current leader of the quorum."""

    __slots__ = ("leader_id", "leader_epoch", "host", "port")
    JSON_FIELDS: JsonFields = (
        ("leader_id", "int32", 0, 0, False),
        ("leader_epoch", "int32", 0, 0, False),
        ("host", "string", 0, 0, False),
        ("port", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.leader_id: int = leader_id
        """node.id of the quorum leader; -1 when not known."""
        self.leader_epoch: int = leader_epoch
        """Quorum epoch; -1 when not known."""
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CurrentLeader":
        self = cls.__new__(cls)
        self.leader_id, self.leader_epoch = reader.fixed(_II)
        self.host = reader.compact_string()
        self.port = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_II.pack(self.leader_id, self.leader_epoch))
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.append(b"\x00")


class UpdateRaftVoterResponse(Message):
    """Answer of UpdateRaftVoter."""

    __slots__ = ("throttle_time_ms", "error_code", "current_leader")
    API_KEY = 82
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("current_leader", "CurrentLeader", 0, 0, True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """VOTER_NOT_FOUND, FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, …; 0 = recorded."""
        self.current_leader: CurrentLeader | None = current_leader
        """Tagged: the current leader of the quorum."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateRaftVoterResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.current_leader = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.current_leader = CurrentLeader.read(reader, version)
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        tagged: list[tuple[int, Writer]] = []
        if self.current_leader is not None and self.current_leader != CurrentLeader():
            value = Writer()
            self.current_leader.write(value, version)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")
