"""An asyncio connection to a broker: opened, versions agreed on, requests and answers in order.

    open ─► ApiVersions ─► login ─► call, call, … ─► closed (by us, by the peer, by a time-out)

A request has a correlation id; answers come in the order of the requests, as every broker promises.
A malformed answer, one out of turn or one too large ends the connection, because the bytes behind
it cannot be understood. So does a request that is not answered in time. All requests that wait then
get ConnectionError.

With a login, the connection logs in before its first request. A session that ends soon is left: the
owner opens another connection (`broker.peers`), and this one closes behind its last answer. Kafka
authenticates again on the same connection; the broker sees no difference in between.

Source: Kafka NetworkClient, InFlightRequests, NodeApiVersions, SaslClientAuthenticator.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar

from minibroker.client.daemons import in_daemon
from minibroker.client.dialogue import (
    SIZE,
    Dialogue,
    Inquiry,
    Step,
    agreement_steps,
    login_steps,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Generator
    from ssl import SSLContext

    from minibroker.client.sasl import SaslLogin

ANSWER_BYTES_MAX: Final = 16 << 20
IN_FLIGHT_MAX: Final = 5
"""Requests without their answer; the rest wait. A client's max.in.flight.requests.per.connection.
"""
CLIENT_ID: Final = "minibroker"
_FAILURES: Final = (OSError, EOFError, ProtocolError)
_T = TypeVar("_T")


class AsyncConnection:
    """Belongs to the loop's thread; `open` makes one."""

    __slots__ = (
        "_answers",
        "_dialogue",
        "_failure",
        "_incoming",
        "_outgoing",
        "_reading",
        "_retires_at_s",
        "_slots",
        "address",
    )

    def __init__(
        self,
        address: tuple[str, int],
        incoming: asyncio.StreamReader,
        outgoing: asyncio.StreamWriter,
    ) -> None:
        self.address = address
        """Host and port. Constant."""
        self._incoming = incoming
        self._outgoing = outgoing
        self._failure: Exception | None = None
        """Why it is closed."""
        self._dialogue = Dialogue(CLIENT_ID, ANSWER_BYTES_MAX)
        self._answers: deque[asyncio.Future[Any]] = deque()
        """Those of `Dialogue.sent`, in the same order."""
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._retires_at_s: float | None = None
        """When another connection has to take over, on the loop's clock; None: never."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def open(
        cls, host: str, port: int, login: SaslLogin | None = None, tls: SSLContext | None = None
    ) -> AsyncConnection:
        """Connect, with TLS if there is a context, agree on versions and log in.

        Raises OSError (ConnectionError where the peer does not take the login, SSLError where its
        certificate is not accepted), ProtocolError.
        """
        try:
            incoming, outgoing = await asyncio.open_connection(host, port, ssl=tls)
        except UnicodeError:  # of IDNA: an empty label, or one that is too long
            raise OSError(f"{host!r} is no name of a host") from None
        connection = cls((host, port), incoming, outgoing)
        try:
            await connection._follow(agreement_steps(connection._dialogue, str(connection)))
            if login is not None:
                await connection._log_in(login)
        except BaseException:
            connection.close()
            raise
        return connection

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
        version = self._dialogue.version_for(request, oldest, newest)
        if version is None:
            first, last = request.VERSIONS
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self}: API {request.API_KEY} is wanted in version {max(first, oldest)} to"
                f" {last}, the broker has {self._dialogue.versions.get(request.API_KEY)}",
            )
        return version

    async def call(self, request: Any, response: Any, version: int) -> Any:
        """Send the request; return its answer, read as `response`.

        Waits while `IN_FLIGHT_MAX` others are on their way. A call that is cancelled while it waits
        for the answer has sent the request all the same. Raises OSError (ConnectionError when the
        connection ends), ProtocolError.
        """
        async with self._slots:
            if self._failure is not None:
                raise ConnectionError(f"{self} is closed: {self._failure}") from self._failure
            if self._outgoing.transport.is_closing():
                # It has ended and `_read` runs later; uvloop raises RuntimeError for a write now.
                self.close(ConnectionError("the peer has ended it"))
                raise ConnectionError(f"{self} is closed: {self._failure}") from self._failure
            frame = self._dialogue.request_frame(request, response, version)
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._answers.append(answer)
            self._outgoing.write(frame)
            return await answer

    def retire(self) -> None:
        """End the connection as soon as the requests on their way are answered."""
        self._retires_at_s = 0.0
        if not self._answers:
            self.close(ConnectionError("its session ends"))

    def close(self, why: Exception | None = None) -> None:
        """End the connection; requests that wait for an answer get ConnectionError."""
        if self._failure is not None:
            return
        self._failure = why or ConnectionError("closed by this broker")
        self._reading.cancel()
        self._outgoing.close()
        answers, self._answers = self._answers, deque()
        for answer in answers:
            if not answer.done():
                answer.set_exception(ConnectionError(f"{self}: {self._failure}"))

    async def wait_closed(self) -> None:
        """Wait until nothing reads the socket any more."""
        await asyncio.gather(self._reading, return_exceptions=True)

    def __str__(self) -> str:
        return f"connection to {self.address[0]}:{self.address[1]}"

    async def _log_in(self, login: SaslLogin) -> None:
        """Log in, and note when the session ends. Raises OSError, ProtocolError."""
        exchange = login.begin(self.address[0])
        steps = login_steps(self._dialogue, str(self), login.mechanism, exchange)
        lasts_s = await self._follow(steps)
        if lasts_s is not None:
            self._retires_at_s = asyncio.get_running_loop().time() + lasts_s

    async def _follow(self, steps: Generator[Step, Any, _T]) -> _T:
        """Take the steps and return their result. Raises OSError, ProtocolError, ConfigError."""
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as ended:
                result: _T = ended.value
                return result
            outcome = await (
                self.call(*step)
                if isinstance(step, Inquiry)
                else in_daemon(step, "minibroker-peer-login")
            )

    async def _read(self) -> None:
        """Take answers until the connection ends."""
        try:
            while True:
                prefix = await self._incoming.readexactly(SIZE.size)
                size = self._dialogue.body_size(prefix)
                self._take(memoryview(await self._incoming.readexactly(size)))
        except _FAILURES as error:
            self.close(error)

    def _take(self, frame: memoryview) -> None:
        """Give one answer to the request that waits for it. Raises ProtocolError."""
        request = self._dialogue.sent_for(frame)
        answer = self._answers.popleft()
        try:
            message = request.read(frame)
        except ProtocolError as error:
            if not answer.done():
                answer.set_exception(error)
            raise
        if not answer.done():
            answer.set_result(message)
        if self._retires_at_s == 0.0:
            self.retire()
