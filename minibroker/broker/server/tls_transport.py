"""TLS between a socket and the transport of a client: the asyncio side of an `ssl.SSLObject`.

    socket ◄─encrypted─► TlsTransport ◄─plain─► ClientTransport

First station of a request on a listener with TLS. To the client's transport this is the socket: it
connects when the handshake is done, so nothing of the client is read as a request before.

The steps of a handshake run on a worker: the private key's work takes up to some milliseconds. A
handshake has `HANDSHAKE_TIMEOUT_MS` and `HANDSHAKE_BYTES_MAX`. A failed one sends the alert that
tells the client the reason, and is one log line.

A client that is not read, because a quota throttles it, may end the connection. It says so through
TLS, and waits until the broker says so, too. So up to `READ_AHEAD_BYTES` are decrypted meanwhile,
and kept.

The loops have TLS of their own. They drop the alert, wait for the peer at the end, run the
handshake on the loop, and do not bound its bytes; see docs/decisions.

Source: Kafka SslTransportLayer, Selector; Python ssl.SSLObject.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.server.interceptor import LoginStage
from minibroker.broker.server.write_queue import WriteQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.security.listener_tls import ListenerTls
    from minibroker.broker.server.connections import Connections
    from minibroker.broker.server.transport import ClientTransport
    from minibroker.broker.timers import Timer

    Buffer = bytes | bytearray | memoryview
logger = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_MS: Final = 30_000
HANDSHAKE_BYTES_MAX: Final = 256 * 1024
"""Bytes of the client: its certificates may have 100 KiB (OpenSSL)."""
PIECE_BYTES: Final = 64 * 1024
"""Plain bytes that are encrypted at once: four records of TLS. They stay in the processor's cache
until the socket has them. Memory for more than this would come from the kernel, new every time.
"""
READ_AHEAD_BYTES: Final = 16 * 1024
"""Bytes that are decrypted while the client's transport wants none: one record of TLS."""


class TlsState(IntEnum):
    """The state of a connection with TLS."""

    HANDSHAKE = auto()
    OPEN = auto()
    CLOSED = auto()


