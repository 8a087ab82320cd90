"""Records of the topic `_schemas` in Confluent's format: entry ◄─► key and value, both JSON.

| key | value |
|---|---|
| `{"keytype":"SCHEMA","subject":…,"version":…,"magic":1}` | a version; none: deleted for good |
| `{"keytype":"DELETE_SUBJECT","subject":…,"magic":0}` | the last version that is soft deleted |
| `{"keytype":"CLEAR_SUBJECT","subject":…,"magic":0}` | all versions of the subject are gone |
| `{"keytype":"CONFIG","subject":…,"magic":0}` | a configuration; none: removed |
| `{"keytype":"MODE","subject":…,"magic":0}` | a mode; none: removed |
| `{"keytype":"CONTEXT","tenant":"default","context":…,"magic":0}` | a context |
| `{"keytype":"NOOP","magic":0}` | none |
| `{"keytype":"NOOP","context":…,"magic":0}` | the highest id that a context ever gave |

The bytes of a key are those that Confluent's registry writes, so that a record of either takes the
place of one of the other when the topic is compacted. The last row is none of theirs: since 7.0
they read no field of a NOOP that they do not know, and no value of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

TOPIC: Final = "_schemas"
NUMBER_MAX: Final = 2**31 - 1
"""The highest id, and the highest version."""
AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"


class Reference(NamedTuple):
    """A schema that another one refers to."""

    name: str
    """As the text has it: a full name of Avro, a file of Protobuf, a URI of JSON Schema."""
    subject: str
    version: int


class SchemaText(NamedTuple):
    """A schema without its id: two with the same fields are one schema of a context."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    """JSON, with sorted keys."""
    rule_set: str | None = None
    """JSON, with sorted keys."""


class VersionEntry(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: SchemaText
    is_deleted: bool = False


class ErasedVersion(NamedTuple):
    """A version that was deleted for good."""

    subject: str
    version: int


class DeletedSubject(NamedTuple):
    """The soft deletion of a subject, up to a version."""

    subject: str
    version: int


class ClearedSubject(NamedTuple):
    """The end of all versions of a subject."""

    subject: str


class SettingsEntry(NamedTuple):
    """A configuration; `subject` None: the one of all."""

    subject: str | None
    values: Mapping[str, Any] | None
    """None: it is removed."""


class ModeEntry(NamedTuple):
    """A mode; `subject` None: the one of all."""

    subject: str | None
    mode: str | None
    """None: it is removed."""


class ContextEntry(NamedTuple):
    """A context, which its first subject brings."""

    context: str


class HighestId(NamedTuple):
    """The highest id that a context ever gave, once no version may be left that has it."""

    context: str
    schema_id: int


Entry: TypeAlias = (
    VersionEntry
    | ErasedVersion
    | DeletedSubject
    | ClearedSubject
    | SettingsEntry
    | ModeEntry
    | ContextEntry
    | HighestId
)

CONFIG_FIELDS: Final = {
    "alias": str,
    "normalize": bool,
    "compatibilityLevel": str,
    "compatibilityGroup": str,
    "defaultMetadata": dict,
    "overrideMetadata": dict,
    "defaultRuleSet": dict,
    "overrideRuleSet": dict,
}
"""Fields of a configuration → their type."""


class UnreadableError(Exception):
    """A record that is none of the registry's."""


# Writing.


def encode(entry: Entry) -> tuple[bytes, bytes | None]:
    """Return key and value of an entry."""
    key, value = _parts_of(entry)
    return _text(key), None if value is None else _text(value)


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _key(kind: str, magic: int = 0, **fields: Any) -> dict[str, Any]:
    return {"keytype": kind, **fields, "magic": magic}


def _parts_of(entry: Entry) -> tuple[dict[str, Any], dict[str, Any] | None]:
    match entry:
        case VersionEntry(subject, version):
            return _key("SCHEMA", 1, subject=subject, version=version), _version_value(entry)
        case ErasedVersion(subject, version):
            return _key("SCHEMA", 1, subject=subject, version=version), None
        case DeletedSubject(subject, version):
            value = {"subject": subject, "version": version}
            return _key("DELETE_SUBJECT", subject=subject), value
        case ClearedSubject(subject):
            return _key("CLEAR_SUBJECT", subject=subject), {"subject": subject}
        case SettingsEntry(subject, values):
            return _key("CONFIG", subject=subject), None if values is None else dict(values)
        case ModeEntry(subject, mode):
            return _key("MODE", subject=subject), None if mode is None else {"mode": mode}
        case ContextEntry(context):
            fields = {"tenant": "default", "context": context}
            return {"keytype": "CONTEXT", **fields, "magic": 0}, fields
        case HighestId(context, schema_id):
            return _key("NOOP", context=context), {"id": schema_id}


