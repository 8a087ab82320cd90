"""An interceptor looks in on requests: one interface, asked at one place (`dispatch.Dispatcher`).

A broker that serves alone has no interceptor and pays one comparison a request.
`minibroker.testing` has one: it does what faults say and keeps the log of requests. The metrics of
requests are counted where `finished` is called, for every broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from minibroker.server.answers import AnyAnswer, Waiting
    from minibroker.server.call import Call


class Interceptor(Protocol):
    """Looks in on every request of a broker, on the loop's thread."""

    def handle(self, call: Call) -> AnyAnswer | Waiting | None:
        """Handle a request. Without an interceptor, `handling.handle_call(call)` happens.

        Return None to take the request away: it gets no answer, and `finished` is not called.
        """

    def finished(self, call: Call, answer: AnyAnswer | None) -> None:
        """Take note of an answer as the client gets it: encoded, with the disk's errors in it.

        None: the request waited, and its client has left.
        """
