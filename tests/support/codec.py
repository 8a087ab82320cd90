"""Messages as plain values: minibroker's codec with mappings in and out.

A test writes `{"name": "a", "count": 3}` and reads the same shape back. The annotations of the
generated constructors name the classes.
"""

from __future__ import annotations

import functools
import typing
from typing import Any

from minibroker.kafka.protocol.api_keys import APIS, load_messages
from minibroker.kafka.protocol.message import Message
from minibroker.kafka.protocol.primitives import Reader, Writer

KEYS = {api.module: key for key, api in APIS.items()}


class ApiCodec:
    """Request out, response in, for one API."""

    def __init__(self, name: str) -> None:
        self.api_key = KEYS[name]
        self.request, self.response = load_messages(self.api_key)

    def is_flexible(self, version: int) -> bool:
        """Return whether this version has tagged fields, headers included."""
        flexible_from = self.request.FLEXIBLE_FROM
        return flexible_from is not None and version >= flexible_from

    def encode_request(self, version: int, fields: dict[str, Any]) -> bytes:
        """Return the body of a request.

        Raises:
            ValueError: a field is set that the version cannot carry.
        """
        writer = Writer()
        _built(self.request, fields).write(writer, version)
        return b"".join(writer.parts())

    def decode_response(self, version: int, body: bytes) -> dict[str, Any]:
        """Return the answer as mappings and lists; the whole body must be read."""
        reader = Reader(body)
        answer = self.response.read(reader, version)
        assert reader.position == len(body), f"{len(body) - reader.position} bytes were not read"
        value: dict[str, Any] = _plain(answer)
        return value


@functools.cache
def codec_of(name: str) -> ApiCodec:
    """Return the codec of an API by its spec's name."""
    return ApiCodec(name)


@functools.cache
def _structs(message: Any) -> dict[str, type[Message]]:
    """Return field → class of the struct (or of the array's elements) that it holds."""
    structs = {}
    for field, hint in typing.get_type_hints(message.__init__).items():
        for candidate in _parts_of(hint):
            if isinstance(candidate, type) and issubclass(candidate, Message):
                structs[field] = candidate
    return structs


def _parts_of(hint: Any) -> list[Any]:
    arguments = typing.get_args(hint)
    return [hint] if not arguments else [part for inner in arguments for part in _parts_of(inner)]


def _built(message: type[Message], fields: dict[str, Any]) -> Any:
    structs = _structs(message)
    values = {}
    for name, value in fields.items():
        if name in structs and isinstance(value, dict):
            values[name] = _built(structs[name], value)
        elif name in structs and value is not None:
            values[name] = [_built(structs[name], inner) for inner in value]
        else:
            values[name] = value
    return message(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return {name: _plain(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return bytes(value) if isinstance(value, memoryview) else value
