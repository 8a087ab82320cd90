"""`ScriptedBroker`: a broker that answers as it was recorded, and knows nothing else.

    frame ─► Script.find ─► the answer of then, with this request's correlation id and this address

An answer comes after the time that it took. A request that was not recorded closes the connection,
and `on_refused` gets a sentence that says what was recorded. Requests of a connection are answered
in order, as a broker does. Belongs to the loop.
"""

from __future__ import annotations

import asyncio
import time
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS, SASL_HANDSHAKE, load_messages
from minibroker.kafka.protocol.header import response_header
from minibroker.kafka.protocol.primitives import Writer
from minibroker.trace.decode import FrameHead, Frames, decode, read_head, read_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.kafka.protocol.message import Message
    from minibroker.trace.exchange import Exchange
    from minibroker.trace.script import Script

FRAME_BYTES_MAX: Final = 100 << 20
"""Bytes of a request, as brokers have it."""
CONNECTIONS_MAX: Final = 1_000
AT_ONCE_BYTES_MAX: Final = 8 << 10
"""A larger request is compared beside the loop."""
_LENGTH: Final = Struct(">i")


class RefusedRequestError(ProtocolError):
    """A request that the script does not have; the message says what it has."""


class ScriptedBroker:
    """Serves one script on one address."""

    def __init__(
        self,
        script: Script,
        readdress: Callable[[int, Message, tuple[str, int]], None],
        now_ms: Callable[[], float],
        *,
        on_exchange: Callable[[Exchange], None] = lambda _: None,
        on_refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take a script.

        Args:
            script: the requests and their answers.
            readdress: writes this address over those of brokers in an answer; its API key is first.
            now_ms: returns the wall clock's time.
            on_refused: gets a sentence about each request that is not in the script.
        """
        self._script = script
        self._readdress = readdress
        self._now_ms = now_ms
        self._on_exchange = on_exchange
        self._on_refused = on_refused
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._address = ("", 0)
        self._finding = asyncio.Lock()
        """Held while an answer is looked up: large requests are compared in a thread."""
        self._connection_number = 0
        self.answered = 0
        self.refused = 0

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; return the address. Port 0 takes a free one. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port)
        own_host, own_port = self._server.sockets[0].getsockname()[:2]
        self._address = (str(own_host), int(own_port))
        return self._address

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._connections.add(task)
        self._connection_number += 1
        number = self._connection_number
        try:
            await self._answer_all(number, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return  # the client has left, or `stop` ends it
        except ProtocolError as error:
            self.refused += 1
            self._on_refused(str(error))
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer_all(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the requests of a connection. Raises ProtocolError for one that cannot be."""
        host, port = writer.get_extra_info("peername")[:2]
        is_login = False
        while True:
            (size_bytes,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            if not 0 <= size_bytes <= FRAME_BYTES_MAX:
                raise ProtocolError(f"a frame of {size_bytes} bytes from {host}:{port}")
            frame = await reader.readexactly(size_bytes)
            began_s = time.perf_counter()
            head = read_head(frame)
            is_token = is_login and head.body_at < 0
            reply, wait_ms = self._token() if is_token else await self._find(head, frame)
            is_login = head.api_key == SASL_HANDSHAKE and head.version == 0
            if wait_ms:
                await asyncio.sleep(wait_ms / 1_000)
            if reply is not None:
                writer.write(_LENGTH.pack(len(reply)) + reply)
                await writer.drain()
            self.answered += 1
            elapsed_ms = (time.perf_counter() - began_s) * 1_000
            self._on_exchange(
                decode(
                    Frames(
                        number=self.answered,
                        connection=number,
                        client_address=f"{host}:{port}",
                        broker="script",
                        at_ms=self._now_ms() - elapsed_ms,
                        duration_ms=None if reply is None else elapsed_ms,
                        request=frame,
                        answer=reply,
                        is_token=is_token,
                    ),
                    self._script.names,
                )
            )

    def _token(self) -> tuple[bytes, float]:
        """Return the answer to a token of an old login. Raises RefusedRequestError."""
        if not self._script.takes_tokens:
            raise RefusedRequestError("not recorded: a login whose answers can be repeated")
        return b"", 0.0

    async def _find(self, head: FrameHead, frame: bytes) -> tuple[bytes | None, float]:
        """Return the frame of an answer and its time in ms.

        Raises RefusedRequestError, ProtocolError.
        """
        async with self._finding:
            if len(frame) <= AT_ONCE_BYTES_MAX:
                return self._reply(head, frame)
            return await asyncio.to_thread(self._reply, head, frame)

    def _reply(self, head: FrameHead, frame: bytes) -> tuple[bytes | None, float]:
        """Return the frame of an answer and its time in ms; None if none came.

        Raises RefusedRequestError, ProtocolError.
        """
        api_key, version = head.api_key, head.version
        request, note = (None, head.problem or "") if head.problem else read_request(head, frame)
        if request is None:
            if api_key == API_VERSIONS and self._script.versions_answer is not None:
                return self._versions(head), 0.0
            raise ProtocolError(f"{head.api} v{version} cannot be read: {note}")
        scripted = self._script.find(api_key, version, request)
        if scripted is None:
            if api_key == API_VERSIONS and self._script.versions_answer is not None:
                return self._versions(head), 0.0
            subject = decode(_frames(frame), self._script.names).subject
            about = f" about {subject}" if subject else ""
            raise RefusedRequestError(
                f"not recorded: {head.api} v{version}{about}; "
                f"{self._script.reason(api_key, version)}"
            )
        if scripted.answer is None:
            return None, 0.0
        return self._encode(head, scripted.answer, version), scripted.duration_ms

    def _versions(self, head: FrameHead) -> bytes:
        """Return the versions that were recorded, as a broker does that has not the version."""
        answer: Any = self._script.versions_answer
        refusal = load_messages(API_VERSIONS)[1](
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=answer.api_keys
        )
        return self._encode(head, refusal, 0)

    def _encode(self, head: FrameHead, answer: Any, version: int) -> bytes:
        """Return the frame of an answer, with this address in it. Raises ProtocolError."""
        self._readdress(head.api_key, answer, self._address)
        is_refusal = getattr(answer, "error_code", 0) == ErrorCode.UNSUPPORTED_VERSION
        if head.api_key == API_VERSIONS and is_refusal:
            version = 0
        writer = Writer()
        try:
            answer.write(writer, version)
        except (ValueError, TypeError, AttributeError, struct_error) as error:
            raise ProtocolError(
                f"the recorded answer to {head.api} v{version} cannot be written: {error}"
            ) from None
        return response_header(head.api_key, version, head.correlation_id) + writer.to_bytes()


def _frames(request: bytes) -> Frames:
    return Frames(0, 0, "", "", 0.0, None, request, None)
