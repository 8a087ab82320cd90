"""`RequestHead`: the first bytes of a request: which API, which version, from which client.

A head is read without an error. Of a frame that is no request (a token of SASL without a header, an
API that is younger than this program, broken bytes) it is None, and the frame passes.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from minibroker.kafka.protocol.api_keys import APIS, CONTROLLED_SHUTDOWN, PRODUCE
from minibroker.kafka.protocol.primitives import uvarint_in

_START: Final = Struct(">hhih")
_INT16: Final = Struct(">h")
START_BYTES: Final = _START.size
_SHORTEST: Final = 8
"""Bytes of the shortest header."""
CORRELATION_AT: Final = 4
CORRELATION_END: Final = 8
"""Bytes up to the end of the correlation id, in each header."""
_ACKS_WITH_TRANSACTION: Final = 3
"""Version of Produce from which on a transactional id stands before `acks`."""
_FLEXIBLE_PRODUCE: Final = 9
HEAD_BYTES_MAX: Final = START_BYTES + 2 * (1 << 15) + 16
"""Bytes within which everything of a head stands: two texts, and the numbers around them."""
ACKS_BYTES: Final = 2
_NO_ACKS: Final = bytes(ACKS_BYTES)
VERSIONS_AHEAD: Final = 20
"""A version this far beyond what there is: those bytes are no request of Kafka's."""


class RequestHead(NamedTuple):
    """The head of a request, without its correlation id."""

    api_key: int
    version: int
    client_id: bytes | None
    wants_answer: bool
    """False for Produce with acks=0."""


def head_bytes(data: bytes, at: int) -> int:
    """Return how many bytes from `at` on hold the header up to the client id; at most what is there
    says so far.
    """
    if len(data) - at < START_BYTES:
        return START_BYTES
    client_bytes: int = _INT16.unpack_from(data, at + 8)[0]
    return START_BYTES + max(client_bytes, 0)


def read_head(data: bytes, at: int, end: int) -> RequestHead | None:
    """Return the head of the frame whose bytes stand from `at` to `end` in `data`, None if it is
    no request of Kafka's.

    Of a frame that is not whole, `end` is as far as it is here; `HEAD_BYTES_MAX` are enough.
    """
    if end - at < _SHORTEST:
        return None
    if end - at < START_BYTES:
        api_key, version = Struct(">hh").unpack_from(data, at)
        if api_key != CONTROLLED_SHUTDOWN or version:
            return None
        return RequestHead(api_key, version, None, True)
    api_key, version, _, client_bytes = _START.unpack_from(data, at)
    api = APIS.get(api_key)
    if api is None or not 0 <= version <= api.max_version + VERSIONS_AHEAD:
        return None
    if api_key == CONTROLLED_SHUTDOWN and not version:
        return RequestHead(api_key, version, None, True)
    body = at + START_BYTES
    client_id = None
    if client_bytes >= 0:
        body += client_bytes
        if body > end:
            return None
        client_id = data[at + START_BYTES : body]
    wants_answer = True
    if api_key == PRODUCE:
        acks_at = _acks_at(data, body, end, version)
        wants_answer = not acks_at or data[acks_at : acks_at + ACKS_BYTES] != _NO_ACKS
    return RequestHead(api_key, version, client_id, wants_answer)


def head_end(head: RequestHead, data: bytes, at: int, end: int) -> int:
    """Return the position behind the head that was read from `at` on: behind the client id, of a
    Produce behind `acks`; 0 where a head has no such end.
    """
    if head.api_key == CONTROLLED_SHUTDOWN and not head.version:
        return 0
    body = at + START_BYTES + len(head.client_id or b"")
    if head.api_key != PRODUCE:
        return body
    acks_at = _acks_at(data, body, end, head.version)
    return acks_at and acks_at + ACKS_BYTES


def _acks_at(data: bytes, at: int, end: int, version: int) -> int:
    """Return the position of `acks` in a Produce whose body begins at `at`; 0 where it cannot be
    read: then an answer is expected.
    """
    if version >= _FLEXIBLE_PRODUCE:
        if at >= end or data[at]:
            return 0  # tagged fields in the header: no client sends some
        at += 1
        length, at = uvarint_in(data, at, end)
        at += max(length - 1, 0)
    elif version >= _ACKS_WITH_TRANSACTION:
        if at + 2 > end:
            return 0
        at += 2 + max(_INT16.unpack_from(data, at)[0], 0)
    return at if at + ACKS_BYTES <= end else 0
