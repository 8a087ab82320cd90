"""`RequestKinds`: the heads of requests that came before on a connection, as bytes.

A client says the same in each head of an API, but for the correlation id. So a head that came
before is compared and not read: `request_side.skim` does that while nobody looks at requests.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.protocol.api_keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from minibroker.proxy.addresses import ADDRESSES, has_addresses
from minibroker.proxy.heads import CORRELATION_END, head_end

if TYPE_CHECKING:
    from minibroker.proxy.heads import RequestHead

KINDS_MAX: Final = 64
"""Kinds of one connection; with more, all are read once again."""
REST_BYTES_MAX: Final = 1_000
"""Longest head of a kind, behind its correlation id."""
_READ: Final = (SASL_HANDSHAKE, SASL_AUTHENTICATE)
"""APIs of which each request is read: they say what bytes come next."""


class AnswerWay(IntEnum):
    """The way of an answer that no rule and no onlooker waits for."""

    PASSES = 0
    HINTED = 1
    """It passes, unless an address is at its end."""
    READ = 2
    """It has addresses, or versions."""


class RequestKind(NamedTuple):
    """A head, and the bytes by which the next one like it is known."""

    rest: bytes
    """The head's bytes behind the correlation id."""
    size_min: int
    """Bytes of the shortest frame that has such a head."""
    head: RequestHead
    answer_way: AnswerWay


class RequestKinds(dict[int, RequestKind]):
    """API and version (two times two bytes as one number) → the kind that came last."""

    def learn(self, head: RequestHead, data: bytes, at: int, end: int) -> None:
        """Add the kind of the request whose frame has the bytes from `at` to `end`."""
        if head.api_key in _READ:
            return
        rest = data[at + CORRELATION_END : head_end(head, data, at, end)]
        if not rest or len(rest) > REST_BYTES_MAX:
            return
        if len(self) >= KINDS_MAX:
            self.clear()
        kind = head.api_key << 16 | head.version
        self[kind] = RequestKind(rest, CORRELATION_END + len(rest), head, answer_way(head))


def answer_way(head: RequestHead) -> AnswerWay:
    """Return the way of the answers to requests with this head."""
    if head.api_key == API_VERSIONS:
        return AnswerWay.READ
    if not has_addresses(head.api_key, head.version):
        return AnswerWay.PASSES
    return AnswerWay.HINTED if ADDRESSES[head.api_key].is_hint else AnswerWay.READ
