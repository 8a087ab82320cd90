"""A request of the control API, the work for it, and its answer; `server` reads and writes them."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine in `Host`."""

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


class HttpRequest(NamedTuple):
    """A request without its body."""

    method: str
    """`GET` for `HEAD`, too."""
    path: str
    """As it was sent: parts of it may be percent-encoded."""
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    until_gone: Callable[[], Awaitable[None]] = _never
    """Returns when the client has left; for work that waits, behind the body."""


class Work(NamedTuple):
    """The work for a request."""

    body_bytes_max: int
    run: Callable[[bytearray], Awaitable[Response | EventStream]]
    """Returns the answer to a body. Raises HttpError."""


class Response(NamedTuple):
    """An answer, written whole."""

    status: int
    body: bytes | bytearray
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class EventStream(NamedTuple):
    """An answer that goes on: its pieces are sent as they come, until they end, the client leaves,
    or it takes no more.
    """

    pieces: AsyncGenerator[bytes, None]
    on_end: Callable[[], None]
    """Called once when nothing more is sent, also where no piece was asked for."""
    headers: tuple[tuple[str, str], ...] = (("Cache-Control", "no-store"),)


class HttpError(Exception):
    """An answer of 4xx or 5xx with a sentence that says what to do."""

    def __init__(
        self, status: int, sentence: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers

    def response(self) -> Response:
        """Return it as JSON: `{"error": …}`."""
        return json_response({"error": str(self)}, self.status)._replace(headers=self.headers)


async def in_time(wait: Awaitable[None]) -> None:
    """Wait. Raises HttpError(504) where the wait raises TimeoutError."""
    try:
        await wait
    except TimeoutError as error:
        raise HttpError(HTTPStatus.GATEWAY_TIMEOUT, str(error)) from None


def json_response(value: Any, status: int = HTTPStatus.OK) -> Response:
    """Return a value as a line of JSON."""
    return Response(status, json.dumps(value).encode() + b"\n")