def _version_value(entry: VersionEntry) -> dict[str, Any]:
    schema = entry.schema
    value: dict[str, Any] = {
        "subject": entry.subject,
        "version": entry.version,
        "id": entry.schema_id,
    }
    value |= described(schema)
    value["deleted"] = entry.is_deleted
    return value


def described(schema: SchemaText) -> dict[str, Any]:
    """Return the fields of a schema as JSON has them; those that say nothing are left out."""
    fields: dict[str, Any] = {}
    if schema.schema_type != AVRO:
        fields["schemaType"] = schema.schema_type
    if schema.references:
        fields["references"] = [reference._asdict() for reference in schema.references]
    if schema.metadata is not None:
        fields["metadata"] = json.loads(schema.metadata)
    if schema.rule_set is not None:
        fields["ruleSet"] = json.loads(schema.rule_set)
    fields["schema"] = schema.text
    return fields


def sorted_json(value: Any) -> str | None:
    """Return a value as JSON with sorted keys, None for one that says nothing."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")) if value else None


# Reading.


class _Key(msgspec.Struct):
    keytype: str
    subject: str | None = None
    version: int = 0
    context: str | None = None


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _Version(msgspec.Struct, rename="camel"):
    id: int
    schema: str
    schema_type: str | None = None
    references: list[_Reference] | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None
    deleted: bool = False


class _Subject(msgspec.Struct):
    subject: str
    version: int = 0


class _Id(msgspec.Struct):
    id: int


class _Mode(msgspec.Struct):
    mode: str


def decode(key: bytes | None, value: bytes | None) -> Entry | None:
    """Return the entry of a record, None for one without a meaning. Raises UnreadableError."""
    if key is None:
        raise UnreadableError("it has no key")
    try:
        return _entry_of(msgspec.json.decode(key, type=_Key), value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnreadableError(str(error)) from None


def _entry_of(key: _Key, value: bytes | None) -> Entry | None:
    """Raises UnreadableError, and the errors of msgspec."""
    match key.keytype:
        case "SCHEMA":
            return _version_of(key, value)
        case "CONFIG":
            fields = None if value is None else msgspec.json.decode(value, type=dict[str, Any])
            return SettingsEntry(key.subject, None if fields is None else usable_fields(fields))
        case "MODE":
            mode = None if value is None else msgspec.json.decode(value, type=_Mode).mode
            return ModeEntry(key.subject, mode)
        case "DELETE_SUBJECT" if value is not None:
            deletion = msgspec.json.decode(value, type=_Subject)
            return DeletedSubject(deletion.subject, deletion.version)
        case "CLEAR_SUBJECT" if value is not None:
            return ClearedSubject(msgspec.json.decode(value, type=_Subject).subject)
        case "CONTEXT" if value is not None and key.context is not None:
            return ContextEntry(key.context)
        case "NOOP" if value is not None and key.context is not None:
            schema_id = msgspec.json.decode(value, type=_Id).id
            return HighestId(key.context, _checked_id(schema_id))
    return None


def _checked_id(schema_id: int) -> int:
    """Return an id that can be one. Raises UnreadableError."""
    if not 0 <= schema_id <= NUMBER_MAX:
        raise UnreadableError(f"its id is {schema_id}")
    return schema_id


def usable_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration that the registry knows, with values of their types."""
    return {
        name: fields[name]
        for name, kind in CONFIG_FIELDS.items()
        if isinstance(fields.get(name), kind)
    }


def _version_of(key: _Key, value: bytes | None) -> Entry:
    """Raises UnreadableError, and the errors of msgspec."""
    if key.subject is None or not 1 <= key.version <= NUMBER_MAX:
        raise UnreadableError(f"its key has subject {key.subject!r:.100}, version {key.version}")
    if value is None:
        return ErasedVersion(key.subject, key.version)
    fields = msgspec.json.decode(value, type=_Version)
    references = tuple(
        Reference(reference.name, reference.subject, reference.version)
        for reference in fields.references or ()
    )
    schema = SchemaText(
        fields.schema_type or AVRO,
        fields.schema,
        references,
        sorted_json(fields.metadata),
        sorted_json(fields.rule_set),
    )
    return VersionEntry(key.subject, key.version, _checked_id(fields.id), schema, fields.deleted)
