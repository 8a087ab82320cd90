# fmt: off
# ruff: noqa: E501
"""StopReplica: key 5, versions 0 to 4.

The controller of a ZooKeeper cluster tells a broker to stop replicas, and to delete their logs where asked.

Versions:
1: Broker epoch; partitions are grouped by topic (KIP-380).
2: Flexible encoding (KIP-482).
3: Leader epoch, and whether to delete, for each partition; FENCED_LEADER_EPOCH may be answered (KIP-570).
4: Whether the sender is a KRaft controller (KIP-866).

Generated from protocol_specs/apis/05_stop_replica.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IZIQ = Struct(">i?iq")
_IH = Struct(">ih")
_IIZ = Struct(">ii?")
_IIQ = Struct(">iiq")
_IIQZ = Struct(">iiq?")


class StopReplicaPartitionV0(Message):
    """Partitions to stop; v0."""

    __slots__ = ("topic_name", "partition_index")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 0, False),
        ("partition_index", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StopReplicaPartitionV0":
        self = cls.__new__(cls)
        self.topic_name = reader.string()
        self.partition_index = reader.int32()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.topic_name)
        writer.int32(self.partition_index)


class StopReplicaTopicV1(Message):
    """Partitions to stop, grouped by topic; v1 and v2."""

    __slots__ = ("name", "partition_indexes")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 1, 2, False),
        ("partition_indexes", "int32", 1, 2, False),
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
        """Partition numbers within the topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StopReplicaTopicV1":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.partition_indexes = reader.numbers(count, "i")
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_array_count(len(self.partition_indexes))
        else:
            writer.array_count(len(self.partition_indexes))
        writer.numbers(self.partition_indexes, "i")
        if version >= 2:
            writer.append(b"\x00")


