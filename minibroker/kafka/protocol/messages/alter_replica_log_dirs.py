# fmt: off
# ruff: noqa: E501
"""AlterReplicaLogDirs: key 34, versions 0 to 2.

Admin clients move replicas to another log directory of the same broker (KIP-113).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/34_alter_replica_log_dirs.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class AlterReplicaLogDirTopic(Message):
    """Replicas that shall move there, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 2, False),
        ("partitions", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterReplicaLogDirTopic":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
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
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        if version >= 2:
            writer.append(b"\x00")


class AlterReplicaLogDir(Message):
    """Target directories, each with what shall move there."""

    __slots__ = ("path", "topics")
    JSON_FIELDS: JsonFields = (
        ("path", "string", 0, 2, False),
        ("topics", "AlterReplicaLogDirTopic", 0, 2, False),
    )

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] | None = None,
    ) -> None:
        self.path: str = path
        """Entry of log.dirs to move to; unknown = LOG_DIR_NOT_FOUND."""
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is None else topics
        """Replicas that shall move there, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterReplicaLogDir":
        self = cls.__new__(cls)
        if version >= 2:
            self.path = reader.compact_string()
        else:
            self.path = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[AlterReplicaLogDirTopic] = []
        for _ in range(count):
            topics.append(AlterReplicaLogDirTopic.read(reader, version))
        self.topics = topics
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.path)
        else:
            writer.string(self.path)
        if version >= 2:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for alter_replica_log_dir_topic in self.topics:
            alter_replica_log_dir_topic.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class AlterReplicaLogDirsRequest(Message):
    """Request of AlterReplicaLogDirs."""

    __slots__ = ("dirs",)
    API_KEY = 34
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("dirs", "AlterReplicaLogDir", 0, 2, False),
    )

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] | None = None,
    ) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is None else dirs
        """Target directories, each with what shall move there."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterReplicaLogDirsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        dirs: list[AlterReplicaLogDir] = []
        for _ in range(count):
            dirs.append(AlterReplicaLogDir.read(reader, version))
        self.dirs = dirs
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.dirs))
        else:
            writer.array_count(len(self.dirs))
        for alter_replica_log_dir in self.dirs:
            alter_replica_log_dir.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class AlterReplicaLogDirPartitionResult(Message):
    """Results by partition."""

    __slots__ = ("partition_index", "error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, REPLICA_NOT_AVAILABLE, …; 0 = move accepted."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterReplicaLogDirPartitionResult":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 2:
            writer.append(b"\x00")


class AlterReplicaLogDirTopicResult(Message):
    """Results grouped by topic."""

    __slots__ = ("topic_name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 2, False),
        ("partitions", "AlterReplicaLogDirPartitionResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterReplicaLogDirTopicResult":
        self = cls.__new__(cls)
        if version >= 2:
            self.topic_name = reader.compact_string()
        else:
            self.topic_name = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[AlterReplicaLogDirPartitionResult] = []
        for _ in range(count):
            partitions.append(AlterReplicaLogDirPartitionResult.read(reader, version))
        self.partitions = partitions
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        if version >= 2:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for alter_replica_log_dir_partition_result in self.partitions:
            alter_replica_log_dir_partition_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class AlterReplicaLogDirsResponse(Message):
    """Answer of AlterReplicaLogDirs."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 34
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("results", "AlterReplicaLogDirTopicResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is None else results
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterReplicaLogDirsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        results: list[AlterReplicaLogDirTopicResult] = []
        for _ in range(count):
            results.append(AlterReplicaLogDirTopicResult.read(reader, version))
        self.results = results
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.results))
        else:
            writer.array_count(len(self.results))
        for alter_replica_log_dir_topic_result in self.results:
            alter_replica_log_dir_topic_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")
