"""Charging a client for a request, and holding its connection still when it is over a quota.

While some quota is set, `connection.py` comes here between a request's handler and its answer.
The answer goes out at once and says how long (`throttle_time_ms`); then the connection is not read
until the time is over, whatever version the client speaks (KIP-219). Handlers that charge
themselves (Fetch; the APIs that change topics) put their delay into the response; the longest
counts.

Source: Kafka RequestHandlerHelper, KafkaApis.handleProduceRequest.
Differs from Kafka: a Fetch over `request_percentage` keeps its records, Kafka empties it. The
delay is the same.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from minibroker.metrics import LONGEST_US
from minibroker.protocol.api_keys import PRODUCE

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.handlers.produce_fast import FastAnswer
    from minibroker.handlers.registry import Handler
    from minibroker.server.dispatch import Answer
    from minibroker.timers import Timer

_INT32: Final = Struct(">i")
_FLEXIBLE_TAIL_BYTES: Final = 5
"""Behind `throttle_time_ms` stands one byte: no tags."""


class Throttled:
    """What a connection waits for whose client is over a quota: the timer."""

    __slots__ = ("_timer",)

    def __init__(self, timer: Timer) -> None:
        self._timer = timer

    @property
    def awaitable(self) -> Throttled:
        """Closed like an awaitable that has not begun."""
        return self

    def close(self) -> None:
        """The connection is gone: nobody waits any more."""
        self._timer.cancel()


class _DelayedAnswer:
    """The answer of `produce_fast`, with the delay in it."""

    __slots__ = ("_delay_ms", "_fast", "_version", "handler")

    def __init__(self, fast: FastAnswer, version: int, delay_ms: int) -> None:
        self.handler: Handler = fast.handler
        self._fast = fast
        self._version = version
        self._delay_ms = delay_ms

    def encode(self) -> list[Any]:
        """The whole frame; `throttle_time_ms` is the last field in all versions that it serves."""
        (frame,) = self._fast.encode()
        flexible_from = self.handler.flexible_from
        is_flexible = flexible_from is not None and self._version >= flexible_from
        end = _FLEXIBLE_TAIL_BYTES if is_flexible else _INT32.size
        patched = bytearray(frame)
        _INT32.pack_into(patched, len(patched) - end, self._delay_ms)
        return [patched]


def charge(context: RequestContext, answers: list[Any], size_bytes: int, local_ns: int) -> int:
    """Count one request; returns how long (ms) its client has to wait, 0 if it is within.

    Args:
        answers: the answer, which is told the delay; of a silent one (Produce with acks=0) the
            bytes are counted and the time is not.
        size_bytes: of the request, header and body.
        local_ns: how long the loop was busy with it.
    """
    quotas = context.services.quotas
    client = context.quota_client
    delay_ms = 0
    if context.api_key == PRODUCE:
        delay_ms = quotas.record_produce(client, size_bytes)
    if not answers or getattr(answers[0], "is_silent", False):
        return delay_ms
    delay_ms = max(delay_ms, quotas.record_request_time(client, local_ns))
    answer: Answer | FastAnswer = answers[0]
    handler = answer.handler
    response = getattr(answer, "response", None)
    if response is None:
        if delay_ms:
            answers[0] = _DelayedAnswer(answers[0], context.version, delay_ms)
    elif "throttle_time_ms" in response.__slots__:
        delay_ms = max(delay_ms, response.throttle_time_ms)
        response.throttle_time_ms = delay_ms
    if delay_ms:
        handler.times.throttle.add(min(delay_ms * 1000, LONGEST_US))
    return delay_ms
