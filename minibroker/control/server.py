"""The HTTP server of the control API and of the schema registry: uvicorn on the broker's loop, and
limits around it.

    socket ─► Guard ─► TlsLayer, if any ─► uvicorn's H11Protocol ─► HttpServer ─► api
              count, times                  bytes ◄─► a request      size, time

An answer is sent whole, or it is an `EventStream`, which goes on until its client leaves.

uvicorn parses requests, writes answers and keeps connections open. Here stands what it leaves to a
proxy in front of it: the number of connections, slow clients, the size of a body.

There are at most `CONNECTIONS_MAX` connections, counted from the accept on. One more ends the one
whose client has been silent longest: in a handshake, between two requests, or within one. So idle
clients cannot keep others from `/health`. Only if a request of every connection is in work, the new
one gets 503.

`uvicorn.Server` is left out: it takes the signals of the process, and looks ten times a second
whether it has to end.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl

import h11

from minibroker.acceptor import Acceptor
from minibroker.control.messages import (
    EVENT_STREAM,
    EventStream,
    HttpError,
    HttpRequest,
    Response,
)
from minibroker.control.uvicorn_parts import Config, H11Protocol, ServerState

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from minibroker.control.messages import Work
    from minibroker.control.tls_layer import TlsLayer

logger = logging.getLogger(__name__)

HEADER_BYTES_MAX: Final = 16 << 10
REQUEST_TIMEOUT_S: Final = 10.0
"""Longest time from the first byte of a request to its last, for a TLS handshake, and for taking a
piece of an answer.
"""
IDLE_TIMEOUT_S: Final = 60
CONNECTIONS_MAX: Final = 64
PIECE_BYTES: Final = 64 << 10
"""Largest piece of an answer that is sent at once; the loop is free between two pieces."""


class HttpServer:
    """Serves HTTP: `listen`, then `close`. The loop owns it."""

    def __init__(
        self,
        begin: Callable[[HttpRequest], Work],
        tls: Callable[[], ssl.SSLContext] | None = None,
        *,
        service: str = "the control API",
        refusal: type[HttpError] = HttpError,
    ) -> None:
        """`begin` returns the work for a request whose body is not read yet; it may raise
        HttpError. `tls`: returns the context of the next connection; None: without TLS. `service`:
        its name in log lines. `refusal`: the kind of error that its clients understand.
        """
        self._begin = begin
        self._service = service
        self.refusal = refusal
        """Constant."""
        self.tls = tls
        """Constant."""
        self.workers = ThreadPoolExecutor(1, "http-handshakes")
        """Does the steps of TLS handshakes; its thread begins with the first."""
        self.config = Config(
            self._answer,
            http=_Protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=IDLE_TIMEOUT_S,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
        self.config.load()
        self.state = ServerState()
        """The connections and tasks of uvicorn."""
        self._acceptor = Acceptor(
            self._begin_connection,
            self.forget,
            lambda sentence: logger.warning("%s %s", service, sentence),
            backlog=CONNECTIONS_MAX,
        )
        self._guards: set[Guard] = set()
        """One for each connection."""
        self._silent: dict[Guard, None] = {}
        """Those that wait for their client; the one that has waited longest is first."""
        self._is_closing = False
        self._all_lost = asyncio.Event()
        """Set while there is no connection."""
        self._all_lost.set()

    async def listen(self, host: str, port: int) -> int:
        """Bind every address of the host and serve; return the port. Raises OSError."""
        return await self._acceptor.listen(host, port)

    async def close(self) -> None:
        """Stop to serve and close all connections."""
        self._is_closing = True
        self._acceptor.close()
        await self._acceptor.finish()
        tasks = list(self.state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for guard in self._guards:
            guard.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await self._all_lost.wait()
        self.workers.shutdown(wait=False, cancel_futures=True)

    def _begin_connection(self) -> Guard:
        guard = Guard(self)
        self._guards.add(guard)
        self._all_lost.clear()
        return guard

    # Guards call these.

    def admit(self, guard: Guard) -> bool:
        """Take a new connection; return whether there was room, or an older one made it."""
        if self._is_closing:
            guard.abort()  # it was accepted before the end
            return False
        is_full = len(self._guards) > CONNECTIONS_MAX
        if is_full and self._silent:
            longest = next(iter(self._silent))
            del self._silent[longest]
            longest.abort()
            is_full = False
        self.wait_for_client(guard)
        return not is_full

    def wait_for_client(self, guard: Guard) -> None:
        """Note that from now on a connection waits for its client, to send or to take bytes."""
        self._silent.pop(guard, None)
        if not guard.is_ending:
            self._silent[guard] = None

    def forget(self, guard: Guard) -> None:
        """Drop a connection that has ended."""
        self._guards.discard(guard)
        self._silent.pop(guard, None)
        if not self._guards:
            self._all_lost.set()

    # uvicorn calls this.

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as an application of ASGI."""
        guard: Guard = scope["state"]["guard"]
        guard.begin_answer()
        try:
            response = await self._response(guard, scope, receive)
            if isinstance(response, EventStream):
                await self._stream(guard, response, scope, receive, send)
            elif response is not None:
                await _send(response, send)
        except TimeoutError:
            guard.abort()  # the client does not take the answer
        except asyncio.CancelledError:
            if not self._is_closing:
                raise
        except Exception:  # a bug of minibroker behind the head of an answer
            logger.exception("the control API failed within an answer")
            guard.abort()
        finally:
            guard.end_answer()

    async def _stream(
        self, guard: Guard, stream: EventStream, scope: Any, receive: Any, send: Any
    ) -> None:
        """Send a stream until it ends or its client leaves. Such a client is not silent: it makes
        no way for others. Raises TimeoutError where it does not take a piece.
        """
        self._silent.pop(guard, None)
        tasks: list[asyncio.Future[Any]] = []
        try:
            if scope["method"] != "HEAD":
                sending = asyncio.ensure_future(_send_pieces(stream, send))
                tasks = [sending, asyncio.ensure_future(_until_gone(receive))]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await stream.pieces.aclose()
            stream.on_end()
        if scope["method"] == "HEAD":
            await send(_start(HTTPStatus.OK, _stream_headers(stream)))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        self.wait_for_client(guard)

    async def _response(
        self, guard: Guard, scope: Any, receive: Any
    ) -> Response | EventStream | None:
        """Return the answer, None if the client left."""
        try:
            if not guard.is_admitted:
                raise self.refusal(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "too many connections: try again",
                    (("Connection", "close"),),
                )
            work = self._begin(_request_of(scope, receive))
            body = await self._read_body(scope, receive, work.body_bytes_max)
            if body is None:
                return None
            self._silent.pop(guard, None)
            return await work.run(body)
        except HttpError as error:
            return error.response()
        except Exception:  # a bug of minibroker; the broker and this connection continue
            logger.exception("%s failed", self._service)
            return self.refusal(
                HTTPStatus.INTERNAL_SERVER_ERROR, "minibroker failed: its log says how"
            ).response()
        finally:
            self.wait_for_client(guard)

    async def _read_body(self, scope: Any, receive: Any, bytes_max: int) -> bytearray | None:
        """Return the body of a request, None if the client left. Raises HttpError."""
        too_large = self.refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {bytes_max} bytes"
        )
        length = next(
            (value for name, value in scope["headers"] if name == b"content-length"), b"0"
        )
        if int(length) > bytes_max:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message["body"]
                    if len(body) > bytes_max:
                        raise too_large
                    if not message["more_body"]:
                        return body
        except TimeoutError:
            close = (("Connection", "close"),)
            raise self.refusal(HTTPStatus.REQUEST_TIMEOUT, _TOO_SLOW, close) from None


