# fmt: off
# ruff: noqa: E501
"""ControlledShutdown: key 7, versions 0 to 3.

A broker that wants to stop asks the controller to move its leaders to other brokers first.

Versions:
1: The usual request header; that of v0 has no client id.
2: Broker epoch (KIP-380).
3: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/07_controlled_shutdown.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IQ = Struct(">iq")


class ControlledShutdownRequest(Message):
    """Request of ControlledShutdown."""

    __slots__ = ("broker_id", "broker_epoch")
    API_KEY = 7
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 3, False),
        ("broker_epoch", "int64", 2, 3, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker that wants to stop."""
        self.broker_epoch: int = broker_epoch
        """v2+. Epoch of its registration; an older one is STALE_BROKER_EPOCH; -1 = not checked."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ControlledShutdownRequest":
        self = cls.__new__(cls)
        if version >= 2:
            self.broker_id, self.broker_epoch = reader.fixed(_IQ)
        else:
            self.broker_id = reader.int32()
            self.broker_epoch = -1
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.append(_IQ.pack(self.broker_id, self.broker_epoch))
        else:
            writer.int32(self.broker_id)
        if version >= 3:
            writer.append(b"\x00")


class RemainingPartition(Message):
    """Partitions that the broker still leads; it may stop once there are none."""

    __slots__ = ("topic_name", "partition_index")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 3, False),
        ("partition_index", "int32", 0, 3, False),
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
    def read(cls, reader: Reader, version: int) -> "RemainingPartition":
        self = cls.__new__(cls)
        if version >= 3:
            self.topic_name = reader.compact_string()
        else:
            self.topic_name = reader.string()
        self.partition_index = reader.int32()
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        writer.int32(self.partition_index)
        if version >= 3:
            writer.append(b"\x00")


class ControlledShutdownResponse(Message):
    """Answer of ControlledShutdown."""

    __slots__ = ("error_code", "remaining_partitions")
    API_KEY = 7
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 3, False),
        ("remaining_partitions", "RemainingPartition", 0, 3, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        remaining_partitions: list[RemainingPartition] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE, …; 0 = see the list."""
        self.remaining_partitions: list[RemainingPartition] = [] if remaining_partitions is None else remaining_partitions
        """Partitions that the broker still leads; it may stop once there are none."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ControlledShutdownResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        remaining_partitions: list[RemainingPartition] = []
        for _ in range(count):
            remaining_partitions.append(RemainingPartition.read(reader, version))
        self.remaining_partitions = remaining_partitions
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 3:
            writer.compact_array_count(len(self.remaining_partitions))
        else:
            writer.array_count(len(self.remaining_partitions))
        for remaining_partition in self.remaining_partitions:
            remaining_partition.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")
