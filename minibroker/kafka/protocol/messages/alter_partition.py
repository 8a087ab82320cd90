# fmt: off
# ruff: noqa: E501
"""AlterPartition: key 56, versions 0 to 3.

A partition leader proposes a new ISR to the controller; between brokers only (KIP-497).

Versions:
1: Leader recovery state (KIP-704).
2: Topics are named by id; INELIGIBLE_REPLICA, NEW_LEADER_ELECTED possible (KIP-841).
3: Broker epoch beside each ISR member (KIP-903).

Generated from protocol_specs/apis/56_alter_partition.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_BI = Struct(">bi")
_IH = Struct(">ih")
_IHII = Struct(">ihii")
_II = Struct(">ii")
_IQ = Struct(">iq")


class BrokerState(Message):
    """Brokers that shall be in the ISR; from v3 on."""

    __slots__ = ("broker_id", "broker_epoch")
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 3, 3, False),
        ("broker_epoch", "int64", 3, 3, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker that shall be in the ISR."""
        self.broker_epoch: int = broker_epoch
        """Epoch of its registration, as its fetches told; -1 = not checked."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "BrokerState":
        self = cls.__new__(cls)
        self.broker_id, self.broker_epoch = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.broker_id, self.broker_epoch))
        writer.append(b"\x00")


class RequestPartitionData(Message):
    """One proposal per partition."""

    __slots__ = ("partition_index", "leader_epoch", "new_isr", "new_isr_with_epochs", "leader_recovery_state", "partition_epoch")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 3, False),
        ("leader_epoch", "int32", 0, 3, False),
        ("new_isr", "int32", 0, 2, False),
        ("new_isr_with_epochs", "BrokerState", 3, 3, False),
        ("leader_recovery_state", "int8", 1, 3, False),
        ("partition_epoch", "int32", 0, 3, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] | None = None,
        new_isr_with_epochs: list[BrokerState] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch the sender leads under; an older one is FENCED_LEADER_EPOCH."""
        self.new_isr: list[int] = [] if new_isr is None else new_isr
        """v0-2. Broker ids that shall be in the ISR; up to v2."""
        self.new_isr_with_epochs: list[BrokerState] = [] if new_isr_with_epochs is None else new_isr_with_epochs
        """v3+. Brokers that shall be in the ISR; from v3 on."""
        self.leader_recovery_state: int = leader_recovery_state
        """v1+. 0 = recovered, 1 = still recovering after an unclean election."""
        self.partition_epoch: int = partition_epoch
        """Version of the partition state the proposal builds on (ZooKeeper: znode version)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RequestPartitionData":
        self = cls.__new__(cls)
        self.partition_index, self.leader_epoch = reader.fixed(_II)
        if version >= 3:
            self.new_isr = []
        else:
            count = reader.compact_array_count()
            self.new_isr = reader.numbers(count, "i")
        if version >= 3:
            count = reader.compact_array_count()
            new_isr_with_epochs: list[BrokerState] = []
            for _ in range(count):
                new_isr_with_epochs.append(BrokerState.read(reader, version))
            self.new_isr_with_epochs = new_isr_with_epochs
        else:
            self.new_isr_with_epochs = []
        if version >= 1:
            self.leader_recovery_state, self.partition_epoch = reader.fixed(_BI)
        else:
            self.partition_epoch = reader.int32()
            self.leader_recovery_state = 0
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_II.pack(self.partition_index, self.leader_epoch))
        if version >= 3:
            if self.new_isr:
                raise not_carried("RequestPartitionData", "new_isr", version)
        else:
            writer.compact_array_count(len(self.new_isr))
            writer.numbers(self.new_isr, "i")
        if version >= 3:
            writer.compact_array_count(len(self.new_isr_with_epochs))
            for broker_state in self.new_isr_with_epochs:
                broker_state.write(writer, version)
        else:
            if self.new_isr_with_epochs:
                raise not_carried("RequestPartitionData", "new_isr_with_epochs", version)
        if version >= 1:
            writer.append(_BI.pack(self.leader_recovery_state, self.partition_epoch))
        else:
            if self.leader_recovery_state != 0:
                raise not_carried("RequestPartitionData", "leader_recovery_state", version)
            writer.int32(self.partition_epoch)
        writer.append(b"\x00")


class RequestTopicData(Message):
    """Proposals grouped by topic."""

    __slots__ = ("topic_name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 1, False),
        ("topic_id", "uuid", 2, 3, False),
        ("partitions", "RequestPartitionData", 0, 3, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[RequestPartitionData] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """v0-1. Topic, by name; v0 and v1."""
        self.topic_id: bytes = topic_id
        """v2+. Topic, by id; from v2 on."""
        self.partitions: list[RequestPartitionData] = [] if partitions is None else partitions
        """One proposal per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RequestTopicData":
        self = cls.__new__(cls)
        if version >= 2:
            self.topic_name = ""
        else:
            self.topic_name = reader.compact_string()
        if version >= 2:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        count = reader.compact_array_count()
        partitions: list[RequestPartitionData] = []
        for _ in range(count):
            partitions.append(RequestPartitionData.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version < 2:
            writer.compact_string(self.topic_name)
        if version >= 2:
            writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for request_partition_data in self.partitions:
            request_partition_data.write(writer, version)
        writer.append(b"\x00")


class AlterPartitionRequest(Message):
    """Request of AlterPartition."""

    __slots__ = ("broker_id", "broker_epoch", "topics")
    API_KEY = 56
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 3, False),
        ("broker_epoch", "int64", 0, 3, False),
        ("topics", "RequestTopicData", 0, 3, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[RequestTopicData] | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker that leads the partitions."""
        self.broker_epoch: int = broker_epoch
        """Epoch of its registration; a stale one is STALE_BROKER_EPOCH."""
        self.topics: list[RequestTopicData] = [] if topics is None else topics
        """Proposals grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterPartitionRequest":
        self = cls.__new__(cls)
        self.broker_id, self.broker_epoch = reader.fixed(_IQ)
        count = reader.compact_array_count()
        topics: list[RequestTopicData] = []
        for _ in range(count):
            topics.append(RequestTopicData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.broker_id, self.broker_epoch))
        writer.compact_array_count(len(self.topics))
        for request_topic_data in self.topics:
            request_topic_data.write(writer, version)
        writer.append(b"\x00")


