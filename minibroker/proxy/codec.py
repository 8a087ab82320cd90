"""Frames of Kafka's protocol into messages and back, where the proxy looks into them.

None stands for bytes that cannot be read: an API or a version that is younger than this program, or
a broken frame. They pass as they are.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final

from minibroker.client.dialogue import ApiVersionsAnswer
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, load_messages
from minibroker.kafka.protocol.header import (
    parse_request_header,
    response_header,
    response_header_version,
    write_request_header,
)
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.proxy.frames import SIZE_BYTES

if TYPE_CHECKING:
    from minibroker.proxy.heads import RequestHead

_CORRELATION_BYTES: Final = 4
_UNREADABLE: Final = (ProtocolError, struct_error, ValueError)


def is_known(head: RequestHead) -> bool:
    """Return whether this program knows the version of a request."""
    api = APIS[head.api_key]
    return api.min_version <= head.version <= api.max_version


def read_request(head: RequestHead, frame: bytes) -> Any:
    """Return the request of a whole frame, None if it cannot be read. Records stay in the frame."""
    if not is_known(head):
        return None
    body = memoryview(frame)[SIZE_BYTES:]
    request_class, _ = load_messages(head.api_key)
    try:
        *_, position = parse_request_header(body)
        return request_class.read(Reader(body, position), head.version)
    except _UNREADABLE:
        return None


def write_request(head: RequestHead, correlation_id: int, request: Any) -> bytes:
    """Return the frame of a request."""
    writer = Writer()
    client_id = None if head.client_id is None else head.client_id.decode("utf-8", "replace")
    write_request_header(writer, head.api_key, head.version, correlation_id, client_id)
    request.write(writer, head.version)
    return b"".join(writer.frame_parts())


def read_answer(head: RequestHead, frame: bytes) -> Any:
    """Return the answer of a whole frame, None if it cannot be read."""
    if not is_known(head):
        return None
    _, response_class = load_messages(head.api_key)
    if head.api_key == API_VERSIONS:
        response_class = ApiVersionsAnswer
    reader = Reader(memoryview(frame), SIZE_BYTES + _CORRELATION_BYTES)
    try:
        if response_header_version(head.api_key, head.version):
            reader.skip_tagged_fields()
        return response_class.read(reader, head.version)
    except _UNREADABLE:
        return None


def write_answer(head: RequestHead, correlation_id: int, answer: Any) -> bytes:
    """Return the frame of an answer."""
    writer = Writer()
    writer.append(response_header(head.api_key, head.version, correlation_id))
    answer.write(writer, head.version)
    return b"".join(writer.frame_parts())
