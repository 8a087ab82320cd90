"""`Acceptor`: the listening sockets of one address. It loses no client.

`loop.create_server` loses a client that comes while it closes, and is silent about one whose TLS
handshake fails. Here the owner has a protocol for a client from the step in which it is accepted.
The proxy and the servers of HTTP listen with it. Belongs to the loop.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

P = TypeVar("P", bound=asyncio.BaseProtocol)

ACCEPT_RETRY_S: Final = 0.1
"""Wait after a failed accept, when the system has no file handle left."""


class Acceptor(Generic[P]):
    """Accepts clients between `listen` and `close`."""

    def __init__(
        self,
        begin: Callable[[], P],
        forget: Callable[[P], None],
        report: Callable[[str], None],
        *,
        backlog: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take what happens to clients.

        Args:
            begin: returns the protocol of a client that is accepted.
            forget: gets a protocol whose connection is not made, or ends while it is; then
                `connection_lost` may be called, too.
            report: gets a sentence when no client can be accepted, once until one can.
            backlog: clients that wait in the kernel.
            tls: None: plaintext.
        """
        self._begin = begin
        self._forget = forget
        self._report = report
        self._backlog = backlog
        self._tls = tls
        self._sockets: list[socket.socket] = []
        self._is_failing = False
        """True from an accept that failed until the next one that does not."""
        self._connecting: set[asyncio.Task[object]] = set()
        """One for each client that was accepted just now, or is in its TLS handshake."""

    @property
    def is_listening(self) -> bool:
        """Return whether clients are accepted."""
        return bool(self._sockets)

    async def listen(self, host: str, port: int) -> int:
        """Listen at every address of the host; return the port: 0 asks for a free one.

        Raises OSError.
        """
        loop = asyncio.get_running_loop()
        try:
            addresses = await loop.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except UnicodeError:  # of IDNA: an empty label, or one that is too long
            raise OSError("this is no name of a host") from None
        try:
            for family, _, _, _, address in dict.fromkeys(addresses):
                free = self._sockets[0].getsockname()[1] if self._sockets else port
                bound = socket.create_server(
                    (address[0], free), family=family, backlog=self._backlog
                )
                bound.setblocking(False)
                self._sockets.append(bound)
        except OSError:
            self._unbind()
            raise
        for bound in self._sockets:
            loop.add_reader(bound, self._accept, bound)
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        """Listen no more, and end the clients that are no connections yet."""
        self._unbind()
        for connecting in self._connecting:
            connecting.cancel()

    async def finish(self) -> None:
        """Return when nothing is left of the clients that `close` has ended."""
        await asyncio.gather(*self._connecting, return_exceptions=True)

    def _unbind(self) -> None:
        for bound in self._sockets:
            asyncio.get_running_loop().remove_reader(bound)
            bound.close()
        self._sockets.clear()

    def _accept(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            client, _ = bound.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            if not self._is_failing:
                self._report(f"cannot accept a connection: {error}")
            self._is_failing = True
            loop.remove_reader(bound)
            loop.call_later(ACCEPT_RETRY_S, self._accept_again, bound)
            return
        self._is_failing = False
        client.setblocking(False)
        protocol = self._begin()
        connecting = loop.create_task(
            loop.connect_accepted_socket(lambda: protocol, client, ssl=self._tls)
        )
        self._connecting.add(connecting)
        connecting.add_done_callback(partial(self._end_connecting, client, protocol))

    def _accept_again(self, bound: socket.socket) -> None:
        if bound in self._sockets:
            asyncio.get_running_loop().add_reader(bound, self._accept, bound)

    def _end_connecting(
        self, client: socket.socket, protocol: P, connecting: asyncio.Task[object]
    ) -> None:
        self._connecting.discard(connecting)
        if connecting.cancelled():
            client.close()  # nobody has it yet where the task had not begun
            self._forget(protocol)
        elif (error := connecting.exception()) is not None:
            self._forget(protocol)
            if not isinstance(error, OSError):
                raise error
