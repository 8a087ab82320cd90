"""Values in the wire format of Confluent's serializers, made by the libraries of the formats."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from minibroker.pipeline.values.schema_registry import descriptors
from minibroker.pipeline.values.wire_format import header_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def avro(schema: Mapping[str, Any], id_: int) -> Callable[[Any], bytes]:
    """Return the function that encodes a value."""
    parsed_schema = fastavro.parse_schema(dict(schema))

    def encode(value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed_schema, value)
        return header_of(id_) + out.getvalue()

    return encode


def json_text(id_: int) -> Callable[[Any], bytes]:
    """Return the function that encodes a value as JSON."""
    return lambda value: header_of(id_) + json.dumps(value).encode()


def protobuf(text: str, message: str, indexes: bytes, id_: int) -> Callable[[Any], bytes]:
    """Return the function that encodes a value of a message of a .proto file."""
    files = descriptor_pb2.FileDescriptorSet.FromString(b64decode(descriptors(text, {})))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    message_class = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))

    def encode(value: Any) -> bytes:
        parsed_message = json_format.ParseDict(value, message_class())
        return header_of(id_) + indexes + bytes(parsed_message.SerializeToString())

    return encode


def record(**fields: Any) -> dict[str, Any]:
    """Return an Avro schema of a record with fields name → type."""
    return {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": name, "type": type_, **({"default": None} if "null" in type_ else {})}
            for name, type_ in fields.items()
        ],
    }
