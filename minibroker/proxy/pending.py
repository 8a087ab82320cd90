"""`Pending`: a request that went through the proxy and has no answer yet.

They stand in the order of the requests of a connection, as Kafka answers them. An answer that the
proxy gives itself stands among them, and leaves when its turn comes.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.protocol.api_keys import APIS
from minibroker.proxy.frames import SIZE_BYTES
from minibroker.proxy.kinds import AnswerWay

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.proxy.heads import RequestHead
    from minibroker.rig.faults import Fault

_CORRELATION_ID: Final = Struct(">i")


class Pending:
    """A request without its answer. Belongs to the loop.

    Most have the defaults of the class: a request that nobody looks at has little to store.
    """

    at_ms = 0
    """The machine's wall clock when the request came, while somebody looks on."""
    started_ns = 0
    """The time of `perf_counter` then."""
    frame: bytes | None = None
    """The request's own bytes, or the first of them, while somebody looks on."""
    subject: str | None = None
    """Its subject without that of its answer, None until somebody asks for it."""
    fault: Fault | None = None
    """The rule that met it and has something to do with the answer."""
    failed: Any = None
    """The answer for places that were taken out of the request."""
    own_answer: bytes | None = None
    """The whole frame, where Kafka is not asked."""
    ends = False
    """True if the connection ends when its turn comes."""
    is_token = False
    """True for a token of a login, which has no header."""
    is_long = False
    """True if its lists are too long for the loop."""
    closes = False
    """True if the connection ends behind the answer."""

    def __init__(
        self,
        head: RequestHead | None,
        correlation_id: int,
        request_bytes: int,
        way: AnswerWay = AnswerWay.READ,
    ) -> None:
        self.head = head
        """None for bytes that are no request of Kafka's."""
        self.correlation_id = correlation_id
        self.request_bytes = request_bytes
        self.way = way
        """READ where a rule or an onlooker may wait for the answer."""

    @property
    def is_own(self) -> bool:
        """Return whether Kafka does not know of it."""
        return self.own_answer is not None or self.ends

    @property
    def is_whole(self) -> bool:
        """Return whether `frame` has all of the request."""
        return self.frame is not None and len(self.frame) - SIZE_BYTES == self.request_bytes

    @property
    def api(self) -> str:
        """Return Kafka's name of the request."""
        return "bytes" if self.head is None else APIS[self.head.api_key].name


SEARCHES_MAX: Final = 100
"""Answers to nothing that was asked, after which only the oldest request is compared: to look at
all of them for each such answer holds the loop for seconds."""


class PendingQueue(deque[Pending]):
    """The requests of one connection without their answer, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self._vain_searches = 0

    def match(self, correlation_id: int, pass_over: Callable[[Pending], None]) -> Pending | None:
        """Return the request that an answer of Kafka's is for, after `pass_over` took older ones
        that got none; None where it answers nothing that was asked.

        Bytes without a head have a correlation id only if they were a request.
        """
        if not self or self[0].is_own:
            return None
        first = self[0]
        if first.correlation_id == correlation_id:
            return first
        later = self._later(correlation_id)
        if later:
            for _ in range(later):
                pass_over(self.popleft())
            return self[0]
        return first if first.head is None else None

    def _later(self, correlation_id: int) -> int:
        """Return the number of requests before the one of this id, 0 if there is none."""
        if len(self) == 1 or self._vain_searches == SEARCHES_MAX:
            return 0
        for number, pending in enumerate(self):
            if pending.is_own:
                return 0
            if number and pending.correlation_id == correlation_id:
                return number
        self._vain_searches += 1
        return 0


def correlation_of(data: bytes, at: int) -> int:
    """Return the four bytes from `at` on as a number, 0 if they are not there."""
    if len(data) - at < _CORRELATION_ID.size:
        return 0
    return int(_CORRELATION_ID.unpack_from(data, at)[0])