class ResponsePartitionData(Message):
    """Results by partition."""

    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 3, False),
        ("error_code", "error_code", 0, 3, False),
        ("leader_id", "int32", 0, 3, False),
        ("leader_epoch", "int32", 0, 3, False),
        ("isr", "int32", 0, 3, False),
        ("leader_recovery_state", "int8", 1, 3, False),
        ("partition_epoch", "int32", 0, 3, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH, …; 0 = accepted."""
        self.leader_id: int = leader_id
        """Broker id of the partition leader now; -1 when unknown."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch that goes with that leader; -1 when unknown."""
        self.isr: list[int] = [] if isr is None else isr
        """Broker ids of the ISR after the change."""
        self.leader_recovery_state: int = leader_recovery_state
        """v1+. 0 = recovered, 1 = still recovering after an unclean election."""
        self.partition_epoch: int = partition_epoch
        """Version of the partition state after the change."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ResponsePartitionData":
        self = cls.__new__(cls)
        (
            self.partition_index,
            self.error_code,
            self.leader_id,
            self.leader_epoch,
        ) = reader.fixed(_IHII)
        count = reader.compact_array_count()
        self.isr = reader.numbers(count, "i")
        if version >= 1:
            self.leader_recovery_state, self.partition_epoch = reader.fixed(_BI)
        else:
            self.partition_epoch = reader.int32()
            self.leader_recovery_state = 0
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IHII.pack(
            self.partition_index,
            self.error_code,
            self.leader_id,
            self.leader_epoch,
        ))
        writer.compact_array_count(len(self.isr))
        writer.numbers(self.isr, "i")
        if version >= 1:
            writer.append(_BI.pack(self.leader_recovery_state, self.partition_epoch))
        else:
            writer.int32(self.partition_epoch)
        writer.append(b"\x00")


class ResponseTopicData(Message):
    """Results grouped by topic."""

    __slots__ = ("topic_name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 1, False),
        ("topic_id", "uuid", 2, 3, False),
        ("partitions", "ResponsePartitionData", 0, 3, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[ResponsePartitionData] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """v0-1. Topic, by name; v0 and v1."""
        self.topic_id: bytes = topic_id
        """v2+. Topic, by id; from v2 on."""
        self.partitions: list[ResponsePartitionData] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ResponseTopicData":
        self = cls.__new__(cls)
        if version >= 2:
            self.topic_name = ""
        else:
            self.topic_name = reader.compact_string()
        if version >= 2:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        count = reader.compact_array_count()
        partitions: list[ResponsePartitionData] = []
        for _ in range(count):
            partitions.append(ResponsePartitionData.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version < 2:
            writer.compact_string(self.topic_name)
        if version >= 2:
            writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for response_partition_data in self.partitions:
            response_partition_data.write(writer, version)
        writer.append(b"\x00")


class AlterPartitionResponse(Message):
    """Answer of AlterPartition."""

    __slots__ = ("throttle_time_ms", "error_code", "topics")
    API_KEY = 56
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 3, False),
        ("error_code", "error_code", 0, 3, False),
        ("topics", "ResponseTopicData", 0, 3, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[ResponseTopicData] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """STALE_BROKER_EPOCH, NOT_CONTROLLER, CLUSTER_AUTHORIZATION_FAILED, …; 0 = see the results."""
        self.topics: list[ResponseTopicData] = [] if topics is None else topics
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterPartitionResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        count = reader.compact_array_count()
        topics: list[ResponseTopicData] = []
        for _ in range(count):
            topics.append(ResponseTopicData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_array_count(len(self.topics))
        for response_topic_data in self.topics:
            response_topic_data.write(writer, version)
        writer.append(b"\x00")
