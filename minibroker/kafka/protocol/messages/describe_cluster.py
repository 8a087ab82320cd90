# fmt: off
# ruff: noqa: E501
"""DescribeCluster: key 60, versions 0 to 2.

Admin clients ask for the cluster id, the controller and the live brokers (KIP-700).

Versions:
1: Brokers or controllers can be asked for (KIP-919).
2: Fenced brokers can be listed too (KIP-1073).

Generated from protocol_specs/apis/60_describe_cluster.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_ZB = Struct(">?b")
_ZBZ = Struct(">?b?")
_IH = Struct(">ih")


class DescribeClusterRequest(Message):
    """Request of DescribeCluster."""

    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")
    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("include_cluster_authorized_operations", "bool", 0, 2, False),
        ("endpoint_type", "int8", 1, 2, False),
        ("include_fenced_brokers", "bool", 2, 2, False),
    )

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        """True: answer what the caller may do on the cluster."""
        self.endpoint_type: int = endpoint_type
        """v1+. 1 = brokers, 2 = controllers; a broker refuses 2 with MISMATCHED_ENDPOINT_TYPE."""
        self.include_fenced_brokers: bool = include_fenced_brokers
        """v2+. True: list registered brokers that are fenced as well (KIP-1073)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeClusterRequest":
        self = cls.__new__(cls)
        if version >= 2:
            (
                self.include_cluster_authorized_operations,
                self.endpoint_type,
                self.include_fenced_brokers,
            ) = reader.fixed(_ZBZ)
        elif version >= 1:
            self.include_cluster_authorized_operations, self.endpoint_type = reader.fixed(_ZB)
            self.include_fenced_brokers = False
        else:
            self.include_cluster_authorized_operations = reader.boolean()
            self.endpoint_type = 1
            self.include_fenced_brokers = False
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.append(_ZBZ.pack(
                self.include_cluster_authorized_operations,
                self.endpoint_type,
                self.include_fenced_brokers,
            ))
        elif version >= 1:
            if self.include_fenced_brokers:
                raise not_carried("DescribeClusterRequest", "include_fenced_brokers", version)
            writer.append(_ZB.pack(
                self.include_cluster_authorized_operations,
                self.endpoint_type,
            ))
        else:
            if self.endpoint_type != 1:
                raise not_carried("DescribeClusterRequest", "endpoint_type", version)
            if self.include_fenced_brokers:
                raise not_carried("DescribeClusterRequest", "include_fenced_brokers", version)
            writer.boolean(self.include_cluster_authorized_operations)
        writer.append(b"\x00")


class DescribeClusterBroker(Message):
    """Nodes, at the addresses of the listener the request came in on."""

    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 2, False),
        ("host", "string", 0, 2, False),
        ("port", "int32", 0, 2, False),
        ("rack", "string", 0, 2, False),
        ("is_fenced", "bool", 2, 2, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker's id, as in broker.id."""
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""
        self.rack: str | None = rack
        """The node's broker.rack; null when it is not configured."""
        self.is_fenced: bool = is_fenced
        """v2+. True for a registered broker that may not serve clients at present."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeClusterBroker":
        self = cls.__new__(cls)
        self.broker_id = reader.int32()
        self.host = reader.compact_string()
        self.port = reader.int32()
        self.rack = reader.compact_nullable_string()
        if version >= 2:
            self.is_fenced = reader.boolean()
        else:
            self.is_fenced = False
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.broker_id)
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.compact_nullable_string(self.rack)
        if version >= 2:
            writer.boolean(self.is_fenced)
        else:
            if self.is_fenced:
                raise not_carried("DescribeClusterBroker", "is_fenced", version)
        writer.append(b"\x00")


class DescribeClusterResponse(Message):
    """Answer of DescribeCluster."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id", "brokers", "cluster_authorized_operations")
    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("endpoint_type", "int8", 1, 2, False),
        ("cluster_id", "string", 0, 2, False),
        ("controller_id", "int32", 0, 2, False),
        ("brokers", "DescribeClusterBroker", 0, 2, False),
        ("cluster_authorized_operations", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] | None = None,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Error that concerns the request as a whole; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.endpoint_type: int = endpoint_type
        """v1+. Kind of nodes listed: 1 = brokers, 2 = controllers."""
        self.cluster_id: str = cluster_id
        """Id of this cluster."""
        self.controller_id: int = controller_id
        """Broker to send admin requests to; -1 when there is none."""
        self.brokers: list[DescribeClusterBroker] = [] if brokers is None else brokers
        """Nodes, at the addresses of the listener the request came in on."""
        self.cluster_authorized_operations: int = cluster_authorized_operations
        """Bit set of ACL operations the caller may do on the cluster; -2147483648 = not asked for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeClusterResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        if version >= 1:
            self.endpoint_type = reader.int8()
        else:
            self.endpoint_type = 1
        self.cluster_id = reader.compact_string()
        self.controller_id = reader.int32()
        count = reader.compact_array_count()
        brokers: list[DescribeClusterBroker] = []
        for _ in range(count):
            brokers.append(DescribeClusterBroker.read(reader, version))
        self.brokers = brokers
        self.cluster_authorized_operations = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        if version >= 1:
            writer.int8(self.endpoint_type)
        else:
            if self.endpoint_type != 1:
                raise not_carried("DescribeClusterResponse", "endpoint_type", version)
        writer.compact_string(self.cluster_id)
        writer.int32(self.controller_id)
        writer.compact_array_count(len(self.brokers))
        for describe_cluster_broker in self.brokers:
            describe_cluster_broker.write(writer, version)
        writer.int32(self.cluster_authorized_operations)
        writer.append(b"\x00")
