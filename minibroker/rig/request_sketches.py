"""Sketches of the last requests: their bytes and answers, until somebody asks for their subjects.

    a request ─► RequestSketches.begin: its bytes are copied ─► handled ─► end: its answer
    a page or a report shows it ─► subject: decoded and described then

To describe each request while it is handled would make it wait for 10 to 40 µs. A page shows some
of them, a moment later, so the bytes of the first requests of each API in a while are kept for it.
A report about a failed test shows the last ones: all are kept for it, as far as there is room.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.server.decoder import LARGE_FRAME_BYTES
from minibroker.kafka.protocol.api_keys import FETCH
from minibroker.rig.fetched_summaries import without_records

if TYPE_CHECKING:
    from minibroker.broker.server.call import Call
    from minibroker.rig.request_texts import RequestTexts

SKETCHES_MAX: Final = 2_000
PERIOD_NS: Final = 250_000_000
PERIOD_MAX: Final = 60
"""Requests of one API that are kept in a period."""
BYTES_MAX: Final = 2 << 20
"""Bytes of all requests that are kept."""


def _start_of(call: Call) -> bytes:
    """Return the bytes of a request; none of a large one, whose decoding takes long."""
    frame = call.frame
    return bytes(frame) if len(frame) <= LARGE_FRAME_BYTES else b""


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

    def begin(self, call: Call, *, every: bool) -> None:
        """Keep the bytes of a request that is about to be handled.

        Unless `every` is kept, only those of the first ones of its API in a while.
        """
        if every:
            call.sketch = _start_of(call)
            return
        if call.started_ns >= self._period_ends_ns:
            self._period_ends_ns = call.started_ns + PERIOD_NS
            self._counts.clear()
        api_key = call.handler.api_key
        count = self._counts.get(api_key, 0)
        if count < PERIOD_MAX:
            self._counts[api_key] = count + 1
            call.sketch = _start_of(call)

    def end(self, call: Call, answer: Any, number: int) -> None:
        """Keep the answer of a request whose bytes are kept, and which has this number in the log.
        That of a Fetch holds maps of files: summaries of its batches stand in their place.
        """
        if call.sketch is None:
            return
        if call.handler.api_key == FETCH and answer is not None:
            summaries = without_records(answer)
            if summaries is None:
                call.subject = self._texts.exchange(call, answer)
            answer = summaries
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
        return self.subject_of(*entry)

    def subject_of(self, call: Call, answer: Any) -> str:
        """Return the subject of a request that is kept, or waits; nothing without its bytes."""
        if call.sketch is None:
            return ""
        frame = call.frame
        reply, call.subject = call.subject, ""
        call.frame = memoryview(call.sketch)
        if len(call.sketch) == call.request_bytes:  # else it is large, and was kept in part
            call.subject = self._texts.question(call)
        subject = self._texts.exchange(call, answer)
        call.subject, call.frame = reply, frame
        return f"{subject} {reply}".strip() if reply else subject

    def clear(self) -> None:
        """Forget all requests."""
        self._calls.clear()
        self._size_bytes = 0