class StopReplicaPartitionState(Message):
    """The topic's partitions to stop."""

    __slots__ = ("partition_index", "leader_epoch", "delete_partition")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 3, 4, False),
        ("leader_epoch", "int32", 3, 4, False),
        ("delete_partition", "bool", 3, 4, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = -1,
        delete_partition: bool = False,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch of the state that stops it; -1 = not checked, -2 = the topic is being deleted."""
        self.delete_partition: bool = delete_partition
        """True: delete the log, too."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StopReplicaPartitionState":
        self = cls.__new__(cls)
        self.partition_index, self.leader_epoch, self.delete_partition = reader.fixed(_IIZ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IIZ.pack(
            self.partition_index,
            self.leader_epoch,
            self.delete_partition,
        ))
        writer.append(b"\x00")


class StopReplicaTopicState(Message):
    """Partitions to stop, grouped by topic; from v3 on."""

    __slots__ = ("topic_name", "partition_states")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 3, 4, False),
        ("partition_states", "StopReplicaPartitionState", 3, 4, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_states: list[StopReplicaPartitionState] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partition_states: list[StopReplicaPartitionState] = [] if partition_states is None else partition_states
        """The topic's partitions to stop."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StopReplicaTopicState":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        count = reader.compact_array_count()
        partition_states: list[StopReplicaPartitionState] = []
        for _ in range(count):
            partition_states.append(StopReplicaPartitionState.read(reader, version))
        self.partition_states = partition_states
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_count(len(self.partition_states))
        for stop_replica_partition_state in self.partition_states:
            stop_replica_partition_state.write(writer, version)
        writer.append(b"\x00")


class StopReplicaRequest(Message):
    """Request of StopReplica."""

    __slots__ = ("controller_id", "is_kraft_controller", "controller_epoch", "broker_epoch", "delete_partitions", "ungrouped_partitions", "topics", "topic_states")
    API_KEY = 5
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("controller_id", "int32", 0, 4, False),
        ("is_kraft_controller", "bool", 4, 4, False),
        ("controller_epoch", "int32", 0, 4, False),
        ("broker_epoch", "int64", 1, 4, False),
        ("delete_partitions", "bool", 0, 2, False),
        ("ungrouped_partitions", "StopReplicaPartitionV0", 0, 0, False),
        ("topics", "StopReplicaTopicV1", 1, 2, False),
        ("topic_states", "StopReplicaTopicState", 3, 4, False),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        delete_partitions: bool = False,
        ungrouped_partitions: list[StopReplicaPartitionV0] | None = None,
        topics: list[StopReplicaTopicV1] | None = None,
        topic_states: list[StopReplicaTopicState] | None = None,
    ) -> None:
        self.controller_id: int = controller_id
        """Broker that is the controller."""
        self.is_kraft_controller: bool = is_kraft_controller
        """v4+. True: the sender is a KRaft controller, during a migration (KIP-866)."""
        self.controller_epoch: int = controller_epoch
        """Epoch of the controller; an older one than known is STALE_CONTROLLER_EPOCH."""
        self.broker_epoch: int = broker_epoch
        """v1+. Epoch of the registration that the request is for; an older one is STALE_BROKER_EPOCH; -1 = not checked."""
        self.delete_partitions: bool = delete_partitions
        """v0-2. True: delete the logs of all partitions; up to v2."""
        self.ungrouped_partitions: list[StopReplicaPartitionV0] = [] if ungrouped_partitions is None else ungrouped_partitions
        """v0. Partitions to stop; v0."""
        self.topics: list[StopReplicaTopicV1] = [] if topics is None else topics
        """v1-2. Partitions to stop, grouped by topic; v1 and v2."""
        self.topic_states: list[StopReplicaTopicState] = [] if topic_states is None else topic_states
        """v3+. Partitions to stop, grouped by topic; from v3 on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StopReplicaRequest":
        self = cls.__new__(cls)
        if version >= 4:
            (
                self.controller_id,
                self.is_kraft_controller,
                self.controller_epoch,
                self.broker_epoch,
            ) = reader.fixed(_IZIQ)
            self.delete_partitions = False
        elif version >= 3:
            self.controller_id, self.controller_epoch, self.broker_epoch = reader.fixed(_IIQ)
            self.is_kraft_controller = False
            self.delete_partitions = False
        elif version >= 1:
            (
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
                self.delete_partitions,
            ) = reader.fixed(_IIQZ)
            self.is_kraft_controller = False
        else:
            (
                self.controller_id,
                self.controller_epoch,
                self.delete_partitions,
            ) = reader.fixed(_IIZ)
            self.is_kraft_controller = False
            self.broker_epoch = -1
        if version >= 1:
            self.ungrouped_partitions = []
        else:
            count = reader.array_count()
            ungrouped_partitions: list[StopReplicaPartitionV0] = []
            for _ in range(count):
                ungrouped_partitions.append(StopReplicaPartitionV0.read(reader, version))
            self.ungrouped_partitions = ungrouped_partitions
        if version >= 3:
            self.topics = []
        elif version >= 1:
            if version >= 2:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            topics: list[StopReplicaTopicV1] = []
            for _ in range(count):
                topics.append(StopReplicaTopicV1.read(reader, version))
            self.topics = topics
        else:
            self.topics = []
        if version >= 3:
            count = reader.compact_array_count()
            topic_states: list[StopReplicaTopicState] = []
            for _ in range(count):
                topic_states.append(StopReplicaTopicState.read(reader, version))
            self.topic_states = topic_states
        else:
            self.topic_states = []
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            if self.delete_partitions:
                raise not_carried("StopReplicaRequest", "delete_partitions", version)
            writer.append(_IZIQ.pack(
                self.controller_id,
                self.is_kraft_controller,
                self.controller_epoch,
                self.broker_epoch,
            ))
        elif version >= 3:
            if self.is_kraft_controller:
                raise not_carried("StopReplicaRequest", "is_kraft_controller", version)
            if self.delete_partitions:
                raise not_carried("StopReplicaRequest", "delete_partitions", version)
            writer.append(_IIQ.pack(
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
            ))
        elif version >= 1:
            if self.is_kraft_controller:
                raise not_carried("StopReplicaRequest", "is_kraft_controller", version)
            writer.append(_IIQZ.pack(
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
                self.delete_partitions,
            ))
        else:
            if self.is_kraft_controller:
                raise not_carried("StopReplicaRequest", "is_kraft_controller", version)
            writer.append(_IIZ.pack(
                self.controller_id,
                self.controller_epoch,
                self.delete_partitions,
            ))
        if version >= 1:
            if self.ungrouped_partitions:
                raise not_carried("StopReplicaRequest", "ungrouped_partitions", version)
        else:
            writer.array_count(len(self.ungrouped_partitions))
            for stop_replica_partition_v0 in self.ungrouped_partitions:
                stop_replica_partition_v0.write(writer, version)
        if version >= 3:
            if self.topics:
                raise not_carried("StopReplicaRequest", "topics", version)
        elif version >= 1:
            if version >= 2:
                writer.compact_array_count(len(self.topics))
            else:
                writer.array_count(len(self.topics))
            for stop_replica_topic_v1 in self.topics:
                stop_replica_topic_v1.write(writer, version)
        else:
            if self.topics:
                raise not_carried("StopReplicaRequest", "topics", version)
        if version >= 3:
            writer.compact_array_count(len(self.topic_states))
            for stop_replica_topic_state in self.topic_states:
                stop_replica_topic_state.write(writer, version)
        else:
            if self.topic_states:
                raise not_carried("StopReplicaRequest", "topic_states", version)
        if version >= 2:
            writer.append(b"\x00")


class StopReplicaPartitionError(Message):
    """Results of the partitions."""

    __slots__ = ("topic_name", "partition_index", "error_code")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 4, False),
        ("partition_index", "int32", 0, 4, False),
        ("error_code", "error_code", 0, 4, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """FENCED_LEADER_EPOCH, KAFKA_STORAGE_ERROR, …; 0 = stopped."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StopReplicaPartitionError":
        self = cls.__new__(cls)
        if version >= 2:
            self.topic_name = reader.compact_string()
        else:
            self.topic_name = reader.string()
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 2:
            writer.append(b"\x00")


class StopReplicaResponse(Message):
    """Answer of StopReplica."""

    __slots__ = ("error_code", "partition_errors")
    API_KEY = 5
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 4, False),
        ("partition_errors", "StopReplicaPartitionError", 0, 4, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[StopReplicaPartitionError] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH, …; 0 = see the results."""
        self.partition_errors: list[StopReplicaPartitionError] = [] if partition_errors is None else partition_errors
        """Results of the partitions."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StopReplicaResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partition_errors: list[StopReplicaPartitionError] = []
        for _ in range(count):
            partition_errors.append(StopReplicaPartitionError.read(reader, version))
        self.partition_errors = partition_errors
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_array_count(len(self.partition_errors))
        else:
            writer.array_count(len(self.partition_errors))
        for stop_replica_partition_error in self.partition_errors:
            stop_replica_partition_error.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")
