# fmt: off
# ruff: noqa: E501
"""LeaderAndIsr: key 4, versions 0 to 7.

The controller of a ZooKeeper cluster tells a broker which partitions it leads and which it follows.

Versions:
1: Whether the replica is new; KAFKA_STORAGE_ERROR may be answered (KIP-112).
2: Broker epoch; partitions are grouped by topic (KIP-380).
3: Replicas that a reassignment adds and removes (KIP-455).
4: Flexible encoding (KIP-482).
5: Topic ids, full or incremental request; errors are grouped by topic id (KIP-516).
6: Leader recovery state (KIP-704).
7: Whether the sender is a KRaft controller (KIP-866).

Generated from protocol_specs/apis/04_leader_and_isr.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_ZB = Struct(">?b")
_IZIQB = Struct(">i?iqb")
_IH = Struct(">ih")
_II = Struct(">ii")
_IIII = Struct(">iiii")
_IIQ = Struct(">iiq")
_IIQB = Struct(">iiqb")


class LeaderAndIsrPartitionState(Message):
    """States, each with its topic; v0 and v1."""

    __slots__ = ("topic_name", "partition_index", "controller_epoch", "leader", "leader_epoch", "isr", "partition_epoch", "replicas", "adding_replicas", "removing_replicas", "is_new", "leader_recovery_state")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 1, False),
        ("partition_index", "int32", 0, 7, False),
        ("controller_epoch", "int32", 0, 7, False),
        ("leader", "int32", 0, 7, False),
        ("leader_epoch", "int32", 0, 7, False),
        ("isr", "int32", 0, 7, False),
        ("partition_epoch", "int32", 0, 7, False),
        ("replicas", "int32", 0, 7, False),
        ("adding_replicas", "int32", 3, 7, False),
        ("removing_replicas", "int32", 3, 7, False),
        ("is_new", "bool", 1, 7, False),
        ("leader_recovery_state", "int8", 6, 7, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: list[int] | None = None,
        partition_epoch: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        is_new: bool = False,
        leader_recovery_state: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        """v0-1. Topic, by name; v0 and v1."""
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.controller_epoch: int = controller_epoch
        """Epoch of the controller that wrote the state."""
        self.leader: int = leader
        """Broker id of the leader; -1 = none, -2 = the topic is being deleted."""
        self.leader_epoch: int = leader_epoch
        """Epoch of that leader; it grows with every election."""
        self.isr: list[int] = [] if isr is None else isr
        """Broker ids of the in-sync replicas."""
        self.partition_epoch: int = partition_epoch
        """Version of the partition's node in ZooKeeper; it grows with every change."""
        self.replicas: list[int] = [] if replicas is None else replicas
        """Broker ids of all replicas, the preferred leader first."""
        self.adding_replicas: list[int] = [] if adding_replicas is None else adding_replicas
        """v3+. Replicas that a reassignment adds."""
        self.removing_replicas: list[int] = [] if removing_replicas is None else removing_replicas
        """v3+. Replicas that a reassignment removes."""
        self.is_new: bool = is_new
        """v1+. True: make the log in any directory; else it may exist in an offline one."""
        self.leader_recovery_state: int = leader_recovery_state
        """v6+. 0 = recovered, 1 = still recovering after an unclean election."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderAndIsrPartitionState":
        self = cls.__new__(cls)
        if version >= 2:
            self.topic_name = ""
        else:
            self.topic_name = reader.string()
        (
            self.partition_index,
            self.controller_epoch,
            self.leader,
            self.leader_epoch,
        ) = reader.fixed(_IIII)
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.isr = reader.numbers(count, "i")
        self.partition_epoch = reader.int32()
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.replicas = reader.numbers(count, "i")
        if version >= 3:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            self.adding_replicas = reader.numbers(count, "i")
        else:
            self.adding_replicas = []
        if version >= 3:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            self.removing_replicas = reader.numbers(count, "i")
        else:
            self.removing_replicas = []
        if version >= 6:
            self.is_new, self.leader_recovery_state = reader.fixed(_ZB)
        elif version >= 1:
            self.is_new = reader.boolean()
            self.leader_recovery_state = 0
        else:
            self.is_new = False
            self.leader_recovery_state = 0
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version < 2:
            writer.string(self.topic_name)
        writer.append(_IIII.pack(
            self.partition_index,
            self.controller_epoch,
            self.leader,
            self.leader_epoch,
        ))
        if version >= 4:
            writer.compact_array_count(len(self.isr))
        else:
            writer.array_count(len(self.isr))
        writer.numbers(self.isr, "i")
        writer.int32(self.partition_epoch)
        if version >= 4:
            writer.compact_array_count(len(self.replicas))
        else:
            writer.array_count(len(self.replicas))
        writer.numbers(self.replicas, "i")
        if version >= 3:
            if version >= 4:
                writer.compact_array_count(len(self.adding_replicas))
            else:
                writer.array_count(len(self.adding_replicas))
            writer.numbers(self.adding_replicas, "i")
        if version >= 3:
            if version >= 4:
                writer.compact_array_count(len(self.removing_replicas))
            else:
                writer.array_count(len(self.removing_replicas))
            writer.numbers(self.removing_replicas, "i")
        if version >= 6:
            writer.append(_ZB.pack(self.is_new, self.leader_recovery_state))
        elif version >= 1:
            if self.leader_recovery_state != 0:
                raise not_carried("LeaderAndIsrPartitionState", "leader_recovery_state", version)
            writer.boolean(self.is_new)
        else:
            if self.leader_recovery_state != 0:
                raise not_carried("LeaderAndIsrPartitionState", "leader_recovery_state", version)
        if version >= 4:
            writer.append(b"\x00")


class LeaderAndIsrTopicState(Message):
    """States grouped by topic; from v2 on."""

    __slots__ = ("topic_name", "topic_id", "partition_states")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 2, 7, False),
        ("topic_id", "uuid", 5, 7, False),
        ("partition_states", "LeaderAndIsrPartitionState", 2, 7, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_states: list[LeaderAndIsrPartitionState] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.topic_id: bytes = topic_id
        """v5+. Id of the topic; zero if it has none."""
        self.partition_states: list[LeaderAndIsrPartitionState] = [] if partition_states is None else partition_states
        """States of the topic's partitions."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderAndIsrTopicState":
        self = cls.__new__(cls)
        if version >= 4:
            self.topic_name = reader.compact_string()
        else:
            self.topic_name = reader.string()
        if version >= 5:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partition_states: list[LeaderAndIsrPartitionState] = []
        for _ in range(count):
            partition_states.append(LeaderAndIsrPartitionState.read(reader, version))
        self.partition_states = partition_states
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        if version >= 5:
            writer.uuid(self.topic_id)
        if version >= 4:
            writer.compact_array_count(len(self.partition_states))
        else:
            writer.array_count(len(self.partition_states))
        for leader_and_isr_partition_state in self.partition_states:
            leader_and_isr_partition_state.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")


