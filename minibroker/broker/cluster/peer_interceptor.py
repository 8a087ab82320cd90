"""The interface of a part that looks in on requests to other brokers: `testing` cuts links with it.

`broker.peers.PeerClient` asks the cluster for it with every request. Without one a request pays one
comparison. It stands here because the parts that send to other brokers all know the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Send = Callable[[], Coroutine[Any, Any, Any]]
    """Sends the request, and returns its answer."""


class PeerInterceptor(Protocol):
    """Called with each request to another broker, on the loop."""

    async def call(self, broker_id: int, request: Any, send: Send) -> Any:
        """Return the answer of `send`, now or later. Raises OSError in place of an answer.

        `request`: the request or its class; it says which API it is.
        """
