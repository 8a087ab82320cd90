"""Frames of Kafka's protocol into messages and back, where the proxy looks into them.

None stands for bytes that cannot be read: an API or a version that is younger than this program, or
a broken frame. They pass as they are.

The time for a message grows with the items of its lists, not with its bytes: an empty partition of
a Produce has eight. So `read_short_request` and its like give up at `ITEMS_MAX`.
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
from minibroker.proxy.heads import HEAD_BYTES_MAX, read_head
from minibroker.proxy.limits import ITEMS_MAX

if TYPE_CHECKING:
    from minibroker.kafka.protocol.primitives import Buffer
    from minibroker.proxy.heads import RequestHead

_CORRELATION_BYTES: Final = 4
_UNREADABLE: Final = (ProtocolError, struct_error, ValueError)


class LongMessageError(Exception):
    """A message has more than `ITEMS_MAX` items in its lists."""


class ShortReader(Reader):
    """A reader of short messages. A method raises LongMessageError for the list that has too many
    items.
    """

    __slots__ = ("_items_left",)

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        super().__init__(buffer, position)
        self._items_left = ITEMS_MAX

    def _counted(self, count: int) -> int:
        self._items_left -= max(count, 0)
        if self._items_left < 0:
            raise LongMessageError
        return count

    def array_count(self) -> int:
        """Do `Reader.array_count`."""
        return self._counted(super().array_count())

    def nullable_array_count(self) -> int:
        """Do `Reader.nullable_array_count`."""
        return self._counted(super().nullable_array_count())

    def compact_array_count(self) -> int:
        """Do `Reader.compact_array_count`."""
        return self._counted(super().compact_array_count())

    def compact_nullable_array_count(self) -> int:
        """Do `Reader.compact_nullable_array_count`."""
        return self._counted(super().compact_nullable_array_count())

    def tag_count(self) -> int:
        """Do `Reader.tag_count`."""
        return self._counted(super().tag_count())

    def byte_string(self) -> bytes:
        """Do `Reader.byte_string`, whose length is no count of items."""
        return bytes(self.take(super().array_count()))

    def compact_byte_string(self) -> bytes:
        """Do `Reader.compact_byte_string`, as above."""
        return bytes(self.take(super().compact_array_count()))


def is_known(head: RequestHead) -> bool:
    """Return whether this program knows the version of a request."""
    api = APIS[head.api_key]
    return api.min_version <= head.version <= api.max_version


def read_request(head: RequestHead, frame: bytes) -> Any:
    """Return the request of a whole frame, None if it cannot be read. Records stay in the frame."""
    return _request(head, memoryview(frame)[SIZE_BYTES:], Reader)


def read_short_request(head: RequestHead, frame: bytes) -> Any:
    """Do `read_request`. Raises LongMessageError."""
    return _request(head, memoryview(frame)[SIZE_BYTES:], ShortReader)


def _request(head: RequestHead, body: memoryview, new_reader: type[Reader]) -> Any:
    if not is_known(head):
        return None
    request_class, _ = load_messages(head.api_key)
    try:
        *_, position = parse_request_header(body)
        return request_class.read(new_reader(body, position), head.version)
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
    return _answer(head, memoryview(frame)[SIZE_BYTES:], Reader)


def read_short_answer(head: RequestHead, frame: bytes) -> Any:
    """Do `read_answer`. Raises LongMessageError."""
    return _answer(head, memoryview(frame)[SIZE_BYTES:], ShortReader)


def has_short_lists(request: bytes | memoryview, answer: bytes | memoryview | None) -> bool:
    """Return whether no list of a request and its answer is long; both without their size."""
    head = read_head(bytes(request[:HEAD_BYTES_MAX]), 0, min(len(request), HEAD_BYTES_MAX))
    if head is None:
        return True
    try:
        _request(head, memoryview(request), ShortReader)
        if answer is not None:
            _answer(head, memoryview(answer), ShortReader)
    except LongMessageError:
        return False
    return True


def _answer(head: RequestHead, body: memoryview, new_reader: type[Reader]) -> Any:
    if not is_known(head):
        return None
    _, response_class = load_messages(head.api_key)
    if head.api_key == API_VERSIONS:
        response_class = ApiVersionsAnswer
    reader = new_reader(body, _CORRELATION_BYTES)
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
