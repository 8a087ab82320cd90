"""A schema that its format takes: the result of `parse`, an immutable value."""

from __future__ import annotations

from dataclasses import dataclass


class InvalidSchemaError(ValueError):
    """A schema that its format does not take, or that asks for more work than is allowed."""


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A valid schema, with the references that it was parsed with."""

    schema_type: str
    """AVRO, JSON or PROTOBUF."""

    canonical: str
    """The text that decides whether two registrations are one, and that is stored."""

    normalized: str
    """The text in place of `canonical` for a registration with `normalize=true`."""

    content: object
    """The format's own form, for `compatibility`: AvroContent, JsonContent or ProtobufContent."""
