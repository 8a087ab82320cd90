# fmt: off
# ruff: noqa: E501
"""WriteTxnMarkers: key 27, versions 0 to 2.

The transaction coordinator has partition leaders append commit or abort markers; between brokers only (KIP-98).

Versions:
1: Flexible encoding (KIP-482).
2: Transaction version of each marker (KIP-1228).

Generated from protocol_specs/apis/27_write_txn_markers.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IB = Struct(">ib")
_IH = Struct(">ih")
_QHZ = Struct(">qh?")


class WritableTxnMarkerTopic(Message):
    """Partitions to mark, grouped by topic."""

    __slots__ = ("name", "partition_indexes")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 2, False),
        ("partition_indexes", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WritableTxnMarkerTopic":
        self = cls.__new__(cls)
        if version >= 1:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.partition_indexes = reader.numbers(count, "i")
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 1:
            writer.compact_array_count(len(self.partition_indexes))
        else:
            writer.array_count(len(self.partition_indexes))
        writer.numbers(self.partition_indexes, "i")
        if version >= 1:
            writer.append(b"\x00")


class WritableTxnMarker(Message):
    """Transactions that ended."""

    __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version")
    JSON_FIELDS: JsonFields = (
        ("producer_id", "int64", 0, 2, False),
        ("producer_epoch", "int16", 0, 2, False),
        ("transaction_result", "bool", 0, 2, False),
        ("topics", "WritableTxnMarkerTopic", 0, 2, False),
        ("coordinator_epoch", "int32", 0, 2, False),
        ("transaction_version", "int8", 2, 2, False),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] | None = None,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        """Producer whose transaction ended."""
        self.producer_epoch: int = producer_epoch
        """Epoch of that producer; goes into the marker batch."""
        self.transaction_result: bool = transaction_result
        """True = commit marker, false = abort marker."""
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is None else topics
        """Partitions to mark, grouped by topic."""
        self.coordinator_epoch: int = coordinator_epoch
        """Leader epoch of the coordinator's __transaction_state partition; an older one is fenced."""
        self.transaction_version: int = transaction_version
        """v2+. 2 = marker epoch must be above the one the partition knows, 0 or 1 = not below it (KIP-1228)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WritableTxnMarker":
        self = cls.__new__(cls)
        self.producer_id, self.producer_epoch, self.transaction_result = reader.fixed(_QHZ)
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[WritableTxnMarkerTopic] = []
        for _ in range(count):
            topics.append(WritableTxnMarkerTopic.read(reader, version))
        self.topics = topics
        if version >= 2:
            self.coordinator_epoch, self.transaction_version = reader.fixed(_IB)
        else:
            self.coordinator_epoch = reader.int32()
            self.transaction_version = 0
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QHZ.pack(
            self.producer_id,
            self.producer_epoch,
            self.transaction_result,
        ))
        if version >= 1:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for writable_txn_marker_topic in self.topics:
            writable_txn_marker_topic.write(writer, version)
        if version >= 2:
            writer.append(_IB.pack(self.coordinator_epoch, self.transaction_version))
        else:
            writer.int32(self.coordinator_epoch)
        if version >= 1:
            writer.append(b"\x00")


class WriteTxnMarkersRequest(Message):
    """Request of WriteTxnMarkers."""

    __slots__ = ("markers",)
    API_KEY = 27
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 1
    JSON_FIELDS: JsonFields = (
        ("markers", "WritableTxnMarker", 0, 2, False),
    )

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] | None = None,
    ) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is None else markers
        """Transactions that ended."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WriteTxnMarkersRequest":
        self = cls.__new__(cls)
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        markers: list[WritableTxnMarker] = []
        for _ in range(count):
            markers.append(WritableTxnMarker.read(reader, version))
        self.markers = markers
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_count(len(self.markers))
        else:
            writer.array_count(len(self.markers))
        for writable_txn_marker in self.markers:
            writable_txn_marker.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")


class WritableTxnMarkerPartitionResult(Message):
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
        """TRANSACTION_COORDINATOR_FENCED, INVALID_PRODUCER_EPOCH, NOT_LEADER_OR_FOLLOWER, …; 0 = marker written."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WritableTxnMarkerPartitionResult":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 1:
            writer.append(b"\x00")


class WritableTxnMarkerTopicResult(Message):
    """Results grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 2, False),
        ("partitions", "WritableTxnMarkerPartitionResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WritableTxnMarkerTopicResult":
        self = cls.__new__(cls)
        if version >= 1:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[WritableTxnMarkerPartitionResult] = []
        for _ in range(count):
            partitions.append(WritableTxnMarkerPartitionResult.read(reader, version))
        self.partitions = partitions
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 1:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for writable_txn_marker_partition_result in self.partitions:
            writable_txn_marker_partition_result.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")


class WritableTxnMarkerResult(Message):
    """Results by transaction."""

    __slots__ = ("producer_id", "topics")
    JSON_FIELDS: JsonFields = (
        ("producer_id", "int64", 0, 2, False),
        ("topics", "WritableTxnMarkerTopicResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] | None = None,
    ) -> None:
        self.producer_id: int = producer_id
        """Producer these results belong to."""
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is None else topics
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WritableTxnMarkerResult":
        self = cls.__new__(cls)
        self.producer_id = reader.int64()
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[WritableTxnMarkerTopicResult] = []
        for _ in range(count):
            topics.append(WritableTxnMarkerTopicResult.read(reader, version))
        self.topics = topics
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int64(self.producer_id)
        if version >= 1:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for writable_txn_marker_topic_result in self.topics:
            writable_txn_marker_topic_result.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")


class WriteTxnMarkersResponse(Message):
    """Answer of WriteTxnMarkers."""

    __slots__ = ("markers",)
    API_KEY = 27
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 1
    JSON_FIELDS: JsonFields = (
        ("markers", "WritableTxnMarkerResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] | None = None,
    ) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is None else markers
        """Results by transaction."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WriteTxnMarkersResponse":
        self = cls.__new__(cls)
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        markers: list[WritableTxnMarkerResult] = []
        for _ in range(count):
            markers.append(WritableTxnMarkerResult.read(reader, version))
        self.markers = markers
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_count(len(self.markers))
        else:
            writer.array_count(len(self.markers))
        for writable_txn_marker_result in self.markers:
            writable_txn_marker_result.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")
