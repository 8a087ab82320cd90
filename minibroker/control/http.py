"""HTTP/1.1 for the control API: h11 over asyncio streams, on the broker's loop.

    accept ─► TLS, if any ─► HttpRequest (bounded in size and time) ─► handler ─► Response

A connection has one request at a time and stays open between requests. A body that is too large
gets 413, a slow request 408, bad HTTP 400. None of them disturbs the broker.

There are at most `CONNECTIONS_MAX` connections. One more ends the one whose client has been silent
longest: in a handshake, between two requests, or within one. So idle clients cannot keep others
from `/health`. Only if a request of every connection is in work, the new one gets 503.

Accepting is a loop of ours: `asyncio.start_server` knows a connection with TLS only behind its
handshake, and could neither count nor end it before.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.control.tls_stream import TlsStream

logger = logging.getLogger(__name__)

HEADER_BYTES_MAX: Final = 16 << 10
BODY_BYTES_MAX: Final = 64 << 10
REQUEST_TIMEOUT_S: Final = 10.0
"""Longest time from the first byte of a request to its last, and for taking an answer."""
IDLE_TIMEOUT_S: Final = 60.0
CONNECTIONS_MAX: Final = 64
ACCEPT_RETRY_S: Final = 0.1
"""Wait after a failed accept, when the system has no file handle left."""
PIECE_BYTES: Final = 64 << 10
"""Largest piece of an answer that is sent at once; the loop is free between two pieces."""
_READ_BYTES: Final = 16 << 10
_PLAIN_HTTP: Final = ("HTTP_REQUEST", "WRONG_VERSION_NUMBER")
"""OpenSSL's words for a request without TLS."""
JSON: Final = "application/json"


class HttpRequest(NamedTuple):
    """A request, read whole."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    fault: str | None = None
    """Why the target is no URL: then path and query are empty. None: it is one."""


class Response(NamedTuple):
    """An answer, written whole."""

    status: int
    body: bytes | bytearray
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


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


def json_response(value: Any, status: int = HTTPStatus.OK) -> Response:
    """Return a value as a line of JSON."""
    return Response(status, json.dumps(value).encode() + b"\n")


class HttpServer:
    """Serves HTTP: `listen`, then `close`. The loop owns it."""

    def __init__(
        self,
        handle: Callable[[HttpRequest], Awaitable[Response]],
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`handle` may raise HttpError. `tls`: returns the context of the next connection; None:
        without TLS.
        """
        self._handle = handle
        self._tls = tls
        self._handshakes = ThreadPoolExecutor(1, "control-handshakes")
        """Does the steps of TLS handshakes; its thread begins with the first."""
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        """One for each connection."""
        self._silent: dict[asyncio.Task[None], None] = {}
        """Those that wait for their client; the one that has waited longest is first."""

    async def listen(self, host: str, port: int) -> int:
        """Bind every address of the host and serve; return the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(addresses):
                free = self._sockets[0].getsockname()[1] if self._sockets else port
                bound = socket.create_server(
                    (address[0], free), family=family, backlog=CONNECTIONS_MAX
                )
                bound.setblocking(False)
                self._sockets.append(bound)
        except OSError:
            for bound in self._sockets:
                bound.close()
            raise
        self._accepting = [loop.create_task(self._accept(bound)) for bound in self._sockets]
        return int(self._sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop to serve and close all connections."""
        for tasks in (self._accepting, self._tasks):  # no new connection after the first
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for bound in self._sockets:
            bound.close()
        self._handshakes.shutdown(wait=False, cancel_futures=True)

    async def _accept(self, bound: socket.socket) -> None:
        """Take connections for ever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(bound)
            except OSError as error:
                logger.warning("the control API cannot accept a connection: %s", error)
                await asyncio.sleep(ACCEPT_RETRY_S)
                continue
            is_full = len(self._tasks) >= CONNECTIONS_MAX
            if is_full and self._silent:
                longest = next(iter(self._silent))
                self._forget(longest)
                longest.cancel()
                is_full = False
            task = loop.create_task(self._serve(client, address[0], is_full=is_full))
            self._tasks.add(task)
            self._wait_for_client(task)
            task.add_done_callback(self._forget)
            # A task that is cancelled before it begins would not close its socket.
            await asyncio.sleep(0)

    def _wait_for_client(self, task: asyncio.Task[Any] | None) -> None:
        """Note that from now on a connection waits for its client, to send or to take bytes."""
        assert task is not None
        self._silent.pop(task, None)
        self._silent[task] = None

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._silent.pop(task, None)

    async def _serve(self, client: socket.socket, host: str, *, is_full: bool) -> None:
        """Serve a connection until it ends. `is_full`: there are too many already."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(HEADER_BYTES_MAX, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport: Any = None
        try:
            client.setblocking(False)
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, client)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            connection = await self._connect(reader, writer)
            if is_full:
                busy = HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections: try again")
                await connection.send(busy.response())
            else:
                while await self._serve_one(connection):
                    connection.begin_next()
        except ssl.SSLError as error:
            logger.warning("TLS of the control API with %s failed: %s", host, _explain(error))
        except (OSError, TimeoutError, h11.LocalProtocolError) as error:
            logger.debug("control connection ended: %r", error)
        except asyncio.CancelledError:
            logger.debug("control connection ended: by the stop, or for a newer one")
        finally:
            if transport is None:
                client.close()
            else:
                transport.abort()

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> _Connection:
        """Return the connection of these streams, behind the TLS handshake if there is one.
        Raises OSError (ssl.SSLError among them), TimeoutError.
        """
        if self._tls is None:
            return _Connection(reader, writer)
        from minibroker.control.tls_stream import TlsStream  # noqa: PLC0415  only with TLS

        stream = TlsStream(reader, writer, self._tls())
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            await stream.shake_hands(self._handshakes)
        return _Connection(stream, stream)

    async def _serve_one(self, connection: _Connection) -> bool:
        """Answer one request; return whether another may follow."""
        task: asyncio.Task[Any] | None = asyncio.current_task()
        self._wait_for_client(task)
        try:
            request = await connection.receive()
            if request is None:
                return False
            self._silent.pop(task, None)  # type: ignore[arg-type]
            response = await self._handle(request)
        except HttpError as error:
            response = error.response()
        except h11.RemoteProtocolError as error:
            response = HttpError(error.error_status_hint, f"this is not HTTP: {error}").response()
        except TimeoutError:
            response = HttpError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the request did not arrive within {REQUEST_TIMEOUT_S:g} s",
            ).response()
        except Exception:  # a bug of minibroker; the broker and this connection continue
            logger.exception("the control API failed")
            response = HttpError(
                HTTPStatus.INTERNAL_SERVER_ERROR, "minibroker failed: its log says how"
            ).response()
        self._wait_for_client(task)
        return await connection.send(response)


