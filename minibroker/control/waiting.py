"""Requests that wait: for records, for consumers. Their number is bounded, and they end when their
client leaves.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from minibroker.control.messages import HttpError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from minibroker.control.messages import HttpRequest

T = TypeVar("T")
WAITS_MAX: Final = 32
"""Half of the connections, so that others are served meanwhile."""


class WaitingRequests:
    """The requests of one API that wait. The loop owns it."""

    def __init__(self) -> None:
        self._count = 0

    async def run(self, request: HttpRequest, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns; cancel it when the client leaves. Raises HttpError, and what
        `work` raises.
        """
        if self._count >= WAITS_MAX:
            work.close()
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS, f"{WAITS_MAX} requests wait already: try again"
            )
        self._count += 1
        tasks: list[asyncio.Task[Any]] = []
        try:
            working = asyncio.ensure_future(work)
            tasks += [working, asyncio.ensure_future(request.until_gone())]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise HttpError(HTTPStatus.REQUEST_TIMEOUT, "the client left")
        finally:
            self._count -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def result(self, request: HttpRequest, wait: Coroutine[Any, Any, T]) -> T:
        """Do `run` for a wait of a test. Raises HttpError, also for one that took too long."""
        try:
            return await self.run(request, wait)
        except TimeoutError as error:
            raise HttpError(HTTPStatus.GATEWAY_TIMEOUT, str(error)) from None
        except ValueError as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
