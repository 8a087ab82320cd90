# fmt: off
# ruff: noqa: E501
"""ApiVersions: key 18, versions 0 to 5.

First request of most clients: which APIs and versions the broker serves. Works before authentication.

Versions:
1: Throttle time in the response.
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Client software name and version, features; flexible body, but the response header stays v0 (KIP-511, KIP-584).
4: Features with a minimum version of 0 may be listed (KAFKA-17011).
5: Client tells the cluster and node it means; REBOOTSTRAP_REQUIRED on mismatch (KIP-1242).

Generated from protocol_specs/apis/18_api_versions.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_HH = Struct(">hh")
_HHH = Struct(">hhh")


class ApiVersionsRequest(Message):
    """Request of ApiVersions."""

    __slots__ = ("client_software_name", "client_software_version", "cluster_id", "node_id")
    API_KEY = 18
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("client_software_name", "string", 3, 5, False),
        ("client_software_version", "string", 3, 5, False),
        ("cluster_id", "string", 5, 5, False),
        ("node_id", "int32", 5, 5, False),
    )

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
    ) -> None:
        self.client_software_name: str = client_software_name
        """v3+. Library the client is built with; letters, digits, '-' and '.', else INVALID_REQUEST."""
        self.client_software_version: str = client_software_version
        """v3+. Version of that library; same alphabet."""
        self.cluster_id: str | None = cluster_id
        """v5+. Cluster the client wants to reach; null skips the check. Counts only together with node_id."""
        self.node_id: int = node_id
        """v5+. Broker the client wants to reach; -1 skips the check."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ApiVersionsRequest":
        self = cls.__new__(cls)
        if version >= 3:
            self.client_software_name = reader.compact_string()
        else:
            self.client_software_name = ""
        if version >= 3:
            self.client_software_version = reader.compact_string()
        else:
            self.client_software_version = ""
        if version >= 5:
            self.cluster_id = reader.compact_nullable_string()
        else:
            self.cluster_id = None
        if version >= 5:
            self.node_id = reader.int32()
        else:
            self.node_id = -1
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.client_software_name)
        if version >= 3:
            writer.compact_string(self.client_software_version)
        if version >= 5:
            writer.compact_nullable_string(self.cluster_id)
        if version >= 5:
            writer.int32(self.node_id)
        if version >= 3:
            writer.append(b"\x00")