def _explain(failure: ssl.SSLError) -> str:
    """Return the reason of a failed handshake, and the way out."""
    if failure.reason in _PLAIN_HTTP:
        return "the client speaks plain HTTP, its address has to begin with https://"
    reason = (failure.reason or str(failure)).lower().replace("_", " ")
    if "alert" in reason and ("unknown ca" in reason or "certificate" in reason):
        return f"{reason}: the client has to trust the CA of the certificate (curl --cacert FILE)"
    return reason


class _Connection:
    """The connection of a client. The loop owns it."""

    def __init__(
        self, reader: asyncio.StreamReader | TlsStream, writer: asyncio.StreamWriter | TlsStream
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_BYTES_MAX)
        self._is_head = False

    def begin_next(self) -> None:
        """Prepare for the next request."""
        self._http.start_next_cycle()

    async def receive(self) -> HttpRequest | None:
        """Return the next request, None if the client left.
        Raises HttpError, h11.RemoteProtocolError, TimeoutError.
        """
        if not self._http.trailing_data[0]:
            try:
                async with asyncio.timeout(IDLE_TIMEOUT_S):
                    first = await self._reader.read(_READ_BYTES)
            except TimeoutError:
                return None
            if not first:
                return None
            self._http.receive_data(first)
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            head = await self._next_event()
            if not isinstance(head, h11.Request):
                return None
            body = bytearray()
            while isinstance(part := await self._next_event(), h11.Data):
                body += part.data
                if len(body) > BODY_BYTES_MAX:
                    raise HttpError(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                        f"the body is larger than {BODY_BYTES_MAX} bytes",
                    )
        method = head.method.decode("ascii")
        self._is_head = method == "HEAD"
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        method = "GET" if self._is_head else method
        try:
            target = urlsplit(head.target.decode("ascii"))
        except ValueError as error:
            return HttpRequest(method, "", {}, headers, bytes(body), fault=str(error))
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        return HttpRequest(method, unquote(target.path), query, headers, bytes(body))

    async def _next_event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                proceed = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._http.send(proceed))
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event

    async def send(self, response: Response) -> bool:
        """Write the answer; return whether the connection can continue.
        Raises ConnectionError, TimeoutError.
        """
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return False
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            *response.headers,
        ]
        body = b"" if self._is_head else response.body
        data = self._http.send(h11.Response(status_code=response.status, headers=headers))
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            for start in range(0, len(body) or 1, PIECE_BYTES):
                if start:
                    await asyncio.sleep(0)
                piece = h11.Data(data=bytes(body[start : start + PIECE_BYTES]))
                self._writer.write(data + self._http.send(piece))
                data = b""
                await self._writer.drain()
        self._http.send(h11.EndOfMessage())
        states: set[Any] = {self._http.our_state, self._http.their_state}
        if states == {h11.DONE}:
            return True
        self._writer.close()
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            await self._writer.wait_closed()
        return False
