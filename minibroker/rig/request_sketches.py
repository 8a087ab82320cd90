"""Sketches of the last requests: their bytes and answers, until somebody asks for their subjects.

    a request ─► RequestSketches.begin: its bytes are copied ─► handled ─► end: its answer
    a page shows it ─► subject: decoded and described then

To describe each request while it is handled would make it wait for 10 to 40 µs. A page shows some
of them, a moment later. So the bytes of the first requests of each API in a while are kept, and no
more.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.server.decoder import LARGE_FRAME_BYTES
from minibroker.kafka.protocol.api_keys import FETCH

if TYPE_CHECKING:
    from minibroker.broker.server.call import Call
    from minibroker.rig.request_texts import RequestTexts

SKETCHES_MAX: Final = 1_000
PERIOD_NS: Final = 250_000_000
PERIOD_MAX: Final = 60
"""Requests of one API that are kept in a period."""
BYTES_MAX: Final = 2 << 20
"""Bytes of all requests that are kept."""


class RequestSketches:
    """The sketches of one broker. Belongs to its loop."""

    def __init__(self, texts: RequestTexts) -> None:
        self._texts = texts
        self._calls: OrderedDict[int, tuple[Call, Any]] = OrderedDict()
        """Number of a request in the log → the request and its answer, oldest first."""
        self._size_bytes = 0
        self._counts: dict[int, int] = {}
        """API key → requests of this period that are kept."""
        self._period_ends_ns = 0

    def begin(self, call: Call) -> None:
        """Keep the bytes of a request that is about to be handled, unless there are too many."""
        if call.started_ns >= self._period_ends_ns:
            self._period_ends_ns = call.started_ns + PERIOD_NS
            self._counts.clear()
        api_key = call.handler.api_key
        count = self._counts.get(api_key, 0)
        if count < PERIOD_MAX:
            self._counts[api_key] = count + 1
            call.sketch = bytes(call.frame[:LARGE_FRAME_BYTES])

    def end(self, call: Call, answer: Any, number: int) -> None:
        """Keep the answer of a request whose bytes are kept, and which has this number in the log.
        That of a Fetch holds maps of files, so it is described at once.
        """
        if call.sketch is None:
            return
        if call.handler.api_key == FETCH:
            call.subject = self._texts.exchange(call, answer)
            answer = None
        self._calls[number] = call, answer
        self._size_bytes += len(call.sketch)
        while len(self._calls) > SKETCHES_MAX or self._size_bytes > BYTES_MAX:
            _, (oldest, _) = self._calls.popitem(last=False)
            self._size_bytes -= len(oldest.sketch or b"")

    def remembers(self, number: int) -> bool:
        """Return whether a request has a subject here."""
        return number in self._calls

    def subject(self, number: int) -> str:
        """Return the subject of a request by its number, nothing where it is not kept any more."""
        entry = self._calls.get(number)
        if entry is None:
            return ""
        call, answer = entry
        reply, call.subject = call.subject, ""
        assert call.sketch is not None
        call.frame = memoryview(call.sketch)
        if len(call.sketch) == call.request_bytes:  # else it is large, and was kept in part
            call.subject = self._texts.question(call)
        subject = self._texts.exchange(call, answer)
        call.subject = reply
        return f"{subject} {reply}".strip() if reply else subject

    def clear(self) -> None:
        """Forget all requests."""
        self._calls.clear()
        self._size_bytes = 0
