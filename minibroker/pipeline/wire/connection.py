"""One blocking connection of a task to a broker: requests out, answers in, in their order.

    open ─► TLS ─► ApiVersions ─► login ─► send, send, … receive, receive, … ─► close

A task has one thread and reads one partition at a time, so it needs no event loop. What it sends
ahead is answered while it decodes: the answer waits in the socket. A malformed answer, one out of
turn or one too large ends the connection.

Source: Kafka NetworkClient, SaslClientAuthenticator; KIP-368, KIP-511.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker import __version__
from minibroker.errors import ProtocolError
from minibroker.protocol.agreement import NEWEST, ApiVersionsAnswer, older_version
from minibroker.protocol.header import response_header_version, write_request_header
from minibroker.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from minibroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minibroker.protocol.primitives import Reader, Writer

if TYPE_CHECKING:
    from minibroker.pipeline.wire.settings import WireSettings

SESSION_PART: Final = 0.85
"""The part of a session of SASL after which another connection takes over."""
RECEIVE_BUFFER_BYTES: Final = 4 << 20
"""Bytes of an answer that the kernel may hold while the task decodes the one before."""
_SIZE: Final = Struct(">i")
_HEADER_BYTES: Final = 4


class BrokerRefusedError(OSError):
    """The broker does not take the login, or speaks none of our versions."""


class _Sent(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    response: Any


class WireConnection:
    """Used by one thread; `open` makes one."""

    def __init__(self, settings: WireSettings, address: tuple[str, int], stream: Any) -> None:
        self._settings = settings
        self.address = address
        self._stream = stream
        self._sent: deque[_Sent] = deque()
        """Requests without their answer, the oldest first."""
        self._last_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._retires_at_s: float | None = None
        self.idle_since_s = 0.0
        """When its last user gave it back, on the monotonic clock; set by the pool."""

    @classmethod
    def open(cls, settings: WireSettings, address: tuple[str, int]) -> WireConnection:
        """Connect, agree on versions and log in.

        Raises:
            OSError: BrokerRefusedError for a login, SSLError for a certificate, no broker there.
            ProtocolError: what answers is no broker.
            ConfigError: the settings of TLS.
        """
        stream: Any = socket.create_connection(address, settings.timeout_s)
        try:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            if settings.uses_tls:
                stream = settings.context().wrap_socket(stream, server_hostname=address[0])
            connection = cls(settings, address, stream)
            connection._agree_on_versions()
            if settings.uses_sasl:
                connection._log_in()
        except BaseException:
            stream.close()
            raise
        return connection

    @property
    def is_waiting(self) -> bool:
        """Return whether an answer has not been received yet."""
        return bool(self._sent)

    @property
    def is_usable(self) -> bool:
        """Return whether a new user can take it: nothing has come or ended on it meanwhile."""
        if self._sent or self.is_retired:
            return False
        # Not select(): a process with more than 1,024 open files has larger descriptors.
        look = select.poll()
        look.register(self._stream, select.POLLIN)
        return not look.poll(0)

    @property
    def is_closed(self) -> bool:
        """Return whether it was ended here."""
        return bool(self._stream.fileno() < 0)

    @property
    def is_retired(self) -> bool:
        """Return whether its session ends soon, so that no more requests are to be sent."""
        return self._retires_at_s is not None and time.monotonic() >= self._retires_at_s

    def close(self) -> None:
        """End the connection."""
        self._stream.close()

    def version_for(self, request: Any, oldest: int, newest: int) -> int:
        """Return the newest version that both sides know. Raises BrokerRefusedError."""
        low, high = self._versions.get(request.API_KEY, (0, -1))
        version: int = min(high, newest, request.VERSIONS[1])
        if version < max(low, oldest, request.VERSIONS[0]):
            raise BrokerRefusedError(
                f"{self} knows API {request.API_KEY} in the versions {low} to {high}, wanted are "
                f"{oldest} to {newest}"
            )
        return version

    def call(self, request: Any, response: Any, version: int) -> Any:
        """Send a request and return its answer. Raises OSError, ProtocolError."""
        self.send(request, response, version)
        return self.receive()

    def send(self, request: Any, response: Any, version: int) -> None:
        """Send a request, whose answer `receive` reads as `response`. Raises OSError."""
        self._last_id = (self._last_id + 1) & 0x7FFFFFFF
        writer = Writer()
        write_request_header(
            writer, request.API_KEY, version, self._last_id, self._settings.client_id
        )
        request.write(writer, version)
        body = writer.to_bytes()
        self._stream.sendall(_SIZE.pack(len(body)) + body)
        self._sent.append(_Sent(self._last_id, request.API_KEY, version, response))

    def receive(self) -> Any:
        """Return the answer to the oldest request. Raises OSError, ProtocolError."""
        frame = self._frame()
        request = self._sent.popleft()
        (correlation_id,) = _SIZE.unpack_from(frame)
        if correlation_id != request.correlation_id:
            raise ProtocolError(
                f"{self}: an answer to request {correlation_id}, expected one to "
                f"{request.correlation_id}"
            )
        reader = Reader(frame, _HEADER_BYTES)
        if response_header_version(request.api_key, request.version):
            reader.skip_tagged_fields()
        return request.response.read(reader, request.version)

    def _frame(self) -> memoryview:
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
        most = self._settings.answer_bytes_max
        if not _HEADER_BYTES <= size <= most:
            raise ProtocolError(
                f"{self}: an answer of {size} bytes, expected {_HEADER_BYTES} to {most} "
                "(kafka.receive.message.max.bytes)"
            )
        return self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        view = memoryview(bytearray(size))
        filled = 0
        while filled < size:
            count = self._stream.recv_into(view[filled:])
            if not count:
                raise ConnectionResetError(f"{self} has ended")
            filled += count
        return view

    def _agree_on_versions(self) -> None:
        """Ask for the versions. A broker that does not know ours says which ones it knows."""
        request = ApiVersionsRequest(
            client_software_name="minibroker", client_software_version=__version__
        )
        found = self.call(request, ApiVersionsAnswer, NEWEST)
        if (version := older_version(found)) is not None:
            found = self.call(request, ApiVersionsAnswer, version)
        if found.error_code:
            raise ProtocolError(f"{self}: ApiVersions is answered with error {found.error_code}")
        self._versions = {key.api_key: (key.min_version, key.max_version) for key in found.api_keys}

    def _log_in(self) -> None:
        mechanism, exchange = self._settings.login()
        handshake = SaslHandshakeRequest(mechanism=mechanism)
        answer = self.call(handshake, SaslHandshakeResponse, self.version_for(handshake, 1, 1))
        if answer.error_code:
            raise BrokerRefusedError(
                f"{self}: logins by {', '.join(answer.mechanisms)} are taken, not {mechanism}"
            )
        token = exchange.begin()
        while not exchange.is_complete:
            request = SaslAuthenticateRequest(auth_bytes=token)
            version = self.version_for(request, 0, 2)
            found = self.call(request, SaslAuthenticateResponse, version)
            if found.error_code:
                raise BrokerRefusedError(f"{self}: {found.error_message}")
            token = exchange.respond(found.auth_bytes)
        if found.session_lifetime_ms > 0:
            lasts_s = found.session_lifetime_ms / 1000 * SESSION_PART
            self._retires_at_s = time.monotonic() + lasts_s

    def __str__(self) -> str:
        return f"the broker at {self.address[0]}:{self.address[1]}"
