"""The requests of a connection and their answers, paired.

Fourth station of a capture, and for any two directions of frames. Brokers answer in order, so the
oldest open request is the one that is answered; where the capture lost frames, the correlation id
finds a later one. Behind SaslHandshake v0 a login sends tokens without a header.
"""

from __future__ import annotations

from collections import Counter, deque
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.protocol.api_keys import APIS, SASL_HANDSHAKE
from minibroker.trace.decode import Frames, has_answer, read_head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.trace.decode import Frame

OPEN_MAX: Final = 10_000
"""Requests of a connection that wait for an answer; the oldest of more has none."""
EARLY_MAX: Final = 16
"""Answers of a connection that wait for their request."""
EARLY_MS_MAX: Final = 2
"""An older answer belongs to a request that the capture has not."""
_CORRELATION_ID: Final = Struct(">i")


class _Open(NamedTuple):
    """A request without its answer yet."""

    frames: Frames
    correlation_id: int


class Pairing:
    """The open requests of one connection."""

    def __init__(self, connection: int, client_address: str, broker: str) -> None:
        self.connection = connection
        self.client_address = client_address
        self.broker = broker
        self._open: deque[_Open] = deque()
        self.pending: Counter[int] = Counter()
        """Correlation id → its open requests."""
        self._early: dict[int, tuple[Frame, float]] = {}
        """Correlation id → an answer that stands before its request in the capture, its time."""
        self._is_login = False
        """True behind SaslHandshake v0, until a request with a header comes."""

    def request(self, number: int, frame: Frame, at_ms: float) -> Iterator[Frames]:
        """Take a request. Yield it if no answer comes, and the oldest if too many are open."""
        head = read_head(frame)
        if self._is_login and head.api_key in APIS:
            self._is_login = False
        frames = Frames(
            number=number,
            connection=self.connection,
            client_address=self.client_address,
            broker=self.broker,
            at_ms=at_ms,
            duration_ms=None,
            request=frame,
            answer=None,
            is_token=self._is_login,
        )
        if head.api_key == SASL_HANDSHAKE and head.version == 0:
            self._is_login = True
        if not has_answer(head, frame):
            yield frames
            return
        early = self._early.pop(head.correlation_id, None)
        if early is not None and at_ms - early[1] <= EARLY_MS_MAX:
            yield _answered(frames, *early)
            return
        self._open.append(_Open(frames, head.correlation_id))
        self.pending[head.correlation_id] += 1
        if len(self._open) > OPEN_MAX:
            yield self._take().frames

    def answer(self, frame: Frame, at_ms: float) -> Iterator[Frames]:
        """Take an answer. Yield its exchange, and before it the requests that it passed over.

        An answer to no open request waits for it: two directions may be in another order.
        """
        if self._open and self._open[0].frames.is_token:
            yield _answered(self._take().frames, frame, at_ms)
            return
        if len(frame) < _CORRELATION_ID.size:
            return
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if correlation_id not in self.pending:
            self._early[correlation_id] = (frame, at_ms)
            if len(self._early) > EARLY_MAX:
                del self._early[next(iter(self._early))]
            return
        while self._open:
            waiting = self._take()
            if waiting.correlation_id == correlation_id:
                yield _answered(waiting.frames, frame, at_ms)
                return
            yield waiting.frames

    def end(self) -> Iterator[Frames]:
        """Yield the requests that nobody answered."""
        while self._open:
            yield self._take().frames

    def _take(self) -> _Open:
        """Take the oldest open request."""
        oldest = self._open.popleft()
        self.pending[oldest.correlation_id] -= 1
        if not self.pending[oldest.correlation_id]:
            del self.pending[oldest.correlation_id]
        return oldest


def _answered(frames: Frames, answer: Frame, at_ms: float) -> Frames:
    return frames._replace(answer=answer, duration_ms=max(at_ms - frames.at_ms, 0.0))
