"""A handler's short way (`Handler.fast`) observed, and switched off for its twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.in_process import InProcessBroker, RawClient


class ShortWay:
    """Stands before a short way and notes what it gave."""

    def __init__(self, running: InProcessBroker, api_key: int) -> None:
        """`api_key`: of an API that was asked before, so that its handler is loaded."""
        handler = running.server.dispatcher._handlers[api_key]
        assert handler.fast is not None
        self._short_way: Callable[..., Any] = handler.fast
        self.handled = 0
        self.passed = 0
        self.is_off = False
        """Every request takes the general way, uncounted."""
        handler.fast = self

    def __call__(self, *arguments: Any) -> Any:
        if self.is_off:
            return None
        answer = self._short_way(*arguments)
        if answer is None:
            self.passed += 1
        else:
            self.handled += 1
        return answer


async def answer_to(client: RawClient, request: Any, version: int) -> bytes:
    """The answer's bytes without the correlation id."""
    client.send(request, version)
    client._unanswered.clear()
    return (await client.receive_frame())[4:]