class LeaderAndIsrLiveLeader(Message):
    """Addresses of the leaders that the states name."""

    __slots__ = ("broker_id", "host_name", "port")
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 7, False),
        ("host_name", "string", 0, 7, False),
        ("port", "int32", 0, 7, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host_name: str = "",
        port: int = 0,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker id of a leader."""
        self.host_name: str = host_name
        """Host on the listener between brokers."""
        self.port: int = port
        """TCP port on the listener between brokers."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderAndIsrLiveLeader":
        self = cls.__new__(cls)
        self.broker_id = reader.int32()
        if version >= 4:
            self.host_name = reader.compact_string()
        else:
            self.host_name = reader.string()
        self.port = reader.int32()
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.broker_id)
        if version >= 4:
            writer.compact_string(self.host_name)
        else:
            writer.string(self.host_name)
        writer.int32(self.port)
        if version >= 4:
            writer.append(b"\x00")


class LeaderAndIsrRequest(Message):
    """Request of LeaderAndIsr."""

    __slots__ = ("controller_id", "is_kraft_controller", "controller_epoch", "broker_epoch", "type", "ungrouped_partition_states", "topic_states", "live_leaders")
    API_KEY = 4
    VERSIONS = (0, 7)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("controller_id", "int32", 0, 7, False),
        ("is_kraft_controller", "bool", 7, 7, False),
        ("controller_epoch", "int32", 0, 7, False),
        ("broker_epoch", "int64", 2, 7, False),
        ("type", "int8", 5, 7, False),
        ("ungrouped_partition_states", "LeaderAndIsrPartitionState", 0, 1, False),
        ("topic_states", "LeaderAndIsrTopicState", 2, 7, False),
        ("live_leaders", "LeaderAndIsrLiveLeader", 0, 7, False),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        type: int = 0,
        ungrouped_partition_states: list[LeaderAndIsrPartitionState] | None = None,
        topic_states: list[LeaderAndIsrTopicState] | None = None,
        live_leaders: list[LeaderAndIsrLiveLeader] | None = None,
    ) -> None:
        self.controller_id: int = controller_id
        """Broker that is the controller."""
        self.is_kraft_controller: bool = is_kraft_controller
        """v7+. True: the sender is a KRaft controller, during a migration (KIP-866)."""
        self.controller_epoch: int = controller_epoch
        """Epoch of the controller; an older one than known is STALE_CONTROLLER_EPOCH."""
        self.broker_epoch: int = broker_epoch
        """v2+. Epoch of the registration that the request is for; an older one is STALE_BROKER_EPOCH; -1 = not checked."""
        self.type: int = type
        """v5+. 0 = unknown, 1 = some partitions (incremental), 2 = all partitions of the broker (full)."""
        self.ungrouped_partition_states: list[LeaderAndIsrPartitionState] = [] if ungrouped_partition_states is None else ungrouped_partition_states
        """v0-1. States, each with its topic; v0 and v1."""
        self.topic_states: list[LeaderAndIsrTopicState] = [] if topic_states is None else topic_states
        """v2+. States grouped by topic; from v2 on."""
        self.live_leaders: list[LeaderAndIsrLiveLeader] = [] if live_leaders is None else live_leaders
        """Addresses of the leaders that the states name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderAndIsrRequest":
        self = cls.__new__(cls)
        if version >= 7:
            (
                self.controller_id,
                self.is_kraft_controller,
                self.controller_epoch,
                self.broker_epoch,
                self.type,
            ) = reader.fixed(_IZIQB)
        elif version >= 5:
            (
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
                self.type,
            ) = reader.fixed(_IIQB)
            self.is_kraft_controller = False
        elif version >= 2:
            self.controller_id, self.controller_epoch, self.broker_epoch = reader.fixed(_IIQ)
            self.is_kraft_controller = False
            self.type = 0
        else:
            self.controller_id, self.controller_epoch = reader.fixed(_II)
            self.is_kraft_controller = False
            self.broker_epoch = -1
            self.type = 0
        if version >= 2:
            self.ungrouped_partition_states = []
        else:
            count = reader.array_count()
            ungrouped_partition_states: list[LeaderAndIsrPartitionState] = []
            for _ in range(count):
                ungrouped_partition_states.append(LeaderAndIsrPartitionState.read(reader, version))
            self.ungrouped_partition_states = ungrouped_partition_states
        if version >= 2:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            topic_states: list[LeaderAndIsrTopicState] = []
            for _ in range(count):
                topic_states.append(LeaderAndIsrTopicState.read(reader, version))
            self.topic_states = topic_states
        else:
            self.topic_states = []
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        live_leaders: list[LeaderAndIsrLiveLeader] = []
        for _ in range(count):
            live_leaders.append(LeaderAndIsrLiveLeader.read(reader, version))
        self.live_leaders = live_leaders
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 7:
            writer.append(_IZIQB.pack(
                self.controller_id,
                self.is_kraft_controller,
                self.controller_epoch,
                self.broker_epoch,
                self.type,
            ))
        elif version >= 5:
            if self.is_kraft_controller:
                raise not_carried("LeaderAndIsrRequest", "is_kraft_controller", version)
            writer.append(_IIQB.pack(
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
                self.type,
            ))
        elif version >= 2:
            if self.is_kraft_controller:
                raise not_carried("LeaderAndIsrRequest", "is_kraft_controller", version)
            if self.type != 0:
                raise not_carried("LeaderAndIsrRequest", "type", version)
            writer.append(_IIQ.pack(
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
            ))
        else:
            if self.is_kraft_controller:
                raise not_carried("LeaderAndIsrRequest", "is_kraft_controller", version)
            if self.type != 0:
                raise not_carried("LeaderAndIsrRequest", "type", version)
            writer.append(_II.pack(self.controller_id, self.controller_epoch))
        if version >= 2:
            if self.ungrouped_partition_states:
                raise not_carried("LeaderAndIsrRequest", "ungrouped_partition_states", version)
        else:
            writer.array_count(len(self.ungrouped_partition_states))
            for leader_and_isr_partition_state in self.ungrouped_partition_states:
                leader_and_isr_partition_state.write(writer, version)
        if version >= 2:
            if version >= 4:
                writer.compact_array_count(len(self.topic_states))
            else:
                writer.array_count(len(self.topic_states))
            for leader_and_isr_topic_state in self.topic_states:
                leader_and_isr_topic_state.write(writer, version)
        else:
            if self.topic_states:
                raise not_carried("LeaderAndIsrRequest", "topic_states", version)
        if version >= 4:
            writer.compact_array_count(len(self.live_leaders))
        else:
            writer.array_count(len(self.live_leaders))
        for leader_and_isr_live_leader in self.live_leaders:
            leader_and_isr_live_leader.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")


class LeaderAndIsrPartitionError(Message):
    """Results, each with its topic; up to v4."""

    __slots__ = ("topic_name", "partition_index", "error_code")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 4, False),
        ("partition_index", "int32", 0, 7, False),
        ("error_code", "error_code", 0, 7, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        """v0-4. Topic, by name; up to v4."""
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """STALE_CONTROLLER_EPOCH (an older leader epoch), KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID, …; 0 = taken."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderAndIsrPartitionError":
        self = cls.__new__(cls)
        if version >= 5:
            self.topic_name = ""
        elif version >= 4:
            self.topic_name = reader.compact_string()
        else:
            self.topic_name = reader.string()
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            pass
        elif version >= 4:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 4:
            writer.append(b"\x00")


