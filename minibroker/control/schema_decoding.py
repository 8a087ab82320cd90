"""Values of records in the framing of Confluent's serializers, decoded by their schemas.

    payload ─► the decoder of its schema ─► a value that JSON has

Avro is read by Apache Avro's own reader, JSON Schema is JSON. A value may be hostile: an array of
nulls has a length and no bytes, so the parts of a value are counted. It runs in a thread.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import avro.io
import avro.name
import avro.schema
import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Decode = Callable[[bytes], Any]

PARTS_MAX: Final = 20_000
"""Fields, items and branches of one value."""


class ValueDecoder(NamedTuple):
    """The decoder of one schema. Constant."""

    kind: str
    """`AVRO` or `JSON`."""
    decode: Decode
    """Returns the value of a payload. Raises ValueError."""


def decoder_of(kind: str, text: str, references: Sequence[str]) -> ValueDecoder | None:
    """Return the decoder of a schema; None for a kind that is not decoded, or a schema that the
    library does not read.
    """
    if kind == "JSON":
        return ValueDecoder(kind, _json)
    if kind != "AVRO":
        return None
    names = avro.name.Names(validate_names=False)
    try:
        for reference in references:
            avro.schema.make_avsc_object(json.loads(reference), names, validate_names=False)
        schema = avro.schema.make_avsc_object(json.loads(text), names, validate_names=False)
    except (avro.errors.AvroException, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return ValueDecoder(kind, lambda payload: _avro(schema, payload))


def _json(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None


class _CountingReader(avro.io.DatumReader):
    """Reads a value of at most `PARTS_MAX` parts."""

    def __init__(self, schema: Any) -> None:
        super().__init__(schema)
        self._parts = 0

    def read_data(self, writers_schema: Any, readers_schema: Any, decoder: Any) -> Any:
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise ValueError(f"it has more than {PARTS_MAX:,} parts")
        return super().read_data(writers_schema, readers_schema, decoder)


def _avro(schema: Any, payload: bytes) -> Any:
    try:
        decoder = avro.io.BinaryDecoder(io.BytesIO(payload))
        value = _CountingReader(schema).read(decoder)
        msgspec.json.encode(value)  # of a kind that JSON has
    except ValueError:
        raise
    except Exception as error:  # the library raises whatever a step of it does on such bytes
        raise ValueError(f"it is no Avro of its schema ({type(error).__name__})") from None
    return value
