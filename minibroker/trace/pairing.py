"""The requests of a connection and their answers, paired.

Fourth station of a capture, and for any two directions of frames. Brokers answer in order, so the
oldest open request is the one that is answered; where the capture lost frames, the correlation id
finds a later one. Behind SaslHandshake v0 a login sends tokens without a header.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.protocol.api_keys import APIS, SASL_HANDSHAKE
from minibroker.trace.decode import Frames, has_answer, read_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.trace.decode import Frame, FrameHead

OPEN_MAX: Final = 10_000
"""Requests of a connection that wait for an answer; the oldest of more has none."""
EARLY_MAX: Final = 16
"""Answers of a connection that wait for their request."""
EARLY_MS_MAX: Final = 2
"""An older answer belongs to a request that the capture has not."""
_CORRELATION_ID: Final = Struct(">i")


class _Open(NamedTuple):
    """A request without its answer yet."""

    number: int
    at_ms: float
    frame: Frame
    head: FrameHead
    is_token: bool


class Pairing:
    """The open requests of one connection."""

    def __init__(self, connection: int, client_address: str, broker: str) -> None:
        self.connection = connection
        self.client_address = client_address
        self.broker = broker
        self._open: deque[_Open] = deque()
        self.pending: dict[int, int] = {}
        """Correlation id → the number of its open requests."""
        self._early: dict[int, tuple[Frame, float]] = {}
        """Correlation id → an answer that stands before its request in the capture, its time."""
        self._is_login = False
        """True behind SaslHandshake v0, until a request with a header comes."""

    def request(self, number: int, frame: Frame, at_ms: float) -> Sequence[Frames]:
        """Take a request. Return it if no answer comes, and the oldest if too many are open."""
        head = read_head(frame)
        if self._is_login and head.api_key in APIS:
            self._is_login = False
        entry = _Open(number, at_ms, frame, head, self._is_login)
        if head.api_key == SASL_HANDSHAKE and head.version == 0:
            self._is_login = True
        if not has_answer(head, frame):
            return (self._unanswered(entry),)
        correlation_id = head.correlation_id
        if self._early:
            early = self._early.pop(correlation_id, None)
            if early is not None and at_ms - early[1] <= EARLY_MS_MAX:
                return (self._answered(entry, *early),)
        self._open.append(entry)
        self.pending[correlation_id] = self.pending.get(correlation_id, 0) + 1
        if len(self._open) > OPEN_MAX:
            return (self._unanswered(self._take()),)
        return ()

    def answer(self, frame: Frame, at_ms: float) -> Sequence[Frames]:
        """Take an answer. Return its exchange, and before it the requests that it passed over.

        An answer to no open request waits for it: two directions may be in another order.
        """
        if self._open and self._open[0].is_token:
            return (self._answered(self._take(), frame, at_ms),)
        if len(frame) < _CORRELATION_ID.size:
            return ()
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if correlation_id not in self.pending:
            self._early[correlation_id] = (frame, at_ms)
            if len(self._early) > EARLY_MAX:
                del self._early[next(iter(self._early))]
            return ()
        passed_over = []
        while (waiting := self._take()).head.correlation_id != correlation_id:
            passed_over.append(self._unanswered(waiting))
        return (*passed_over, self._answered(waiting, frame, at_ms))

    def end(self) -> Sequence[Frames]:
        """Return the requests that nobody answered."""
        unanswered = []
        while self._open:
            unanswered.append(self._unanswered(self._take()))
        return unanswered

    def _take(self) -> _Open:
        """Take the oldest open request."""
        oldest = self._open.popleft()
        correlation_id = oldest.head.correlation_id
        others = self.pending.pop(correlation_id) - 1
        if others:
            self.pending[correlation_id] = others
        return oldest

    def _answered(self, entry: _Open, answer: Frame, at_ms: float) -> Frames:
        return self._frames(entry, answer, max(at_ms - entry.at_ms, 0.0))

    def _unanswered(self, entry: _Open) -> Frames:
        return self._frames(entry, None, None)

    def _frames(self, entry: _Open, answer: Frame | None, duration_ms: float | None) -> Frames:
        return Frames(
            entry.number,
            self.connection,
            self.client_address,
            self.broker,
            entry.at_ms,
            duration_ms,
            entry.frame,
            answer,
            is_token=entry.is_token,
            head=entry.head,
        )
