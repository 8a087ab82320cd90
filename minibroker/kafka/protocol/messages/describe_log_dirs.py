# fmt: off
# ruff: noqa: E501
"""DescribeLogDirs: key 35, versions 0 to 5.

Admin clients ask one broker what lies in its log directories and how large it is (KIP-113).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).
3: Error for the whole response (KIP-784).
4: Size and free space of the volume (KIP-827).
5: Tells cordoned directories (KIP-1066).

Generated from protocol_specs/apis/35_describe_log_dirs.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")
_IQQZ = Struct(">iqq?")
_QQ = Struct(">qq")
_QQZ = Struct(">qq?")


class DescribableLogDirTopic(Message):
    """Partitions to report on, grouped by topic; null = everything."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 5, False),
        ("partitions", "int32", 0, 5, False),
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
    def read(cls, reader: Reader, version: int) -> "DescribableLogDirTopic":
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


class DescribeLogDirsRequest(Message):
    """Request of DescribeLogDirs."""

    __slots__ = ("topics",)
    API_KEY = 35
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("topics", "DescribableLogDirTopic", 0, 5, False),
    )

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None | tuple[()] = (),
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if isinstance(topics, tuple) else topics
        """Partitions to report on, grouped by topic; null = everything."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeLogDirsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        topics: list[DescribableLogDirTopic] = []
        for _ in range(count):
            topics.append(DescribableLogDirTopic.read(reader, version))
        self.topics = topics if count >= 0 else None
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(-1 if self.topics is None else len(self.topics))
        else:
            writer.array_count(-1 if self.topics is None else len(self.topics))
        for describable_log_dir_topic in self.topics or []:
            describable_log_dir_topic.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DescribeLogDirsPartition(Message):
    """Replicas found there, by partition."""

    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 5, False),
        ("partition_size", "int64", 0, 5, False),
        ("offset_lag", "int64", 0, 5, False),
        ("is_future_key", "bool", 0, 5, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.partition_size: int = partition_size
        """Bytes of all log segments of the replica."""
        self.offset_lag: int = offset_lag
        """Records behind: high watermark minus log end, or for a future log current end minus its own end."""
        self.is_future_key: bool = is_future_key
        """True for the copy that AlterReplicaLogDirs fills and will swap in."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeLogDirsPartition":
        self = cls.__new__(cls)
        (
            self.partition_index,
            self.partition_size,
            self.offset_lag,
            self.is_future_key,
        ) = reader.fixed(_IQQZ)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQQZ.pack(
            self.partition_index,
            self.partition_size,
            self.offset_lag,
            self.is_future_key,
        ))
        if version >= 2:
            writer.append(b"\x00")


class DescribeLogDirsTopic(Message):
    """Replicas found there, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 5, False),
        ("partitions", "DescribeLogDirsPartition", 0, 5, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] | None = None,
    ) -> None:
        self.name: str = name
        """Topic that has replicas in the directory."""
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is None else partitions
        """Replicas found there, by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeLogDirsTopic":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[DescribeLogDirsPartition] = []
        for _ in range(count):
            partitions.append(DescribeLogDirsPartition.read(reader, version))
        self.partitions = partitions
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
        for describe_log_dirs_partition in self.partitions:
            describe_log_dirs_partition.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DescribeLogDirsResult(Message):
    """One entry per entry of log.dirs."""

    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 5, False),
        ("log_dir", "string", 0, 5, False),
        ("topics", "DescribeLogDirsTopic", 0, 5, False),
        ("total_bytes", "int64", 4, 5, False),
        ("usable_bytes", "int64", 4, 5, False),
        ("is_cordoned", "bool", 5, 5, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] | None = None,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code: int = error_code
        """KAFKA_STORAGE_ERROR for a failed directory; 0 for a healthy one."""
        self.log_dir: str = log_dir
        """Entry of log.dirs, made absolute."""
        self.topics: list[DescribeLogDirsTopic] = [] if topics is None else topics
        """Replicas found there, grouped by topic."""
        self.total_bytes: int = total_bytes
        """v4+. Bytes of the volume the directory lies on; -1 when unknown."""
        self.usable_bytes: int = usable_bytes
        """v4+. Free bytes of that volume for this process; -1 when unknown."""
        self.is_cordoned: bool = is_cordoned
        """v5+. True when no new replicas are placed there (KIP-1066)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeLogDirsResult":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.log_dir = reader.compact_string()
        else:
            self.log_dir = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[DescribeLogDirsTopic] = []
        for _ in range(count):
            topics.append(DescribeLogDirsTopic.read(reader, version))
        self.topics = topics
        if version >= 5:
            self.total_bytes, self.usable_bytes, self.is_cordoned = reader.fixed(_QQZ)
        elif version >= 4:
            self.total_bytes, self.usable_bytes = reader.fixed(_QQ)
            self.is_cordoned = False
        else:
            self.total_bytes = -1
            self.usable_bytes = -1
            self.is_cordoned = False
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_string(self.log_dir)
        else:
            writer.string(self.log_dir)
        if version >= 2:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for describe_log_dirs_topic in self.topics:
            describe_log_dirs_topic.write(writer, version)
        if version >= 5:
            writer.append(_QQZ.pack(self.total_bytes, self.usable_bytes, self.is_cordoned))
        elif version >= 4:
            writer.append(_QQ.pack(self.total_bytes, self.usable_bytes))
        if version >= 2:
            writer.append(b"\x00")


class DescribeLogDirsResponse(Message):
    """Answer of DescribeLogDirs."""

    __slots__ = ("throttle_time_ms", "error_code", "results")
    API_KEY = 35
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 5, False),
        ("error_code", "error_code", 3, 5, False),
        ("results", "DescribeLogDirsResult", 0, 5, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """v3+. CLUSTER_AUTHORIZATION_FAILED or another error for the whole response; 0 otherwise."""
        self.results: list[DescribeLogDirsResult] = [] if results is None else results
        """One entry per entry of log.dirs."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeLogDirsResponse":
        self = cls.__new__(cls)
        if version >= 3:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.throttle_time_ms = reader.int32()
            self.error_code = 0
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        results: list[DescribeLogDirsResult] = []
        for _ in range(count):
            results.append(DescribeLogDirsResult.read(reader, version))
        self.results = results
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.results))
        else:
            writer.array_count(len(self.results))
        for describe_log_dirs_result in self.results:
            describe_log_dirs_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")
