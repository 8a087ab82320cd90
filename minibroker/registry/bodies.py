"""Bodies of requests, queries and parts of paths: texts into values, each one checked."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from minibroker.registry.changing import NEW
from minibroker.registry.entries import AVRO, NUMBER_MAX, Reference, SchemaText, sorted_json
from minibroker.registry.errors import (
    NOT_FOUND,
    UNPROCESSABLE,
    RegistryError,
    invalid_level,
    invalid_mode,
    invalid_schema,
    invalid_version,
)
from minibroker.registry.levels import LEVELS
from minibroker.registry.state import MODES
from minibroker.registry.subjects import qualified

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.registry.state import RegistryState

T = TypeVar("T")
LATEST: Final = NEW
"""The version that `latest` and -1 stand for."""
EXTRA_BYTES_MAX: Final = 64 << 10
"""Largest metadata of a schema, and largest rules."""
_DIGITS_MAX: Final = 10


class ReferenceBody(msgspec.Struct):
    """A reference as a client posts it."""

    name: str
    subject: str
    version: int


class SchemaBody(msgspec.Struct, rename="camel"):
    """A schema as a client posts it. Unknown fields are ignored: newer clients have some."""

    schema: str | None = None
    schema_type: str | None = None
    references: list[ReferenceBody] | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    rule_set: msgspec.Raw = msgspec.Raw(b"null")
    id: int | None = None
    version: int | None = None


class ConfigBody(msgspec.Struct, rename="camel"):
    """A configuration as a client puts it."""

    compatibility: str | None = None
    compatibility_level: str | None = None
    alias: str | None = None
    normalize: bool | None = None
    compatibility_group: str | None = None
    default_metadata: dict[str, Any] | None = None
    override_metadata: dict[str, Any] | None = None
    default_rule_set: dict[str, Any] | None = None
    override_rule_set: dict[str, Any] | None = None


class ModeBody(msgspec.Struct):
    """A mode as a client puts it."""

    mode: str | None = None


class PostedSchema(NamedTuple):
    """A schema of a body."""

    schema: SchemaText
    schema_id: int
    version: int


def parse_body(body: bytes | bytearray, shape: type[T]) -> T:
    """Return a body. Raises RegistryError: 400 for what is no JSON, 422 for a wrong field."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise RegistryError(UNPROCESSABLE, f"the body is wrong: {error}") from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RegistryError(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None


def schema_of(body: SchemaBody, state: RegistryState, context: str) -> PostedSchema:
    """Return the schema of a body; a reference to the latest version gets its number.

    Raises RegistryError.
    """
    schema_type = (body.schema_type or AVRO).upper()
    if not body.schema:
        raise invalid_schema("the body has no schema")
    references = tuple(_reference(reference, state, context) for reference in body.references or ())
    text = SchemaText(
        schema_type, body.schema, references, _extra(body.metadata), _extra(body.rule_set)
    )
    schema_id = NEW if body.id is None or body.id < 0 else body.id
    version = NEW if body.version is None or body.version <= 0 else body.version
    return PostedSchema(text, schema_id, version)


def _reference(body: ReferenceBody, state: RegistryState, context: str) -> Reference:
    version = body.version
    if version == LATEST:
        latest = state.latest(qualified(body.subject, context))
        version = version if latest is None else latest.version
    return Reference(body.name, body.subject, version)


def _extra(raw: msgspec.Raw) -> str | None:
    """Return metadata or rules as JSON with sorted keys. Raises RegistryError."""
    if len(raw) > EXTRA_BYTES_MAX:
        raise RegistryError(
            UNPROCESSABLE, f"metadata and rules may each have {EXTRA_BYTES_MAX} bytes"
        )
    try:
        value = msgspec.json.decode(raw, type=dict[str, Any] | None)
        return sorted_json(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
        raise RegistryError(UNPROCESSABLE, f"the body is wrong: {error}") from None


def config_fields(body: ConfigBody) -> dict[str, Any]:
    """Return the fields of a configuration that are set. Raises RegistryError(42203)."""
    fields = {
        name: value
        for name, value in json.loads(msgspec.json.encode(body)).items()
        if value is not None
    }
    level = fields.pop("compatibility", None) or fields.get("compatibilityLevel")
    if level is not None:
        if level.upper() not in LEVELS:
            raise invalid_level()
        fields["compatibilityLevel"] = level.upper()
    if not fields:
        raise invalid_level()
    return fields


def mode_of(body: ModeBody) -> str:
    """Return the mode of a body. Raises RegistryError(42204)."""
    if body.mode is None or body.mode.upper() not in MODES:
        raise invalid_mode()
    return body.mode.upper()


# Paths and queries.


def version_of(text: str) -> int:
    """Return the version of a path, LATEST for `latest` and -1. Raises RegistryError(42202)."""
    if text in ("latest", "-1"):
        return LATEST
    if _is_number(text) and 1 <= int(text) <= NUMBER_MAX:
        return int(text)
    raise invalid_version(text)


def id_of(text: str) -> int:
    """Return the id of a path. Raises RegistryError(404), as for a path that there is not."""
    if _is_number(text) and int(text) <= NUMBER_MAX:
        return int(text)
    raise RegistryError(NOT_FOUND, "HTTP 404 Not Found")


def _is_number(text: str) -> bool:
    return len(text) <= _DIGITS_MAX and text.isascii() and text.isdigit()


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return a switch of a query; everything but `true` is off, as in Java."""
    return query.get(name, "").lower() == "true"


def number(query: Mapping[str, str], name: str, default: int) -> int:
    """Return a number of a query; the default if it is missing or below 0. Raises
    RegistryError(404), as Confluent's does for what is none.
    """
    text = query.get(name)
    if text is None or text.startswith("-"):
        return default
    if not _is_number(text):
        raise RegistryError(NOT_FOUND, "HTTP 404 Not Found")
    return int(text)
