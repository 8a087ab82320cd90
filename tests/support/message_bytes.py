"""Messages as bytes, of any version."""

from __future__ import annotations

from typing import Any

from minibroker.kafka.protocol.header import response_header, write_request_header
from minibroker.kafka.protocol.primitives import Reader, Writer


def body_of(message: Any, version: int) -> bytes:
    """Return a message without a header."""
    writer = Writer()
    message.write(writer, version)
    return writer.to_bytes()


def request_bytes(request: Any, version: int, number: int, client_id: str | None = "raw") -> bytes:
    """Return a request with its header, without its size."""
    writer = Writer()
    write_request_header(writer, request.API_KEY, version, number, client_id)
    return writer.to_bytes() + body_of(request, version)


def answer_bytes(answer: Any, key: int, version: int, number: int) -> bytes:
    """Return an answer with its header, without its size."""
    return response_header(key, version, number) + body_of(answer, version)


def copy_of(message: Any, version: int) -> Any:
    """Return a message as the other side reads it."""
    return type(message).read(Reader(body_of(message, version)), version)
