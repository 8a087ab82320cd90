"""Counts of the requests and bytes of each connection, for those who look inside.

`FaultInterceptor` counts them; a broker that serves alone does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.server.call import Call


class ConnectionUse:
    """The requests of one connection. Belongs to the loop."""

    __slots__ = ("answer_bytes", "apis", "client_id", "request_bytes", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.request_bytes = 0
        self.answer_bytes = 0
        self.client_id: str | None = None
        """That of the last request."""
        self.apis: dict[str, list[int]] = {}
        """API → version of its last request, and number of its requests; as many as APIs."""


class ConnectionUses:
    """The uses of the open connections of one broker. Belongs to its loop."""

    def __init__(self) -> None:
        self._by_context: dict[RequestContext, ConnectionUse] = {}
        self.request_bytes = 0
        """Those of all connections since the start, closed ones too."""
        self.answer_bytes = 0

    def __len__(self) -> int:
        """Return the number of connections that sent a request."""
        return len(self._by_context)

    def note(self, call: Call) -> None:
        """Count a request that is answered, or will not be."""
        use = self._by_context.get(call.context)
        if use is None:
            use = self._by_context[call.context] = ConnectionUse()
        answer_bytes = call.answer_bytes or 0
        self.request_bytes += call.request_bytes
        self.answer_bytes += answer_bytes
        use.requests += 1
        use.request_bytes += call.request_bytes
        use.answer_bytes += answer_bytes
        use.client_id = call.client_id
        api = use.apis.get(call.handler.name)
        if api is None:
            use.apis[call.handler.name] = [call.version, 1]
        else:
            api[0] = call.version
            api[1] += 1

    def of(self, context: RequestContext) -> ConnectionUse:
        """Return the use of a connection."""
        return self._by_context.get(context) or ConnectionUse()

    def forget(self, context: RequestContext) -> None:
        """Forget a connection that is closed."""
        self._by_context.pop(context, None)
