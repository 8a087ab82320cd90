# fmt: off
# ruff: noqa: E501
"""UpdateMetadata: key 6, versions 0 to 8.

The controller of a ZooKeeper cluster tells a broker about brokers and partitions that clients may ask for.

Versions:
1: Several endpoints for each broker (KIP-2).
2: Rack (KIP-36).
3: Name of the listener (KIP-103).
4: Offline replicas (KIP-112).
5: Broker epoch; partitions are grouped by topic (KIP-380).
6: Flexible encoding (KIP-482).
7: Topic ids (KIP-516).
8: Whether the sender is a KRaft controller, full or incremental request (KIP-866).

Generated from protocol_specs/apis/06_update_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IZIQ = Struct(">i?iq")
_II = Struct(">ii")
_IIII = Struct(">iiii")
_IIQ = Struct(">iiq")


class UpdateMetadataPartitionState(Message):
    """States, each with its topic; up to v4."""

    __slots__ = ("topic_name", "partition_index", "controller_epoch", "leader", "leader_epoch", "isr", "zk_version", "replicas", "offline_replicas")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 4, False),
        ("partition_index", "int32", 0, 8, False),
        ("controller_epoch", "int32", 0, 8, False),
        ("leader", "int32", 0, 8, False),
        ("leader_epoch", "int32", 0, 8, False),
        ("isr", "int32", 0, 8, False),
        ("zk_version", "int32", 0, 8, False),
        ("replicas", "int32", 0, 8, False),
        ("offline_replicas", "int32", 4, 8, False),
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
        zk_version: int = 0,
        replicas: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """v0-4. Topic, by name; up to v4."""
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.controller_epoch: int = controller_epoch
        """Epoch of the controller that wrote the state."""
        self.leader: int = leader
        """Broker id of the leader; -1 = none, -2 = the topic is being deleted."""
        self.leader_epoch: int = leader_epoch
        """Epoch of that leader."""
        self.isr: list[int] = [] if isr is None else isr
        """Broker ids of the in-sync replicas."""
        self.zk_version: int = zk_version
        """Version of the partition's node in ZooKeeper."""
        self.replicas: list[int] = [] if replicas is None else replicas
        """Broker ids of all replicas, the preferred leader first."""
        self.offline_replicas: list[int] = [] if offline_replicas is None else offline_replicas
        """v4+. Replicas whose broker or log directory is offline."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateMetadataPartitionState":
        self = cls.__new__(cls)
        if version >= 5:
            self.topic_name = ""
        else:
            self.topic_name = reader.string()
        (
            self.partition_index,
            self.controller_epoch,
            self.leader,
            self.leader_epoch,
        ) = reader.fixed(_IIII)
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.isr = reader.numbers(count, "i")
        self.zk_version = reader.int32()
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.replicas = reader.numbers(count, "i")
        if version >= 4:
            if version >= 6:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            self.offline_replicas = reader.numbers(count, "i")
        else:
            self.offline_replicas = []
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version < 5:
            writer.string(self.topic_name)
        writer.append(_IIII.pack(
            self.partition_index,
            self.controller_epoch,
            self.leader,
            self.leader_epoch,
        ))
        if version >= 6:
            writer.compact_array_count(len(self.isr))
        else:
            writer.array_count(len(self.isr))
        writer.numbers(self.isr, "i")
        writer.int32(self.zk_version)
        if version >= 6:
            writer.compact_array_count(len(self.replicas))
        else:
            writer.array_count(len(self.replicas))
        writer.numbers(self.replicas, "i")
        if version >= 4:
            if version >= 6:
                writer.compact_array_count(len(self.offline_replicas))
            else:
                writer.array_count(len(self.offline_replicas))
            writer.numbers(self.offline_replicas, "i")
        if version >= 6:
            writer.append(b"\x00")


class UpdateMetadataTopicState(Message):
    """States grouped by topic; from v5 on."""

    __slots__ = ("topic_name", "topic_id", "partition_states")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 5, 8, False),
        ("topic_id", "uuid", 7, 8, False),
        ("partition_states", "UpdateMetadataPartitionState", 5, 8, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_states: list[UpdateMetadataPartitionState] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.topic_id: bytes = topic_id
        """v7+. Id of the topic; zero if it has none."""
        self.partition_states: list[UpdateMetadataPartitionState] = [] if partition_states is None else partition_states
        """States of the topic's partitions."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateMetadataTopicState":
        self = cls.__new__(cls)
        if version >= 6:
            self.topic_name = reader.compact_string()
        else:
            self.topic_name = reader.string()
        if version >= 7:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partition_states: list[UpdateMetadataPartitionState] = []
        for _ in range(count):
            partition_states.append(UpdateMetadataPartitionState.read(reader, version))
        self.partition_states = partition_states
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        if version >= 7:
            writer.uuid(self.topic_id)
        if version >= 6:
            writer.compact_array_count(len(self.partition_states))
        else:
            writer.array_count(len(self.partition_states))
        for update_metadata_partition_state in self.partition_states:
            update_metadata_partition_state.write(writer, version)
        if version >= 6:
            writer.append(b"\x00")


