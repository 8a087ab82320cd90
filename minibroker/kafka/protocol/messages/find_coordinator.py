# fmt: off
# ruff: noqa: E501
"""FindCoordinator: key 10, versions 0 to 6.

Clients ask which broker coordinates a group, a transactional id or a share partition.

Versions:
1: Kind of key; a message beside the error code (KIP-98).
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Flexible encoding (KIP-482).
4: Many keys at once (KIP-699).
5: TRANSACTION_ABORTABLE may be answered (KIP-890).
6: Key type 2 for share partitions (KIP-932).

Generated from protocol_specs/apis/10_find_coordinator.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class FindCoordinatorRequest(Message):
    """Request of FindCoordinator."""

    __slots__ = ("key", "key_type", "coordinator_keys")
    API_KEY = 10
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("key", "string", 0, 3, False),
        ("key_type", "int8", 1, 6, False),
        ("coordinator_keys", "string", 4, 6, False),
    )

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] | None = None,
    ) -> None:
        self.key: str = key
        """v0-3. Group name or transactional id; up to v3."""
        self.key_type: int = key_type
        """v1+. 0 = group, 1 = transactional id, 2 = share partition (group:topic-id:partition)."""
        self.coordinator_keys: list[str] = [] if coordinator_keys is None else coordinator_keys
        """v4+. Keys to resolve, all of the same kind; from v4 on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FindCoordinatorRequest":
        self = cls.__new__(cls)
        if version >= 4:
            self.key = ""
        elif version >= 3:
            self.key = reader.compact_string()
        else:
            self.key = reader.string()
        if version >= 1:
            self.key_type = reader.int8()
        else:
            self.key_type = 0
        if version >= 4:
            count = reader.compact_array_count()
            coordinator_keys: list[str] = []
            for _ in range(count):
                coordinator_keys.append(reader.compact_string())
            self.coordinator_keys = coordinator_keys
        else:
            self.coordinator_keys = []
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            if self.key != "":
                raise not_carried("FindCoordinatorRequest", "key", version)
        elif version >= 3:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        if version >= 1:
            writer.int8(self.key_type)
        else:
            if self.key_type != 0:
                raise not_carried("FindCoordinatorRequest", "key_type", version)
        if version >= 4:
            writer.compact_array_count(len(self.coordinator_keys))
            for text in self.coordinator_keys:
                writer.compact_string(text)
        else:
            if self.coordinator_keys:
                raise not_carried("FindCoordinatorRequest", "coordinator_keys", version)
        if version >= 3:
            writer.append(b"\x00")


class Coordinator(Message):
    """One result per key; from v4 on."""

    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("key", "string", 4, 6, False),
        ("node_id", "int32", 4, 6, False),
        ("host", "string", 4, 6, False),
        ("port", "int32", 4, 6, False),
        ("error_code", "error_code", 4, 6, False),
        ("error_message", "string", 4, 6, False),
    )

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key: str = key
        """Key this result answers."""
        self.node_id: int = node_id
        """Broker id of the coordinator; -1 on error."""
        self.host: str = host
        """Its host name or address; empty on error."""
        self.port: int = port
        """Its TCP port; -1 on error."""
        self.error_code: int = error_code
        """COORDINATOR_NOT_AVAILABLE, authorization errors, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Coordinator":
        self = cls.__new__(cls)
        self.key = reader.compact_string()
        self.node_id = reader.int32()
        self.host = reader.compact_string()
        self.port, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.key)
        writer.int32(self.node_id)
        writer.compact_string(self.host)
        writer.append(_IH.pack(self.port, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class FindCoordinatorResponse(Message):
    """Answer of FindCoordinator."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators")
    API_KEY = 10
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 6, False),
        ("error_code", "error_code", 0, 3, False),
        ("error_message", "string", 1, 3, False),
        ("node_id", "int32", 0, 3, False),
        ("host", "string", 0, 3, False),
        ("port", "int32", 0, 3, False),
        ("coordinators", "Coordinator", 4, 6, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """v0-3. COORDINATOR_NOT_AVAILABLE, authorization errors, …; 0 on success. Up to v3."""
        self.error_message: str | None = error_message
        """v1-3. Human-readable reason for error_code; null when there is nothing to add."""
        self.node_id: int = node_id
        """v0-3. Broker id of the coordinator; -1 on error."""
        self.host: str = host
        """v0-3. Its host name or address; empty on error."""
        self.port: int = port
        """v0-3. Its TCP port; -1 on error."""
        self.coordinators: list[Coordinator] = [] if coordinators is None else coordinators
        """v4+. One result per key; from v4 on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FindCoordinatorResponse":
        self = cls.__new__(cls)
        if version >= 4:
            self.throttle_time_ms = reader.int32()
            self.error_code = 0
        elif version >= 1:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.error_code = reader.int16()
            self.throttle_time_ms = 0
        if version >= 4:
            self.error_message = ""
        elif version >= 3:
            self.error_message = reader.compact_nullable_string()
        elif version >= 1:
            self.error_message = reader.nullable_string()
        else:
            self.error_message = ""
        if version >= 4:
            self.node_id = 0
        else:
            self.node_id = reader.int32()
        if version >= 4:
            self.host = ""
        elif version >= 3:
            self.host = reader.compact_string()
        else:
            self.host = reader.string()
        if version >= 4:
            self.port = 0
        else:
            self.port = reader.int32()
        if version >= 4:
            count = reader.compact_array_count()
            coordinators: list[Coordinator] = []
            for _ in range(count):
                coordinators.append(Coordinator.read(reader, version))
            self.coordinators = coordinators
        else:
            self.coordinators = []
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            if self.error_code != 0:
                raise not_carried("FindCoordinatorResponse", "error_code", version)
            writer.int32(self.throttle_time_ms)
        elif version >= 1:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            writer.int16(self.error_code)
        if version >= 4:
            pass
        elif version >= 3:
            writer.compact_nullable_string(self.error_message)
        elif version >= 1:
            writer.nullable_string(self.error_message)
        if version >= 4:
            if self.node_id != 0:
                raise not_carried("FindCoordinatorResponse", "node_id", version)
        else:
            writer.int32(self.node_id)
        if version >= 4:
            if self.host != "":
                raise not_carried("FindCoordinatorResponse", "host", version)
        elif version >= 3:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        if version >= 4:
            if self.port != 0:
                raise not_carried("FindCoordinatorResponse", "port", version)
        else:
            writer.int32(self.port)
        if version >= 4:
            writer.compact_array_count(len(self.coordinators))
            for coordinator in self.coordinators:
                coordinator.write(writer, version)
        else:
            if self.coordinators:
                raise not_carried("FindCoordinatorResponse", "coordinators", version)
        if version >= 3:
            writer.append(b"\x00")
