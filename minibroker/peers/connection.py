"""One connection to another broker: opened, versions agreed on, requests and answers in order.

    open ─► ApiVersions ─► login ─► call, call, … ─► closed (by us, by the peer, by a time-out)

A request has a correlation id; answers come in the order of the requests, as every broker promises.
A malformed answer, one out of turn or one too large ends the connection, because the bytes behind
it cannot be understood. So does a request that is not answered in time. All requests that wait then
get ConnectionError.

Where the peer's listener asks for SASL, this broker logs in before its first request. A session
that ends soon is left: `PeerClient` opens another connection, and this one closes behind its last
answer. Kafka authenticates again on the same connection; the peer sees no difference in between.

Source: Kafka NetworkClient, InFlightRequests, NodeApiVersions, SaslClientAuthenticator.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker import __version__
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, ProtocolError
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
    from ssl import SSLContext

    from minibroker.cluster.image import Endpoint
    from minibroker.security.sasl.client import PeerLogin

ANSWER_BYTES_MAX: Final = 16 << 20
IN_FLIGHT_MAX: Final = 5
"""Requests without their answer; the rest wait. A client's max.in.flight.requests.per.connection.
"""
SESSION_PART: Final = 0.85
"""The part of a session after which another connection takes over, as Kafka's clients renew it."""
CLIENT_ID: Final = "minibroker"
_SIZE: Final = Struct(">i")
_HEADER: Final = Struct(">i")
_FAILURES: Final = (OSError, EOFError, ProtocolError)


class _InFlight(NamedTuple):
    """A request that waits for its answer, and the reader of that answer."""

    answer: asyncio.Future[Any]
    api_key: int
    version: int
    response: Any


