"""An answer that a fault changes on its way to the client. `fault_interceptor` makes it.

It is a class of its own module because it inherits from `Answer`: where that is compiled, all
classes below it are.
"""

from __future__ import annotations

from typing import Any

from minibroker.broker.server.answers import Answer


class AlteredAnswer(Answer):
    """An answer whose bytes are sent twice, in part, or not at all."""

    __slots__ = ("_copies", "_inner", "_size_bytes")

    def __init__(self, answer: Answer, *, copies: int, size_bytes: int | None) -> None:
        """Send the first `size_bytes` of the frame (None: all), `copies` times."""
        super().__init__(answer.handler, answer.response, answer.version, answer.correlation_id)
        self._inner = answer
        self._copies = copies
        self._size_bytes = size_bytes

    def encode(self, throttle_time_ms: int) -> list[Any]:
        frame = b"".join(bytes(part) for part in self._inner.encode(throttle_time_ms))
        return [frame[: self._size_bytes] * self._copies]