class Guard(asyncio.Protocol):
    """Counts a connection and ends a slow one. Belongs to the loop."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        """Constant."""
        self._transport: asyncio.Transport | None = None
        """Constant from `connection_made` on."""
        self._http = _Protocol(server.config, cast("Any", server.state), {"guard": self})
        """Constant."""
        self._above: _Protocol | TlsLayer = self._http
        """Constant from `connection_made` on. It gets the bytes of the socket."""
        self.is_admitted = True
        """Constant from `connection_made` on. False: there are too many connections."""
        self._is_secured = server.tls is None
        """False in a TLS handshake."""
        self._has_begun = False
        """True while the head of a request is not whole."""
        self._is_answering = False
        """True from the head of a request to the end of its answer; both have time-outs."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        # So an answer that is sent is an answer that the client's machine has taken.
        transport.set_write_buffer_limits(high=0)
        self.is_admitted = self._server.admit(self)
        if self._server.tls is not None:
            from minibroker.control.tls_layer import TlsLayer  # noqa: PLC0415  only with TLS

            context, workers = self._server.tls(), self._server.workers
            self._above = TlsLayer(self._http, context, workers, self._secured)
        self._expect_within(IDLE_TIMEOUT_S if self._is_secured else REQUEST_TIMEOUT_S)
        self._above.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._server.forget(self)
        self._above.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_secured and not (self._has_begun or self._is_answering):
            self._has_begun = True
            self._server.wait_for_client(self)
            self._expect_within(REQUEST_TIMEOUT_S)
        self._above.data_received(data)

    def eof_received(self) -> bool | None:
        return self._above.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    @property
    def refusal(self) -> type[HttpError]:
        """Return the kind of error that the client understands."""
        return self._server.refusal

    @property
    def is_ending(self) -> bool:
        """Return whether the connection is closed, or about to be."""
        return self._transport is None or self._transport.is_closing()

    def abort(self) -> None:
        """End the connection at once, and an answer with it."""
        if self._http.cycle is not None:
            self._http.cycle.disconnected = True  # otherwise uvicorn misses the rest of it
        if self._transport is not None:
            self._transport.abort()

    def begin_answer(self) -> None:
        """Note that the head of a request is here."""
        self._has_begun = False
        self._is_answering = True
        self._stop_timer()

    def end_answer(self) -> None:
        """Note that the answer is sent; uvicorn ends the connection if no request follows."""
        self._is_answering = False

    def _expect_within(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._timed_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _secured(self) -> None:
        self._is_secured = True
        self._expect_within(IDLE_TIMEOUT_S)

    def _timed_out(self) -> None:
        if self._has_begun:
            self._http.refuse(HTTPStatus.REQUEST_TIMEOUT, _TOO_SLOW)
        else:
            self.abort()


class _Protocol(H11Protocol):
    """uvicorn's protocol, with refusals in JSON."""

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP."""
        self.refuse(
            HTTPStatus.BAD_REQUEST,
            f"this is not HTTP, or its head is larger than {HEADER_BYTES_MAX} bytes",
        )

    def refuse(self, status: int, sentence: str) -> None:
        """Answer with an error where the application has not begun to, and close."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application may be about to answer
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refusal = self.app_state["guard"].refusal
            error = refusal(status, sentence, (("Connection", "close"),)).response()
            head = h11.Response(status_code=status, headers=_headers(error))
            is_head = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            body = b"" if is_head else bytes(error.body)
            for event in (head, h11.Data(body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


_TOO_SLOW: Final = f"the request did not arrive within {REQUEST_TIMEOUT_S:g} s"


async def _until_gone(receive: Any) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _request_of(scope: Any, receive: Any) -> HttpRequest:
    method = scope["method"]
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return HttpRequest(
        "GET" if method == "HEAD" else method,
        scope["raw_path"].decode("ascii"),
        dict(query),
        {name.decode("ascii"): value.decode("latin-1") for name, value in scope["headers"]},
        partial(_until_gone, receive),
    )


def _headers(response: Response) -> list[tuple[bytes, bytes]]:
    if response.status == HTTPStatus.NOT_MODIFIED:
        return _as_bytes(*response.headers)
    return _as_bytes(
        ("Content-Type", response.content_type),
        ("Content-Length", str(len(response.body))),
        *response.headers,
    )


def _stream_headers(stream: EventStream) -> list[tuple[bytes, bytes]]:
    """Return the head of a stream: it has no length, so HTTP/1.1 sends it in chunks."""
    return _as_bytes(("Content-Type", EVENT_STREAM), *stream.headers)


def _as_bytes(*lines: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in lines]


def _start(status: int, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _send(response: Response, send: Any) -> None:
    """Send an answer in pieces. Raises TimeoutError where the client does not take a piece."""
    await send(_start(response.status, _headers(response)))
    for begin in range(0, len(response.body), PIECE_BYTES):
        await _send_piece(bytes(response.body[begin : begin + PIECE_BYTES]), send)
        await asyncio.sleep(0)
    await _send_end(send)


async def _send_pieces(stream: EventStream, send: Any) -> None:
    """Send a stream to its end. Raises TimeoutError where the client does not take a piece."""
    await send(_start(HTTPStatus.OK, _stream_headers(stream)))
    async for piece in stream.pieces:
        await _send_piece(piece, send)
    await _send_end(send)


async def _send_piece(piece: bytes, send: Any) -> None:
    async with asyncio.timeout(REQUEST_TIMEOUT_S):
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _send_end(send: Any) -> None:
    async with asyncio.timeout(REQUEST_TIMEOUT_S):  # the last piece is taken before this one
        await send({"type": "http.response.body", "body": b"", "more_body": False})