class LeaderAndIsrTopicError(Message):
    """Results grouped by topic; from v5 on."""

    __slots__ = ("topic_id", "partition_errors")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 5, 7, False),
        ("partition_errors", "LeaderAndIsrPartitionError", 5, 7, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partition_errors: list[LeaderAndIsrPartitionError] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by id."""
        self.partition_errors: list[LeaderAndIsrPartitionError] = [] if partition_errors is None else partition_errors
        """Results of the topic's partitions."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderAndIsrTopicError":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partition_errors: list[LeaderAndIsrPartitionError] = []
        for _ in range(count):
            partition_errors.append(LeaderAndIsrPartitionError.read(reader, version))
        self.partition_errors = partition_errors
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partition_errors))
        for leader_and_isr_partition_error in self.partition_errors:
            leader_and_isr_partition_error.write(writer, version)
        writer.append(b"\x00")


class LeaderAndIsrResponse(Message):
    """Answer of LeaderAndIsr."""

    __slots__ = ("error_code", "partition_errors", "topics")
    API_KEY = 4
    VERSIONS = (0, 7)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 7, False),
        ("partition_errors", "LeaderAndIsrPartitionError", 0, 4, False),
        ("topics", "LeaderAndIsrTopicError", 5, 7, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[LeaderAndIsrPartitionError] | None = None,
        topics: list[LeaderAndIsrTopicError] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH, …; 0 = see the results."""
        self.partition_errors: list[LeaderAndIsrPartitionError] = [] if partition_errors is None else partition_errors
        """v0-4. Results, each with its topic; up to v4."""
        self.topics: list[LeaderAndIsrTopicError] = [] if topics is None else topics
        """v5+. Results grouped by topic; from v5 on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderAndIsrResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 5:
            self.partition_errors = []
        else:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            partition_errors: list[LeaderAndIsrPartitionError] = []
            for _ in range(count):
                partition_errors.append(LeaderAndIsrPartitionError.read(reader, version))
            self.partition_errors = partition_errors
        if version >= 5:
            count = reader.compact_array_count()
            topics: list[LeaderAndIsrTopicError] = []
            for _ in range(count):
                topics.append(LeaderAndIsrTopicError.read(reader, version))
            self.topics = topics
        else:
            self.topics = []
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 5:
            if self.partition_errors:
                raise not_carried("LeaderAndIsrResponse", "partition_errors", version)
        else:
            if version >= 4:
                writer.compact_array_count(len(self.partition_errors))
            else:
                writer.array_count(len(self.partition_errors))
            for leader_and_isr_partition_error in self.partition_errors:
                leader_and_isr_partition_error.write(writer, version)
        if version >= 5:
            writer.compact_array_count(len(self.topics))
            for leader_and_isr_topic_error in self.topics:
                leader_and_isr_topic_error.write(writer, version)
        else:
            if self.topics:
                raise not_carried("LeaderAndIsrResponse", "topics", version)
        if version >= 4:
            writer.append(b"\x00")