class TlsTransport(asyncio.BufferedProtocol):
    """One connection with TLS. The loop owns it; during a step of the handshake a worker has the
    TLS object, and the socket is not read.
    """

    __slots__ = (
        "_client",
        "_connections",
        "_decrypted_bytes",
        "_handshake_bytes",
        "_has_ended",
        "_incoming",
        "_is_connected",
        "_is_noted",
        "_is_reading",
        "_outgoing",
        "_socket",
        "_state",
        "_timer",
        "_tls",
        "_tls_object",
        "address",
        "host",
        "is_control",
        "last_active_s",
        "listener",
    )

    def __init__(self, connections: Connections, tls: ListenerTls, client: ClientTransport) -> None:
        self._connections = connections
        """Constant."""
        self._tls = tls
        """Constant."""
        self._client = client
        """Constant."""
        self.listener = client.listener
        """Constant."""
        self.host = client.host
        """Constant."""
        self.address = client.address
        """Constant."""
        self._incoming = ssl.MemoryBIO()
        """Constant. Encrypted bytes from the peer."""
        self._outgoing = ssl.MemoryBIO()
        """Constant. Encrypted bytes for the peer."""
        self._tls_object: Any = tls.context.wrap_bio(
            self._incoming, self._outgoing, server_side=True
        )
        """Constant."""
        self._socket: Any
        """Constant from `connection_made` on. The socket's transport."""
        self._state = TlsState.HANDSHAKE
        self._is_connected = False
        """True from the end of the handshake on: the client's transport hears of the end."""
        self._is_noted = False
        """True once the interceptor of logins was asked."""
        self._handshake_bytes = 0
        """Bytes that came before the end of the handshake."""
        self._is_reading = True
        """False while the client's transport wants no bytes."""
        self._decrypted_bytes = bytearray()
        """Bytes that were decrypted meanwhile."""
        self._has_ended = False
        """The peer sends no more, behind these bytes."""
        self._timer: Timer | None = None
        """Ends a handshake that takes too long."""
        self.last_active_s = 0.0
        """When bytes came in the handshake, on the loop's clock."""
        self.is_control = False

    # The socket's transport calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = transport
        self.last_active_s = self._connections.loop.time()
        self._connections.add(self)
        self._timer = self._connections.services.timers.after(
            HANDSHAKE_TIMEOUT_MS, self._handshake_timed_out
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._note_departure()
        if self._is_connected:
            self._client.connection_lost(exc)
        else:
            self._connections.remove(self)

    def eof_received(self) -> bool:
        """Close behind what is kept, as for a client without TLS: the peer sends no more."""
        if self._decrypted_bytes:
            self._has_ended = True
            return True
        self._note_departure()
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._tls.read_buffer
        return buffer if self._is_reading else buffer[:READ_AHEAD_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        if self._state is TlsState.CLOSED:
            return
        self._incoming.write(self._tls.read_buffer[:nbytes])
        if self._state is TlsState.OPEN:
            self._deliver()
            return
        self.last_active_s = self._connections.loop.time()
        self._handshake_bytes += nbytes
        if self._handshake_bytes > HANDSHAKE_BYTES_MAX:
            self._fail(f"the client sent more than {HANDSHAKE_BYTES_MAX} bytes before its end")
        else:
            self._begin_step()

    def pause_writing(self) -> None:
        if self._state is TlsState.OPEN:
            self._client.pause_writing()

    def resume_writing(self) -> None:
        if self._state is TlsState.OPEN:
            self._client.resume_writing()

    # The handshake.

    def _begin_step(self) -> None:
        """Have the worker go on with the handshake, as far as the bytes reach."""
        self._socket.pause_reading()
        interceptor = self._connections.login_interceptor
        if interceptor is not None and not self._is_noted:
            self._is_noted = True
            if interceptor.takes(LoginStage.TLS, self._step, self._fail):
                return
        self._step()

    def _step(self) -> None:
        if self._state is TlsState.HANDSHAKE:
            self._connections.handshakes.run_then(self._tls_object.do_handshake, self._end_step)

    def _end_step(self, failure: Exception | None) -> None:
        if self._state is TlsState.CLOSED:
            return
        self._flush()
        if failure is None:
            self._open()
        elif isinstance(failure, ssl.SSLWantReadError):
            self._socket.resume_reading()
        else:
            self._fail(explain_failure(failure))

    def _open(self) -> None:
        """Connect the client's transport: the handshake is done."""
        try:
            if not self._client.listener.security_protocol.uses_sasl:
                self._client.principal = self._tls.principal_of(self._tls_object)
        except ValueError as error:
            self._fail(str(error))
            return
        self._cancel_timer()
        self._state = TlsState.OPEN
        self._is_connected = True
        # It has what a client needs of a transport.
        self._client.connection_made(self)  # type: ignore[arg-type]
        self._connections.hand_over(self)
        self._socket.resume_reading()
        self._deliver()

    def _handshake_timed_out(self) -> None:
        self._timer = None
        self._fail(
            f"it is not done after {HANDSHAKE_TIMEOUT_MS // 1000} s; a client without TLS may wait"
            " for the broker: set security.protocol in its configuration"
        )

    def _note_departure(self) -> None:
        """Note that the peer is gone. In a handshake that is a failure, unless it sent nothing: so
        do checks whether the port is open.
        """
        if self._state is TlsState.HANDSHAKE and self._handshake_bytes:
            self._fail(
                "the client closed the connection; often it does not trust the broker's"
                " certificate, or finds another host name in it"
            )
        self._cancel_timer()
        self._state = TlsState.CLOSED

    def _fail(self, reason: str) -> None:
        """End the handshake; an alert that tells the client the reason leaves before the end."""
        logger.warning(
            "TLS handshake with %s on listener %s failed: %s",
            self.address,
            self._client.listener.name,
            reason,
        )
        self._cancel_timer()
        self._state = TlsState.CLOSED
        self._socket.close()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Bytes of requests and answers.

    def _deliver(self) -> None:
        """Decrypt the bytes of the peer, as many at once as the client's buffer takes."""
        client = self._client
        while self._state is TlsState.OPEN and self._is_reading:
            room = client.get_buffer(-1)
            byte_count = self._take(room)
            if self._has_ended and not self._decrypted_bytes:
                self.close()
            if byte_count:
                client.buffer_updated(byte_count)
            if byte_count < len(room):
                break
        if not self._is_reading:
            self._read_ahead()
        self._flush()

    def _take(self, room: memoryview) -> int:
        """Fill `room`, first with the bytes that were decrypted before; return their number."""
        if not self._decrypted_bytes:
            return self._decrypt(room)
        count = min(len(room), len(self._decrypted_bytes))
        room[:count] = self._decrypted_bytes[:count]
        del self._decrypted_bytes[:count]
        return count if count == len(room) else count + self._decrypt(room[count:])

    def _read_ahead(self) -> None:
        """Keep some of the bytes that the client's transport does not want yet. Close where the
        peer says that it sends no more, and nothing is kept.
        """
        while self._state is TlsState.OPEN and len(self._decrypted_bytes) < READ_AHEAD_BYTES:
            room = bytearray(READ_AHEAD_BYTES - len(self._decrypted_bytes))
            count = self._decrypt(memoryview(room))
            self._decrypted_bytes += room[:count]
            if count < len(room):
                break
        if self._has_ended and not self._decrypted_bytes:
            self.close()
        elif self._has_ended or len(self._decrypted_bytes) == READ_AHEAD_BYTES:
            self._socket.pause_reading()

    def _decrypt(self, room: memoryview) -> int:
        """Decrypt into `room`; return the number of bytes.

        Notes the end if the peer announces it. Closes if the peer's bytes are not TLS.
        """
        tls_object, incoming = self._tls_object, self._incoming
        byte_count, size = 0, len(room)
        try:
            # The exception costs as much as a small record: ask first.
            while byte_count < size and (incoming.pending or tls_object.pending()):
                count = tls_object.read(size - byte_count, room[byte_count:])
                if not count:
                    self._has_ended = True
                    break
                byte_count += count
        except ssl.SSLWantReadError:
            return byte_count  # the rest of a record is on its way
        except ssl.SSLZeroReturnError:
            self._has_ended = True
        except ssl.SSLError as error:
            logger.warning("closing connection of %s: %s", self.address, explain_failure(error))
            self.close()
        return byte_count

    def _flush(self) -> None:
        """Send the bytes that OpenSSL has for the peer."""
        if self._outgoing.pending and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())

    # The client's transport calls these, as those of a socket's transport.

    def set_write_buffer_limits(self, high: int) -> None:
        """Set the bytes from which on the client's transport is to pause."""
        self._socket.set_write_buffer_limits(high=high)

    def get_write_buffer_size(self) -> int:
        """Return how many encrypted bytes the socket has not taken."""
        return int(self._socket.get_write_buffer_size())

    def is_reading(self) -> bool:
        """Return whether the client's transport wants bytes."""
        return self._is_reading

    def pause_reading(self) -> None:
        """Hand on no bytes. The socket is read until `READ_AHEAD_BYTES` are kept."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Hand on bytes again: those that are here, then those of the socket."""
        self._is_reading = True
        if self._socket.is_closing():
            return
        self._socket.resume_reading()
        if self._decrypted_bytes or self._incoming.pending or self._tls_object.pending():
            self._connections.loop.call_soon(self._deliver)

    def write(self, data: Buffer) -> None:
        """Encrypt and send."""
        if self._state is TlsState.OPEN and len(data):
            self._tls_object.write(data)
            self._flush()

    def writelines(self, buffers: Iterable[Buffer]) -> None:
        """Encrypt and send in pieces, joined where small: each write makes a record of its own."""
        outgoing = WriteQueue()
        outgoing.add(buffers)
        while outgoing.size_bytes:
            piece = outgoing.take(PIECE_BYTES)
            self.write(piece[0] if len(piece) == 1 else b"".join(piece))

    def is_closing(self) -> bool:
        """Return whether nothing is sent any more."""
        return self._state is not TlsState.OPEN or bool(self._socket.is_closing())

    def close(self) -> None:
        """Say that nothing more is sent, and close behind it. As in Kafka nobody waits for the
        peer to say so, too.
        """
        if self._state is TlsState.OPEN:
            self._state = TlsState.CLOSED
            with suppress(ssl.SSLError):  # the peer has not said it yet
                self._tls_object.unwrap()
            self._flush()
        self._socket.close()

    # As a connection of `Connections`, until the handshake is done.

    @property
    def idle_since_s(self) -> float:
        """Return when the last bytes came."""
        return self.last_active_s

    def is_taking(self) -> bool:
        """Return False: there are no answers yet."""
        return False

    def start_queued(self) -> None:
        """Do nothing: no request waits here."""

    def stop(self) -> None:
        """Close at once: the broker stops."""
        self.abort()

    def drop(self) -> None:
        """Close at once: no request is in hand."""
        self.abort()

    def abort(self) -> None:
        """Close at once; the peer gets nothing more."""
        self._cancel_timer()
        self._state = TlsState.CLOSED
        self._socket.abort()


_NO_TLS: Final = (
    "the client does not speak TLS: set security.protocol to SSL or SASL_SSL in its configuration,"
    " or let it connect to another listener"
)
_NOT_TRUSTED: Final = (
    "the client does not trust the broker's certificate: give it the CA's certificate"
    " (ssl.truststore.location, ssl.ca.location), and compare the host name it connects to"
)
_NOTHING_IN_COMMON: Final = (
    "the client offers no version of TLS and no cipher suite that this listener accepts"
    " (ssl.enabled.protocols, ssl.cipher.suites)"
)
_REASONS: Final = {
    "HTTP_REQUEST": _NO_TLS,
    "HTTPS_PROXY_REQUEST": _NO_TLS,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "BAD_RECORD_TYPE": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "TLSV1_ALERT_UNKNOWN_CA": _NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NOT_TRUSTED,
    "SSLV3_ALERT_BAD_CERTIFICATE": _NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the broker's certificate is expired: renew it",
    "NO_SHARED_CIPHER": _NOTHING_IN_COMMON,
    "UNSUPPORTED_PROTOCOL": _NOTHING_IN_COMMON,
    "VERSION_TOO_LOW": _NOTHING_IN_COMMON,
    "TLSV1_ALERT_PROTOCOL_VERSION": _NOTHING_IN_COMMON,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": _NOTHING_IN_COMMON,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "the client sent no certificate, and ssl.client.auth=required: give it a key store"
        " (ssl.keystore.location)"
    ),
}


def explain_failure(failure: BaseException) -> str:
    """Return the reason of a failed handshake or record, and the way out, as one sentence."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return (
            f"the client's certificate is not accepted ({failure.verify_message}): add the CA that"
            " issued it to the listener's trust store (ssl.truststore.location)"
        )
    if isinstance(failure, ssl.SSLError) and failure.reason:
        return _REASONS.get(failure.reason, failure.reason.lower().replace("_", " "))
    return str(failure) or type(failure).__name__
