"""`TlsLayer`: TLS of the control API, between a socket's transport and the protocol of HTTP.

    socket's transport ◄─encrypted─► TlsLayer ◄─plain─► uvicorn's H11Protocol

To the protocol it is the transport, to the transport the protocol. The steps of a handshake run on
a worker thread: the private key's work takes 0.3 ms with RSA of 2048 bits, and 4 ms with 4096. The
loops' own TLS does it on the loop. The work behind a handshake is cheap and stays there. OpenSSL
bounds the bytes of a handshake, `server.Guard` its time.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

logger = logging.getLogger(__name__)

_READ_BYTES: Final = 64 << 10
_PLAIN_HTTP: Final = ("HTTP_REQUEST", "WRONG_VERSION_NUMBER")
"""OpenSSL's words for a request without TLS."""


class TlsLayer(asyncio.Transport):
    """Reads and writes through TLS, as the broker's side. The loop owns it; during a step of the
    handshake a worker has the TLS object, and the socket is not read.
    """

    def __init__(
        self,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        workers: Executor,
        on_secured: Callable[[], None],
    ) -> None:
        """`on_secured` is called when the handshake is done."""
        super().__init__()
        self._protocol = protocol
        self._workers = workers
        self._on_secured = on_secured
        self._socket: asyncio.Transport
        """Constant from `connection_made` on."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_secured = False
        """True from the end of the handshake on."""
        self._has_ended = False
        """True once nothing more is sent."""

    # The socket's transport calls these.

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin; the first bytes are those of a handshake."""
        self._socket = transport

    def data_received(self, data: bytes) -> None:
        """Take encrypted bytes."""
        self._incoming.write(data)
        if self._is_secured:
            self._deliver()
        else:
            self._socket.pause_reading()
            step = asyncio.get_running_loop().run_in_executor(self._workers, self._tls.do_handshake)
            step.add_done_callback(self._end_step)

    def eof_received(self) -> None:
        """Let the socket's transport close: the client sends no more."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol, if it is connected."""
        self._has_ended = True
        if self._is_secured:
            self._protocol.connection_lost(exc)

    def _end_step(self, step: asyncio.Future[None]) -> None:
        if step.cancelled() or self._has_ended or self._socket.is_closing():
            return
        self._flush()
        failure = step.exception()
        if failure is None:
            self._is_secured = True
            self._on_secured()
            self._protocol.connection_made(self)
        elif not isinstance(failure, ssl.SSLWantReadError):
            self._fail(failure)
            return
        self._socket.resume_reading()
        if self._is_secured:
            self._deliver()

    def _fail(self, failure: BaseException) -> None:
        """End a handshake; an alert that tells the client the reason leaves before the end."""
        address = self._socket.get_extra_info("peername") or ("a client",)
        logger.warning("TLS of the control API with %s failed: %s", address[0], _explain(failure))
        self._socket.close()

    def _deliver(self) -> None:
        """Hand on the plain bytes that are here."""
        try:
            with suppress(ssl.SSLWantReadError):  # the rest of a record is on its way
                while not self._has_ended and (self._incoming.pending or self._tls.pending()):
                    data = self._tls.read(_READ_BYTES)
                    if not data:
                        break
                    self._protocol.data_received(data)
        except ssl.SSLZeroReturnError:
            self.close()
        except ssl.SSLError as failure:
            self._fail(failure)
        if not self._socket.is_closing():
            self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    # The protocol calls these.

    def write(self, data: Any) -> None:
        """Encrypt and send."""
        if data and not self._has_ended:
            self._tls.write(data)
            self._flush()

    def pause_reading(self) -> None:
        """Read nothing from the socket; the protocol gets what is decrypted already."""
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Read the socket again."""
        self._socket.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what the socket's transport knows, and the TLS object."""
        if name in ("ssl_object", "sslcontext"):
            return self._tls if name == "ssl_object" else self._tls.context
        return self._socket.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Return whether nothing more is sent."""
        return self._has_ended or self._socket.is_closing()

    def close(self) -> None:
        """Say that nothing more is sent, and close behind it. Nobody waits for the client to say
        so, too.
        """
        if not self._has_ended:
            self._has_ended = True
            with suppress(ssl.SSLError):  # the client has not said it yet
                self._tls.unwrap()
            self._flush()
        self._socket.close()


def _explain(failure: BaseException) -> str:
    """Return the reason of a failed handshake, and the way out."""
    reason = getattr(failure, "reason", None) or str(failure)
    if reason in _PLAIN_HTTP:
        return "the client speaks plain HTTP, its address has to begin with https://"
    reason = reason.lower().replace("_", " ")
    if "alert" in reason and ("unknown ca" in reason or "certificate" in reason):
        return f"{reason}: the client has to trust the CA of the certificate (curl --cacert FILE)"
    return reason
