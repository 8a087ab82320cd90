# fmt: off
# ruff: noqa: E501
"""UpdateFeatures: key 57, versions 0 to 2.

Admin clients finalize cluster features at a level, or delete them; the controller acts (KIP-584).

Versions:
1: Kind of upgrade instead of the downgrade flag; validate_only (KIP-778).
2: No results per feature: all succeed or all fail.

Generated from protocol_specs/apis/57_update_features.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_HZ = Struct(">h?")
_HB = Struct(">hb")
_IH = Struct(">ih")


class FeatureUpdateKey(Message):
    """Features to change; naming one twice is refused."""

    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")
    JSON_FIELDS: JsonFields = (
        ("feature", "string", 0, 2, False),
        ("max_version_level", "int16", 0, 2, False),
        ("allow_downgrade", "bool", 0, 0, False),
        ("upgrade_type", "int8", 1, 2, False),
    )

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature: str = feature
        """Feature, by name."""
        self.max_version_level: int = max_version_level
        """Level to put in force; below 1 deletes the feature."""
        self.allow_downgrade: bool = allow_downgrade
        """v0. v0: true allows a lower level or deletion."""
        self.upgrade_type: int = upgrade_type
        """v1+. 1 = upgrade only, 2 = lossless downgrade, 3 = downgrade that may lose metadata."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "FeatureUpdateKey":
        self = cls.__new__(cls)
        self.feature = reader.compact_string()
        if version >= 1:
            self.max_version_level, self.upgrade_type = reader.fixed(_HB)
            self.allow_downgrade = False
        else:
            self.max_version_level, self.allow_downgrade = reader.fixed(_HZ)
            self.upgrade_type = 1
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.feature)
        if version >= 1:
            if self.allow_downgrade:
                raise not_carried("FeatureUpdateKey", "allow_downgrade", version)
            writer.append(_HB.pack(self.max_version_level, self.upgrade_type))
        else:
            if self.upgrade_type != 1:
                raise not_carried("FeatureUpdateKey", "upgrade_type", version)
            writer.append(_HZ.pack(self.max_version_level, self.allow_downgrade))
        writer.append(b"\x00")


class UpdateFeaturesRequest(Message):
    """Request of UpdateFeatures."""

    __slots__ = ("timeout_ms", "feature_updates", "validate_only")
    API_KEY = 57
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("timeout_ms", "int32", 0, 2, False),
        ("feature_updates", "FeatureUpdateKey", 0, 2, False),
        ("validate_only", "bool", 1, 2, False),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        """How long to wait for the change, in ms."""
        self.feature_updates: list[FeatureUpdateKey] = [] if feature_updates is None else feature_updates
        """Features to change; naming one twice is refused."""
        self.validate_only: bool = validate_only
        """v1+. True: run all checks and answer as if done, but change nothing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateFeaturesRequest":
        self = cls.__new__(cls)
        self.timeout_ms = reader.int32()
        count = reader.compact_array_count()
        feature_updates: list[FeatureUpdateKey] = []
        for _ in range(count):
            feature_updates.append(FeatureUpdateKey.read(reader, version))
        self.feature_updates = feature_updates
        if version >= 1:
            self.validate_only = reader.boolean()
        else:
            self.validate_only = False
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.timeout_ms)
        writer.compact_array_count(len(self.feature_updates))
        for feature_update_key in self.feature_updates:
            feature_update_key.write(writer, version)
        if version >= 1:
            writer.boolean(self.validate_only)
        else:
            if self.validate_only:
                raise not_carried("UpdateFeaturesRequest", "validate_only", version)
        writer.append(b"\x00")


class UpdatableFeatureResult(Message):
    """One result per feature; up to v1."""

    __slots__ = ("feature", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("feature", "string", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature: str = feature
        """Feature of this result."""
        self.error_code: int = error_code
        """FEATURE_UPDATE_FAILED, INVALID_UPDATE_VERSION, …; 0 = level is in force."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdatableFeatureResult":
        self = cls.__new__(cls)
        self.feature = reader.compact_string()
        self.error_code = reader.int16()
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.feature)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class UpdateFeaturesResponse(Message):
    """Answer of UpdateFeatures."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY = 57
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("results", "UpdatableFeatureResult", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """NOT_CONTROLLER, FEATURE_UPDATE_FAILED, INVALID_UPDATE_VERSION, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.results: list[UpdatableFeatureResult] = [] if results is None else results
        """v0-1. One result per feature; up to v1."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UpdateFeaturesResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        if version >= 2:
            self.results = []
        else:
            count = reader.compact_array_count()
            results: list[UpdatableFeatureResult] = []
            for _ in range(count):
                results.append(UpdatableFeatureResult.read(reader, version))
            self.results = results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        if version < 2:
            writer.compact_array_count(len(self.results))
            for updatable_feature_result in self.results:
                updatable_feature_result.write(writer, version)
        writer.append(b"\x00")