class UpdateMetadataEndpoint(Message):
    """The broker's endpoints, one for each listener."""

    __slots__ = ("port", "host", "listener", "security_protocol")
    JSON_FIELDS: JsonFields = (
        ("port", "int32", 1, 8, False),
        ("host", "string", 1, 8, False),
        ("listener", "string", 3, 8, False),
        ("security_protocol", "int16", 1, 8, False),
    )

    def __init__(
        self,
        *,
        port: int = 0,
        host: str = "",
        listener: str = "",
        security_protocol: int = 0,
    ) -> None:
        self.port: int = port
        """TCP port."""
        self.host: str = host
        """Advertised host."""
        self.listener: str = listener
        """v3+. Name of the listener."""
        self.security_protocol: int = security_protocol
        """0 = PLAINTEXT, 1 = SSL, 2 = SASL_PLAINTEXT, 3 = SASL_SSL."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateMetadataEndpoint":
        self = cls.__new__(cls)
        self.port = reader.int32()
        if version >= 6:
            self.host = reader.compact_string()
        else:
            self.host = reader.string()
        if version >= 6:
            self.listener = reader.compact_string()
        elif version >= 3:
            self.listener = reader.string()
        else:
            self.listener = ""
        self.security_protocol = reader.int16()
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.port)
        if version >= 6:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        if version >= 6:
            writer.compact_string(self.listener)
        elif version >= 3:
            writer.string(self.listener)
        writer.int16(self.security_protocol)
        if version >= 6:
            writer.append(b"\x00")


class UpdateMetadataBroker(Message):
    """All brokers that are registered."""

    __slots__ = ("id", "v0_host", "v0_port", "endpoints", "rack")
    JSON_FIELDS: JsonFields = (
        ("id", "int32", 0, 8, False),
        ("v0_host", "string", 0, 0, False),
        ("v0_port", "int32", 0, 0, False),
        ("endpoints", "UpdateMetadataEndpoint", 1, 8, False),
        ("rack", "string", 2, 8, False),
    )

    def __init__(
        self,
        *,
        id: int = 0,
        v0_host: str = "",
        v0_port: int = 0,
        endpoints: list[UpdateMetadataEndpoint] | None = None,
        rack: str | None = "",
    ) -> None:
        self.id: int = id
        """Broker id."""
        self.v0_host: str = v0_host
        """v0. Host; v0 only."""
        self.v0_port: int = v0_port
        """v0. TCP port; v0 only."""
        self.endpoints: list[UpdateMetadataEndpoint] = [] if endpoints is None else endpoints
        """v1+. The broker's endpoints, one for each listener."""
        self.rack: str | None = rack
        """v2+. The broker's broker.rack; null when it is not configured."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateMetadataBroker":
        self = cls.__new__(cls)
        self.id = reader.int32()
        if version >= 1:
            self.v0_host = ""
        else:
            self.v0_host = reader.string()
        if version >= 1:
            self.v0_port = 0
        else:
            self.v0_port = reader.int32()
        if version >= 1:
            if version >= 6:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            endpoints: list[UpdateMetadataEndpoint] = []
            for _ in range(count):
                endpoints.append(UpdateMetadataEndpoint.read(reader, version))
            self.endpoints = endpoints
        else:
            self.endpoints = []
        if version >= 6:
            self.rack = reader.compact_nullable_string()
        elif version >= 2:
            self.rack = reader.nullable_string()
        else:
            self.rack = ""
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.id)
        if version < 1:
            writer.string(self.v0_host)
        if version < 1:
            writer.int32(self.v0_port)
        if version >= 1:
            if version >= 6:
                writer.compact_array_count(len(self.endpoints))
            else:
                writer.array_count(len(self.endpoints))
            for update_metadata_endpoint in self.endpoints:
                update_metadata_endpoint.write(writer, version)
        if version >= 6:
            writer.compact_nullable_string(self.rack)
        elif version >= 2:
            writer.nullable_string(self.rack)
        if version >= 6:
            writer.append(b"\x00")


class UpdateMetadataRequest(Message):
    """Request of UpdateMetadata."""

    __slots__ = ("controller_id", "is_kraft_controller", "type", "controller_epoch", "broker_epoch", "ungrouped_partition_states", "topic_states", "live_brokers")
    API_KEY = 6
    VERSIONS = (0, 8)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("controller_id", "int32", 0, 8, False),
        ("is_kraft_controller", "bool", 8, 8, False),
        ("type", "int8", 8, 8, True),
        ("controller_epoch", "int32", 0, 8, False),
        ("broker_epoch", "int64", 5, 8, False),
        ("ungrouped_partition_states", "UpdateMetadataPartitionState", 0, 4, False),
        ("topic_states", "UpdateMetadataTopicState", 5, 8, False),
        ("live_brokers", "UpdateMetadataBroker", 0, 8, False),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        type: int = 0,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        ungrouped_partition_states: list[UpdateMetadataPartitionState] | None = None,
        topic_states: list[UpdateMetadataTopicState] | None = None,
        live_brokers: list[UpdateMetadataBroker] | None = None,
    ) -> None:
        self.controller_id: int = controller_id
        """Broker that is the controller."""
        self.is_kraft_controller: bool = is_kraft_controller
        """v8+. True: the sender is a KRaft controller, during a migration (KIP-866)."""
        self.type: int = type
        """v8+. Tagged: 0 = unknown, 1 = some partitions (incremental), 2 = all partitions (full)."""
        self.controller_epoch: int = controller_epoch
        """Epoch of the controller; an older one than known is STALE_CONTROLLER_EPOCH."""
        self.broker_epoch: int = broker_epoch
        """v5+. Epoch of the registration that the request is for; an older one is STALE_BROKER_EPOCH; -1 = not checked."""
        self.ungrouped_partition_states: list[UpdateMetadataPartitionState] = [] if ungrouped_partition_states is None else ungrouped_partition_states
        """v0-4. States, each with its topic; up to v4."""
        self.topic_states: list[UpdateMetadataTopicState] = [] if topic_states is None else topic_states
        """v5+. States grouped by topic; from v5 on."""
        self.live_brokers: list[UpdateMetadataBroker] = [] if live_brokers is None else live_brokers
        """All brokers that are registered."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateMetadataRequest":
        self = cls.__new__(cls)
        if version >= 8:
            (
                self.controller_id,
                self.is_kraft_controller,
                self.controller_epoch,
                self.broker_epoch,
            ) = reader.fixed(_IZIQ)
        elif version >= 5:
            self.controller_id, self.controller_epoch, self.broker_epoch = reader.fixed(_IIQ)
            self.is_kraft_controller = False
        else:
            self.controller_id, self.controller_epoch = reader.fixed(_II)
            self.is_kraft_controller = False
            self.broker_epoch = -1
        if version >= 5:
            self.ungrouped_partition_states = []
        else:
            count = reader.array_count()
            ungrouped_partition_states: list[UpdateMetadataPartitionState] = []
            for _ in range(count):
                ungrouped_partition_states.append(UpdateMetadataPartitionState.read(reader, version))
            self.ungrouped_partition_states = ungrouped_partition_states
        if version >= 5:
            if version >= 6:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            topic_states: list[UpdateMetadataTopicState] = []
            for _ in range(count):
                topic_states.append(UpdateMetadataTopicState.read(reader, version))
            self.topic_states = topic_states
        else:
            self.topic_states = []
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        live_brokers: list[UpdateMetadataBroker] = []
        for _ in range(count):
            live_brokers.append(UpdateMetadataBroker.read(reader, version))
        self.live_brokers = live_brokers
        self.type = 0
        if version >= 6:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 8:
                    self.type = reader.int8()
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 8:
            writer.append(_IZIQ.pack(
                self.controller_id,
                self.is_kraft_controller,
                self.controller_epoch,
                self.broker_epoch,
            ))
        elif version >= 5:
            if self.is_kraft_controller:
                raise not_carried("UpdateMetadataRequest", "is_kraft_controller", version)
            writer.append(_IIQ.pack(
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
            ))
        else:
            if self.is_kraft_controller:
                raise not_carried("UpdateMetadataRequest", "is_kraft_controller", version)
            writer.append(_II.pack(self.controller_id, self.controller_epoch))
        if version >= 5:
            if self.ungrouped_partition_states:
                raise not_carried("UpdateMetadataRequest", "ungrouped_partition_states", version)
        else:
            writer.array_count(len(self.ungrouped_partition_states))
            for update_metadata_partition_state in self.ungrouped_partition_states:
                update_metadata_partition_state.write(writer, version)
        if version >= 5:
            if version >= 6:
                writer.compact_array_count(len(self.topic_states))
            else:
                writer.array_count(len(self.topic_states))
            for update_metadata_topic_state in self.topic_states:
                update_metadata_topic_state.write(writer, version)
        else:
            if self.topic_states:
                raise not_carried("UpdateMetadataRequest", "topic_states", version)
        if version >= 6:
            writer.compact_array_count(len(self.live_brokers))
        else:
            writer.array_count(len(self.live_brokers))
        for update_metadata_broker in self.live_brokers:
            update_metadata_broker.write(writer, version)
        if version >= 6:
            tagged: list[tuple[int, Writer]] = []
            if self.type != 0 and version >= 8:
                value = Writer()
                value.int8(self.type)
                tagged.append((0, value))
            elif self.type != 0:
                raise not_carried("UpdateMetadataRequest", "type", version)
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
        else:
            if self.type != 0:
                raise not_carried("UpdateMetadataRequest", "type", version)


class UpdateMetadataResponse(Message):
    """Answer of UpdateMetadata."""

    __slots__ = ("error_code",)
    API_KEY = 6
    VERSIONS = (0, 8)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 8, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
    ) -> None:
        self.error_code: int = error_code
        """STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH, …; 0 = taken."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateMetadataResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 6:
            writer.append(b"\x00")