class ApiVersion(Message):
    """One entry per API served."""

    __slots__ = ("api_key", "min_version", "max_version")
    JSON_FIELDS: JsonFields = (
        ("api_key", "int16", 0, 5, False),
        ("min_version", "int16", 0, 5, False),
        ("max_version", "int16", 0, 5, False),
    )

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key: int = api_key
        """Number of the API."""
        self.min_version: int = min_version
        """Lowest version served."""
        self.max_version: int = max_version
        """Highest version served."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ApiVersion":
        self = cls.__new__(cls)
        self.api_key, self.min_version, self.max_version = reader.fixed(_HHH)
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HHH.pack(self.api_key, self.min_version, self.max_version))
        if version >= 3:
            writer.append(b"\x00")


class SupportedFeatureKey(Message):
    """Tagged: cluster features this broker could run, with their version ranges (KIP-584)."""

    __slots__ = ("name", "min_version", "max_version")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 3, 5, False),
        ("min_version", "int16", 3, 5, False),
        ("max_version", "int16", 3, 5, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name: str = name
        """Feature, by name, e.g. group.version."""
        self.min_version: int = min_version
        """Lowest level of the feature this broker can run."""
        self.max_version: int = max_version
        """Highest level of the feature this broker can run."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SupportedFeatureKey":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.min_version, self.max_version = reader.fixed(_HH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(_HH.pack(self.min_version, self.max_version))
        writer.append(b"\x00")


class FinalizedFeatureKey(Message):
    """Tagged: feature levels in force in the whole cluster."""

    __slots__ = ("name", "max_version_level", "min_version_level")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 3, 5, False),
        ("max_version_level", "int16", 3, 5, False),
        ("min_version_level", "int16", 3, 5, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name: str = name
        """Feature, by name."""
        self.max_version_level: int = max_version_level
        """Level in force."""
        self.min_version_level: int = min_version_level
        """Lower end of the range in force."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FinalizedFeatureKey":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.max_version_level, self.min_version_level = reader.fixed(_HH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(_HH.pack(self.max_version_level, self.min_version_level))
        writer.append(b"\x00")


class ApiVersionsResponse(Message):
    """Answer of ApiVersions."""

    __slots__ = ("error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch", "finalized_features", "zk_migration_ready")
    API_KEY = 18
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 5, False),
        ("api_keys", "ApiVersion", 0, 5, False),
        ("throttle_time_ms", "int32", 1, 5, False),
        ("supported_features", "SupportedFeatureKey", 3, 5, True),
        ("finalized_features_epoch", "int64", 3, 5, True),
        ("finalized_features", "FinalizedFeatureKey", 3, 5, True),
        ("zk_migration_ready", "bool", 3, 5, True),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] | None = None,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] | None = None,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] | None = None,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code: int = error_code
        """UNSUPPORTED_VERSION for a version we lack (answered in v0 format, with our own range of this API); else 0."""
        self.api_keys: list[ApiVersion] = [] if api_keys is None else api_keys
        """One entry per API served."""
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.supported_features: list[SupportedFeatureKey] = [] if supported_features is None else supported_features
        """v3+. Tagged: cluster features this broker could run, with their version ranges (KIP-584)."""
        self.finalized_features_epoch: int = finalized_features_epoch
        """v3+. Tagged: counter of changes to the finalized features; -1 when there are none to tell."""
        self.finalized_features: list[FinalizedFeatureKey] = [] if finalized_features is None else finalized_features
        """v3+. Tagged: feature levels in force in the whole cluster."""
        self.zk_migration_ready: bool = zk_migration_ready
        """v3+. Tagged: true only from a KRaft controller prepared to take over a ZooKeeper cluster (KIP-866)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ApiVersionsResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        api_keys: list[ApiVersion] = []
        for _ in range(count):
            api_keys.append(ApiVersion.read(reader, version))
        self.api_keys = api_keys
        if version >= 1:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        self.supported_features = []
        self.finalized_features_epoch = -1
        self.finalized_features = []
        self.zk_migration_ready = False
        if version >= 3:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    count = reader.compact_array_count()
                    supported_features: list[SupportedFeatureKey] = []
                    for _ in range(count):
                        supported_features.append(SupportedFeatureKey.read(reader, version))
                    self.supported_features = supported_features
                elif tag == 1:
                    self.finalized_features_epoch = reader.int64()
                elif tag == 2:
                    count = reader.compact_array_count()
                    finalized_features: list[FinalizedFeatureKey] = []
                    for _ in range(count):
                        finalized_features.append(FinalizedFeatureKey.read(reader, version))
                    self.finalized_features = finalized_features
                elif tag == 3:
                    self.zk_migration_ready = reader.boolean()
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 3:
            writer.compact_array_count(len(self.api_keys))
        else:
            writer.array_count(len(self.api_keys))
        for api_version in self.api_keys:
            api_version.write(writer, version)
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version >= 3:
            tagged: list[tuple[int, Writer]] = []
            if self.supported_features:
                value = Writer()
                value.compact_array_count(len(self.supported_features))
                for supported_feature_key in self.supported_features:
                    supported_feature_key.write(value, version)
                tagged.append((0, value))
            if self.finalized_features_epoch != -1:
                value = Writer()
                value.int64(self.finalized_features_epoch)
                tagged.append((1, value))
            if self.finalized_features:
                value = Writer()
                value.compact_array_count(len(self.finalized_features))
                for finalized_feature_key in self.finalized_features:
                    finalized_feature_key.write(value, version)
                tagged.append((2, value))
            if self.zk_migration_ready:
                value = Writer()
                value.boolean(self.zk_migration_ready)
                tagged.append((3, value))
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
