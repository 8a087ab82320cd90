"""A login at Kafka in the name of the proxy, on a connection that a client uses afterwards.

connection ─► ApiVersions ─► SaslHandshake, SaslAuthenticate, … ─► the client's own requests
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.daemons import in_daemon
from minibroker.client.dialogue import (
    SIZE,
    Dialogue,
    Inquiry,
    agreement_steps,
    login_steps,
)
from minibroker.kafka.errors import ProtocolError
from minibroker.proxy.addresses import name_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from minibroker.client.dialogue import Step
    from minibroker.client.settings import ClientSettings

LOGIN_TIMEOUT_S: Final = 30.0
_ANSWER_BYTES_MAX: Final = 1 << 20


class Session(NamedTuple):
    """A login on a connection."""

    dialogue: Dialogue
    settings: ClientSettings
    address: tuple[str, int]
    lasts_s: float | None
    """Seconds after which it has to be renewed, None for never."""


class LoginWire(asyncio.Protocol):
    """The connection during the login. Belongs to the loop."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._arrival: asyncio.Future[None] | None = None
        self._loss: Exception | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: Any) -> None:
        """Do `Protocol.connection_made`."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Do `Protocol.data_received`. More than an answer is not kept: nobody takes bytes while a
        token or a ticket is fetched.
        """
        self._bytes += data
        if len(self._bytes) > SIZE.size + _ANSWER_BYTES_MAX:
            self._transport.abort()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Do `Protocol.connection_lost`."""
        self._loss = exc or ConnectionError("the broker closed the connection during the login")
        self._wake()

    def check_open(self) -> None:
        """Raise ConnectionError where the connection has ended: its next protocol is not told."""
        if self._loss is not None:
            raise ConnectionError(str(self._loss)) from self._loss

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def _take(self, size: int) -> bytes:
        """Return the next bytes. Raises OSError."""
        while len(self._bytes) < size:
            self.check_open()
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        piece = bytes(self._bytes[:size])
        del self._bytes[:size]
        return piece

    async def log_in(self, settings: ClientSettings, address: tuple[str, int]) -> Session:
        """Agree on versions and log in; return the session.

        Raises OSError (BrokerRefusedError), ProtocolError, ConfigError.
        """
        dialogue = Dialogue(settings.client_id, _ANSWER_BYTES_MAX)
        async with asyncio.timeout(LOGIN_TIMEOUT_S):
            await self._follow(dialogue, agreement_steps(dialogue, name_of(address)))
        return await self.renew(Session(dialogue, settings, address, None))

    async def renew(self, session: Session) -> Session:
        """Log in once more on the same connection; return the new session.

        Raises OSError (BrokerRefusedError), ProtocolError, ConfigError.
        """
        mechanism, exchange = session.settings.login(session.address[0])
        name = name_of(session.address)
        async with asyncio.timeout(LOGIN_TIMEOUT_S):
            lasts_s: float | None = await self._follow(
                session.dialogue, login_steps(session.dialogue, name, mechanism, exchange)
            )
        if self._bytes:
            raise ProtocolError(f"{name}: {len(self._bytes)} bytes behind the login")
        return session._replace(lasts_s=lasts_s)

    async def _follow(self, dialogue: Dialogue, steps: Generator[Step, Any, Any]) -> Any:
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as ended:
                return ended.value
            if isinstance(step, Inquiry):
                outcome = await self._ask(dialogue, step)
            else:
                outcome = await in_daemon(step, "minibroker-proxy-login")

    async def _ask(self, dialogue: Dialogue, inquiry: Inquiry) -> Any:
        self._transport.write(dialogue.request_frame(*inquiry))
        size = dialogue.body_size(await self._take(SIZE.size))
        frame = memoryview(await self._take(size))
        return dialogue.sent_for(frame).read(frame)
