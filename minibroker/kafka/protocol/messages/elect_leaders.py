# fmt: off
# ruff: noqa: E501
"""ElectLeaders: key 43, versions 0 to 2.

Admin clients have partitions elect their preferred leader, or any live replica; the controller acts (KIP-183).

Versions:
1: Unclean elections too; error for the whole response (KIP-460).
2: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/43_elect_leaders.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class TopicPartitions(Message):
    """Partitions to elect for, grouped by topic; null = all."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 2, False),
        ("partitions", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic: str = topic
        """Topic, by name."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicPartitions":
        self = cls.__new__(cls)
        if version >= 2:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.partitions = reader.numbers(count, "i")
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 2:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        if version >= 2:
            writer.append(b"\x00")


class ElectLeadersRequest(Message):
    """Request of ElectLeaders."""

    __slots__ = ("election_type", "topic_partitions", "timeout_ms")
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("election_type", "int8", 1, 2, False),
        ("topic_partitions", "TopicPartitions", 0, 2, False),
        ("timeout_ms", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None | tuple[()] = (),
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type: int = election_type
        """v1+. 0 = preferred replica, 1 = any live replica even out of sync (data may be lost). v0 means 0."""
        self.topic_partitions: list[TopicPartitions] | None = [] if isinstance(topic_partitions, tuple) else topic_partitions
        """Partitions to elect for, grouped by topic; null = all."""
        self.timeout_ms: int = timeout_ms
        """How long to wait for the elections, in ms."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ElectLeadersRequest":
        self = cls.__new__(cls)
        if version >= 1:
            self.election_type = reader.int8()
        else:
            self.election_type = 0
        if version >= 2:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        topic_partitions: list[TopicPartitions] = []
        for _ in range(count):
            topic_partitions.append(TopicPartitions.read(reader, version))
        self.topic_partitions = topic_partitions if count >= 0 else None
        self.timeout_ms = reader.int32()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int8(self.election_type)
        else:
            if self.election_type != 0:
                raise not_carried("ElectLeadersRequest", "election_type", version)
        if version >= 2:
            writer.compact_array_count(-1 if self.topic_partitions is None else len(self.topic_partitions))
        else:
            writer.array_count(-1 if self.topic_partitions is None else len(self.topic_partitions))
        for topic_partitions in self.topic_partitions or []:
            topic_partitions.write(writer, version)
        writer.int32(self.timeout_ms)
        if version >= 2:
            writer.append(b"\x00")


class PartitionResult(Message):
    """Results by partition."""

    __slots__ = ("partition_id", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("partition_id", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id: int = partition_id
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, …; 0 = a leader was elected."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionResult":
        self = cls.__new__(cls)
        self.partition_id, self.error_code = reader.fixed(_IH)
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_id, self.error_code))
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.append(b"\x00")


class ReplicaElectionResult(Message):
    """Results grouped by topic; partitions with nothing to do are left out when null was asked."""

    __slots__ = ("topic", "partition_result")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 2, False),
        ("partition_result", "PartitionResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] | None = None,
    ) -> None:
        self.topic: str = topic
        """Topic, by name."""
        self.partition_result: list[PartitionResult] = [] if partition_result is None else partition_result
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReplicaElectionResult":
        self = cls.__new__(cls)
        if version >= 2:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partition_result: list[PartitionResult] = []
        for _ in range(count):
            partition_result.append(PartitionResult.read(reader, version))
        self.partition_result = partition_result
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 2:
            writer.compact_array_count(len(self.partition_result))
        else:
            writer.array_count(len(self.partition_result))
        for partition_result in self.partition_result:
            partition_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class ElectLeadersResponse(Message):
    """Answer of ElectLeaders."""

    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("error_code", "error_code", 1, 2, False),
        ("replica_election_results", "ReplicaElectionResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """v1+. CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, …; 0 = see the results."""
        self.replica_election_results: list[ReplicaElectionResult] = [] if replica_election_results is None else replica_election_results
        """Results grouped by topic; partitions with nothing to do are left out when null was asked."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ElectLeadersResponse":
        self = cls.__new__(cls)
        if version >= 1:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.throttle_time_ms = reader.int32()
            self.error_code = 0
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        replica_election_results: list[ReplicaElectionResult] = []
        for _ in range(count):
            replica_election_results.append(ReplicaElectionResult.read(reader, version))
        self.replica_election_results = replica_election_results
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            if self.error_code != 0:
                raise not_carried("ElectLeadersResponse", "error_code", version)
            writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.replica_election_results))
        else:
            writer.array_count(len(self.replica_election_results))
        for replica_election_result in self.replica_election_results:
            replica_election_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")