class PeerConnection:
    """Belongs to the loop's thread; `open` makes one."""

    __slots__ = (
        "_endpoint",
        "_failure",
        "_in_flight",
        "_incoming",
        "_last_id",
        "_outgoing",
        "_reading",
        "_retires_at_s",
        "_slots",
        "_versions",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        incoming: asyncio.StreamReader,
        outgoing: asyncio.StreamWriter,
    ) -> None:
        self._endpoint = endpoint
        self._incoming = incoming
        self._outgoing = outgoing
        self._failure: Exception | None = None
        """Why it is closed."""
        self._in_flight: dict[int, _InFlight] = {}
        """Correlation id → request; the oldest first."""
        self._last_id = 0
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._versions: dict[int, tuple[int, int]] = {}
        """API key → the peer's lowest and highest version; filled by `open`."""
        self._retires_at_s: float | None = None
        """When another connection has to take over, on the loop's clock; None: never."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def open(
        cls, endpoint: Endpoint, login: PeerLogin | None = None, tls: SSLContext | None = None
    ) -> PeerConnection:
        """Connect, with TLS if there is a context, agree on versions and log in.

        Raises OSError (ConnectionError where the peer does not take the login, SSLError where its
        certificate is not accepted), ProtocolError.
        """
        incoming, outgoing = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
        connection = cls(endpoint, incoming, outgoing)
        try:
            await connection._agree_on_versions()
            if login is not None:
                await connection._log_in(login)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def endpoint(self) -> Endpoint:
        """Return the address, for messages."""
        return self._endpoint

    @property
    def is_open(self) -> bool:
        """Return whether requests can be sent."""
        return self._failure is None

    @property
    def is_retired(self) -> bool:
        """Return whether its session ends soon, so that no more requests are to be sent."""
        at_s = self._retires_at_s
        return at_s is not None and asyncio.get_running_loop().time() >= at_s

    def version_for(self, request: Any, oldest: int, newest: int | None = None) -> int:
        """Return the newest version of the request (an object or its class) that both sides know,
        at least `oldest`, at most `newest`.

        Raises KafkaError(UNSUPPORTED_VERSION) where there is none.
        """
        ours = request.VERSIONS
        theirs = self._versions.get(request.API_KEY)
        if theirs is not None:
            version = min(ours[1], theirs[1], ours[1] if newest is None else newest)
            if version >= max(ours[0], theirs[0], oldest):
                return int(version)
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{self}: API {request.API_KEY} is wanted in version {max(ours[0], oldest)} to"
            f" {ours[1]}, the broker has {theirs}",
        )

    async def call(self, request: Any, response: Any, version: int) -> Any:
        """Send the request; return its answer, read as `response`.

        Waits while `IN_FLIGHT_MAX` others are on their way. Who is cancelled while it waits for the
        answer has sent the request all the same. Raises OSError (ConnectionError when the
        connection ends), ProtocolError.
        """
        async with self._slots:
            if self._failure is not None:
                raise ConnectionError(f"{self} is closed: {self._failure}") from self._failure
            if self._outgoing.transport.is_closing():
                # It has ended and `_read` runs later; uvloop raises RuntimeError for a write now.
                self.close(ConnectionError("the peer has ended it"))
                raise ConnectionError(f"{self} is closed: {self._failure}") from self._failure
            self._last_id = (self._last_id + 1) & 0x7FFFFFFF
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            writer = Writer()
            write_request_header(writer, request.API_KEY, version, self._last_id, CLIENT_ID)
            request.write(writer, version)
            body = writer.to_bytes()
            self._in_flight[self._last_id] = _InFlight(answer, request.API_KEY, version, response)
            self._outgoing.write(_SIZE.pack(len(body)) + body)
            return await answer

    def retire(self) -> None:
        """End the connection as soon as the requests on their way are answered."""
        self._retires_at_s = 0.0
        if not self._in_flight:
            self.close(ConnectionError("its session ends"))

    def close(self, why: Exception | None = None) -> None:
        """End the connection; requests that wait for an answer get ConnectionError."""
        if self._failure is not None:
            return
        self._failure = why or ConnectionError("closed by this broker")
        self._reading.cancel()
        self._outgoing.close()
        in_flight, self._in_flight = self._in_flight, {}
        for request in in_flight.values():
            if not request.answer.done():
                request.answer.set_exception(ConnectionError(f"{self}: {self._failure}"))

    async def wait_closed(self) -> None:
        """Wait until nothing reads the socket any more."""
        await asyncio.gather(self._reading, return_exceptions=True)

    def __str__(self) -> str:
        return f"connection to {self._endpoint.host}:{self._endpoint.port}"

    async def _agree_on_versions(self) -> None:
        """Ask for the versions. A broker that does not know ours says which ones it knows
        (KIP-511).
        """
        request = ApiVersionsRequest(
            client_software_name="minibroker", client_software_version=__version__
        )
        found = await self.call(request, ApiVersionsAnswer, NEWEST)
        if (version := older_version(found)) is not None:
            found = await self.call(request, ApiVersionsAnswer, version)
        if found.error_code:
            raise ProtocolError(f"{self}: ApiVersions is answered with error {found.error_code}")
        self._versions = {key.api_key: (key.min_version, key.max_version) for key in found.api_keys}

    async def _log_in(self, login: PeerLogin) -> None:
        """Prove the identity of this broker. Raises OSError, ProtocolError."""
        handshake = SaslHandshakeRequest(mechanism=login.mechanism)
        version = self.version_for(handshake, 1)
        answer = await self.call(handshake, SaslHandshakeResponse, version)
        if answer.error_code:
            raise ConnectionError(
                f"{self}: logins by {', '.join(answer.mechanisms)} are taken, not {login.mechanism}"
            )
        exchange = login.begin(self._endpoint.host)
        # A token may be in a file, a ticket comes from a KDC.
        token = await asyncio.to_thread(exchange.begin)
        while not exchange.is_complete:
            request = SaslAuthenticateRequest(auth_bytes=token)
            found = await self.call(request, SaslAuthenticateResponse, self.version_for(request, 0))
            if found.error_code:
                raise ConnectionError(f"{self}: {found.error_message}")
            # SCRAM hashes the password some thousand times.
            token = await asyncio.to_thread(exchange.respond, found.auth_bytes)
        if found.session_lifetime_ms > 0:
            lasts_s = found.session_lifetime_ms / 1000 * SESSION_PART
            self._retires_at_s = asyncio.get_running_loop().time() + lasts_s

    async def _read(self) -> None:
        """Take answers until the connection ends."""
        try:
            while True:
                (size,) = _SIZE.unpack(await self._incoming.readexactly(_SIZE.size))
                if not _HEADER.size <= size <= ANSWER_BYTES_MAX:
                    raise ProtocolError(
                        f"an answer of {size} bytes, expected {_HEADER.size} to {ANSWER_BYTES_MAX}"
                    )
                self._take(memoryview(await self._incoming.readexactly(size)))
        except _FAILURES as error:
            self.close(error)

    def _take(self, frame: memoryview) -> None:
        """Give one answer to the request that waits for it. Raises ProtocolError."""
        (correlation_id,) = _HEADER.unpack_from(frame)
        oldest = next(iter(self._in_flight), None)
        if correlation_id != oldest:
            raise ProtocolError(
                f"an answer to request {correlation_id}, expected one to {oldest or 'none'}"
            )
        request = self._in_flight.pop(correlation_id)
        reader = Reader(frame, _HEADER.size)
        try:
            if response_header_version(request.api_key, request.version):
                reader.skip_tagged_fields()
            message = request.response.read(reader, request.version)
        except ProtocolError as error:
            if not request.answer.done():
                request.answer.set_exception(error)
            raise
        if not request.answer.done():
            request.answer.set_result(message)
        if self._retires_at_s == 0.0:
            self.retire()
