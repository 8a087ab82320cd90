"""One blocking connection of a task to a broker: requests out, answers in, in their order.

    open ─► TLS ─► ApiVersions ─► login ─► send, send, … receive, receive, … ─► close

A task has one thread and reads one partition at a time, so it needs no event loop. A request that
it sends ahead is answered while it decodes: the answer waits in the socket. A malformed answer, one
out of turn or one too large ends the connection.

Source: Kafka NetworkClient, SaslClientAuthenticator; KIP-368, KIP-511.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from minibroker.client.dialogue import (
    SIZE,
    BrokerRefusedError,
    Dialogue,
    Inquiry,
    Step,
    agreement_steps,
    login_steps,
    old_agreement_steps,
)
from minibroker.client.readiness import is_any_readable
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import APIS

if TYPE_CHECKING:
    from collections.abc import Generator

    from minibroker.client.settings import ClientSettings

RECEIVE_BUFFER_BYTES: Final = 4 << 20
"""Bytes of an answer that the kernel may hold while the task decodes the one before."""
_T = TypeVar("_T")


class BlockingConnection:
    """Used by one thread; `open` makes one."""

    def __init__(self, settings: ClientSettings, address: tuple[str, int], stream: Any) -> None:
        self._settings = settings
        self.address = address
        self._stream = stream
        self._dialogue = Dialogue(settings.client_id, settings.answer_bytes_max)
        self._retires_at_s: float | None = None
        self.idle_since_s = 0.0
        """When its last user gave it back, on the monotonic clock; set by the pool."""

    @classmethod
    def open(cls, settings: ClientSettings, address: tuple[str, int]) -> BlockingConnection:
        """Connect, agree on versions and log in.

        Raises:
            OSError: BrokerRefusedError for a login, SSLError for a certificate, no broker there.
            ProtocolError: what answers is no broker.
            ConfigError: the settings of TLS.
        """
        for last_try in (False, True):
            connection = cls(settings, address, _stream(settings, address))
            try:
                connection._follow(agreement_steps(connection._dialogue, str(connection)))
                if settings.uses_sasl:
                    connection._log_in()
                return connection
            except (ConnectionResetError, BrokenPipeError) as error:
                connection.close()
                ended = error
                if settings.uses_sasl:
                    break
            except BaseException:
                connection.close()
                raise
            if last_try:
                return cls._open_old(settings, address, ended)
        raise ended

    @classmethod
    def _open_old(
        cls, settings: ClientSettings, address: tuple[str, int], ended: Exception
    ) -> BlockingConnection:
        """Return a connection to a broker that has no ApiVersions: Kafka before 0.10.

        Such a broker closes the connection when it is asked for its versions, again and again.
        Raises `ended` if the broker is none of these.
        """
        connection = cls(settings, address, _stream(settings, address))
        try:
            connection._follow(old_agreement_steps(connection._dialogue))
        except (OSError, ProtocolError):
            connection.close()
            raise ended from None
        return connection

    @property
    def is_waiting(self) -> bool:
        """Return whether an answer has not been received yet."""
        return bool(self._dialogue.open_requests)

    @property
    def is_usable(self) -> bool:
        """Return whether a new user can take it: nothing has come or ended on it meanwhile."""
        if self.is_waiting or self.is_retired:
            return False
        return not is_any_readable([self._stream])

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
        version = self._dialogue.version_for(request, oldest, newest)
        if version is None:
            api = APIS[request.API_KEY].name
            version_range = self._dialogue.versions.get(request.API_KEY)
            if version_range is None:
                raise BrokerRefusedError(
                    f"{self} does not know {api}: its release has no such call"
                )
            low, high = version_range
            raise BrokerRefusedError(
                f"{self} knows {api} in the versions {low} to {high}, wanted are {oldest} to "
                f"{newest}"
            )
        return version

    def call(self, request: Any, response: Any, version: int) -> Any:
        """Send a request and return its answer. Raises OSError, ProtocolError."""
        self.send(request, response, version)
        return self.receive()

    def send(self, request: Any, response: Any, version: int) -> None:
        """Send a request, whose answer `receive` reads as `response`. Raises OSError."""
        self._stream.sendall(self._dialogue.request_frame(request, response, version))

    def receive(self) -> Any:
        """Return the answer to the oldest request. Raises OSError, ProtocolError."""
        prefix = self._exactly(SIZE.size)
        try:
            size = self._dialogue.body_size(prefix)
        except ProtocolError as error:
            raise ProtocolError(f"{self}: {error} (kafka.receive.message.max.bytes)") from None
        frame = self._exactly(size)
        try:
            return self._dialogue.sent_for(frame).read(frame)
        except ProtocolError as error:
            raise ProtocolError(f"{self}: {error}") from error

    def send_unanswered(self, request: Any, version: int) -> None:
        """Send a request that the broker does not answer: Produce with acks=0. Raises OSError."""
        self._stream.sendall(self._dialogue.request_frame(request, None, version))
        self._dialogue.open_requests.pop()

    def fileno(self) -> int:
        """Return the descriptor of the socket, for a poll of several connections."""
        descriptor: int = self._stream.fileno()
        return descriptor

    def wait(self, timeout_s: float) -> bool:
        """Return whether an answer begins to arrive, or the connection ends, within `timeout_s`."""
        if getattr(self._stream, "pending", int)():  # TLS may have it decrypted already
            return True
        return is_any_readable([self._stream], max(0.0, timeout_s))

    def _exactly(self, size: int) -> memoryview:
        view = memoryview(bytearray(size))
        filled = 0
        while filled < size:
            count = self._stream.recv_into(view[filled:])
            if not count:
                raise ConnectionResetError(f"{self} has ended")
            filled += count
        return view

    def _log_in(self) -> None:
        """Raises OSError (BrokerRefusedError), ProtocolError, ConfigError."""
        steps = login_steps(self._dialogue, str(self), *self._settings.login(self.address[0]))
        try:
            lasts_s = self._follow(steps)
        except OSError as error:
            if getattr(error, "is_final", False):  # of TokenFetchError: a wrong secret stays wrong
                raise BrokerRefusedError(f"{self}: no token to log in with: {error}") from error
            raise
        if lasts_s is not None:
            self._retires_at_s = time.monotonic() + lasts_s

    def _follow(self, steps: Generator[Step, Any, _T]) -> _T:
        """Take the steps and return their result. Raises OSError, ProtocolError, ConfigError."""
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as ended:
                result: _T = ended.value
                return result
            outcome = self.call(*step) if isinstance(step, Inquiry) else step()

    def __str__(self) -> str:
        return f"the broker at {self.address[0]}:{self.address[1]}"


def _stream(settings: ClientSettings, address: tuple[str, int]) -> Any:
    """Return a socket that is connected, with TLS if the settings say so.

    Raises OSError, ConfigError.
    """
    stream: Any = _connected(settings, address)
    try:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if settings.uses_tls:
            stream = settings.context().wrap_socket(stream, server_hostname=address[0])
    except (ssl.SSLEOFError, ConnectionResetError) as error:
        stream.close()
        # No alert that says why: mostly a listener that reads the handshake as a request.
        sentence = (
            f"{address[0]}:{address[1]} ends the handshake of TLS: is security.protocol "
            "that of this listener?"
        )
        raise type(error)(error.errno, sentence) from error
    except BaseException:
        stream.close()
        raise
    return stream


def _connected(settings: ClientSettings, address: tuple[str, int]) -> socket.socket:
    """Return a socket that is connected. Raises OSError, which names the address."""
    host, port = address
    try:
        return socket.create_connection(address, settings.timeout_s)
    except UnicodeError:  # of IDNA: an empty label, or one that is too long
        raise OSError(f"no broker answers at {host}:{port}: this is no name of a host") from None
    except OSError as error:
        if error.errno is None:
            raise TimeoutError(f"no broker answers at {host}:{port}") from error
        sentence = f"no broker answers at {host}:{port}: {error.strerror}"
        raise type(error)(error.errno, sentence) from error
