"""A request on its way to the handler, as an interceptor sees it.

`dispatch.Dispatcher` makes a `Call` behind the last station before the handler, and only for an
interceptor. `handling.handle_call` has it handled.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.handlers.common.handler import Handler


class Call:
    """A request that has passed every station before its handler."""

    __slots__ = (
        "answer_bytes",
        "at_ms",
        "client_address",
        "client_id",
        "context",
        "correlation_id",
        "effect",
        "frame",
        "handler",
        "position",
        "request_bytes",
        "sketch",
        "started_ns",
        "subject",
        "version",
    )

    def __init__(
        self,
        context: RequestContext,
        handler: Handler,
        frame: memoryview,
        position: int,
    ) -> None:
        """The body begins at `position` of `frame`; `context` has this request in hand."""
        self.frame = frame
        """The request without its size field; valid until the answer, or until `keep`."""
        self.position = position
        self.request_bytes = len(frame)
        self.context = context
        """The connection's. It has the next request once this one is handled."""
        self.handler = handler
        self.version = context.version
        self.correlation_id = context.correlation_id
        self.client_id = context.client_id
        self.client_address = context.client_address
        self.at_ms = context.services.clock.now_ms()
        """The broker's wall clock when the request was begun."""
        self.started_ns = perf_counter_ns()
        self.answer_bytes: int | None = None
        """Bytes of its answer with the size field, once it is encoded; 0: nothing is sent."""
        self.subject = ""
        """A text about the request, for the log of an interceptor that is watched."""
        self.sketch: bytes | None = None
        """The bytes of the request, where an interceptor keeps them for later."""
        self.effect: str | None = None
        """A text that says what an interceptor did to it, None: nothing."""

    def keep(self) -> None:
        """Copy the frame. It outlives the connection's buffer from now on."""
        self.frame = memoryview(bytearray(self.frame))
