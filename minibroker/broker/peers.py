"""Requests to other brokers by their id, of minibroker or Apache Kafka: one connection to each.

A coordinator brings markers to the leaders of other brokers, a leader asks the coordinator of a
batch, a follower fetches. The connection is opened when it is first needed.

A connection that ended is opened anew with the next request, after a pause that doubles with every
failure in a row (Kafka's reconnect.backoff.ms). A broker that is registered with another address,
or not any more, loses its connection. A request that is not answered within `request.timeout.ms`
takes its connection along, since the answers behind it would be late, too.

Source: Kafka NetworkClient, ClusterConnectionStates, InterBrokerSendThread.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.event_loop import cancel_all
from minibroker.client.async_connection import AsyncConnection
from minibroker.client.daemons import mark_retrieved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from ssl import SSLContext

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import Endpoint
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.client.sasl import SaslLogin

logger = logging.getLogger(__name__)

BACKOFF_MS: Final = 50
BACKOFF_MS_MAX: Final = 1000
BACKOFF_JITTER: Final = 0.2
"""Kafka's reconnect.backoff.ms, reconnect.backoff.max.ms; one fifth more or less at random."""


def backoff_ms(failures: int, chance: float) -> float:
    """Return the pause after so many failures in a row (at least one), in milliseconds.

    `chance`: from 0 to 1, the place between a fifth less and a fifth more.
    """
    doubled: int = min(BACKOFF_MS << min(failures - 1, 16), BACKOFF_MS_MAX)
    return doubled * (1 - BACKOFF_JITTER + 2 * BACKOFF_JITTER * chance)


class _Peer:
    """The state of one broker."""

    __slots__ = ("connection", "endpoint", "failures", "opening", "retry_at_s")

    def __init__(self) -> None:
        self.connection: AsyncConnection | None = None
        self.endpoint: Endpoint | None = None
        """The endpoint that `connection` was opened to."""
        self.opening: asyncio.Task[AsyncConnection] | None = None
        """Shared by all requests that need it meanwhile."""
        self.failures = 0
        """In a row."""
        self.retry_at_s = 0.0
        """On the loop's clock: not tried again before."""


class PeerClient:
    """Belongs to the loop's thread; `close` ends every connection."""

    __slots__ = (
        "_cluster",
        "_is_closed",
        "_listener",
        "_login",
        "_peers",
        "_sleep",
        "_timeout_s",
        "_tls",
    )

    def __init__(
        self,
        cluster: Cluster,
        *,
        listener: str,
        timeout_ms: int,
        login: SaslLogin | None = None,
        tls: Callable[[], SSLContext] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take `listener`, the name of the one that brokers use among each other, and `timeout_ms`
        of one request, with all that it waits for (`request.timeout.ms`). `login`: this broker's at
        that listener, None where it asks for none. `tls`: for a listener with TLS, returns the
        context of the next connection.
        """
        self._cluster = cluster
        self._listener = listener
        self._login = login
        self._tls = tls
        self._timeout_s = timeout_ms / 1000
        self._sleep = sleep
        self._is_closed = False
        self._peers: dict[int, _Peer] = {}

    @classmethod
    def of(
        cls, cluster: Cluster, config: BrokerConfig, *, listener: str, timeout_ms: int
    ) -> PeerClient:
        """Return a client with the TLS and the login that the settings of the listener ask for.

        Raises ConfigError.
        """
        login: SaslLogin | None = None
        tls = None
        protocols = [
            entry.security_protocol for entry in config.listeners if entry.name == listener
        ]
        if any(protocol.uses_tls for protocol in protocols):
            from minibroker.broker.security.peer_tls import PeerContexts  # noqa: PLC0415  seldom needed

            contexts = cluster.peer_contexts or PeerContexts(lambda: config).of
            contexts(listener)  # settings that cannot be are told at once
            tls = partial(contexts, listener)
        if any(protocol.uses_sasl for protocol in protocols):
            from minibroker.broker.security.sasl.peer_logins import PeerLogins  # noqa: PLC0415  as above

            logins = cluster.peer_logins or PeerLogins(lambda: config, cluster.clock).of
            login = logins(listener)
        return cls(cluster, listener=listener, timeout_ms=timeout_ms, login=login, tls=tls)

    async def call(
        self,
        broker_id: int,
        request: Any,
        response: Any,
        *,
        oldest: int = 0,
        newest: int | None = None,
    ) -> Any:
        """Send a request in the newest version that both brokers know; return its answer.

        `response`: the class that reads the answer. `oldest`, `newest`: the versions that will do.

        Raises OSError (TimeoutError and ConnectionError among them), ProtocolError, and
        KafkaError(UNSUPPORTED_VERSION) where the broker has no version that will do.
        """
        return await self.call_built(
            broker_id, request, lambda _: request, response, oldest=oldest, newest=newest
        )

    async def call_built(
        self,
        broker_id: int,
        request_class: Any,
        build: Callable[[int], Any],
        response: Any,
        *,
        oldest: int = 0,
        newest: int | None = None,
    ) -> Any:
        """Do `call` with the request that `build` makes for the version that is agreed on; `newest`
        is the highest that will do. Raises the errors of `call`.
        """

        def version_of(connection: AsyncConnection) -> int:
            return connection.version_for(request_class, oldest, newest)

        async def send() -> Any:
            return await self._send(broker_id, version_of, build, response)

        interceptor = self._cluster.peer_interceptor
        if interceptor is None:
            return await send()
        return await interceptor.call(broker_id, request_class, send)

    async def _send(
        self,
        broker_id: int,
        version_of: Callable[[AsyncConnection], int],
        build: Callable[[int], Any],
        response: Any,
    ) -> Any:
        """Do `call_built`, whatever an interceptor makes of it."""
        connection: AsyncConnection | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await self._connection(broker_id)
                version = version_of(connection)
                return await connection.call(build(version), response, version)
        except TimeoutError as error:
            late = TimeoutError(f"broker {broker_id} did not answer within {self._timeout_s} s")
            if connection is not None:
                connection.close(late)
            raise late from error

    async def close(self) -> None:
        """End all connections; a request that waits gets ConnectionError."""
        self._is_closed = True
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            await cancel_all(peer.opening)
            if peer.connection is not None:
                peer.connection.close()
                await peer.connection.wait_closed()

    async def _connection(self, broker_id: int) -> AsyncConnection:
        """Return the open connection to this broker. Raises OSError, ProtocolError."""
        if self._is_closed:
            raise ConnectionError("this broker is stopping")
        endpoint = self._endpoint(broker_id)
        peer = self._peers.get(broker_id)
        if peer is None:
            peer = self._peers[broker_id] = _Peer()
        connection = peer.connection
        if connection is not None:
            is_right = connection.is_open and peer.endpoint == endpoint
            if is_right and not connection.is_retired:
                return connection
            if is_right:
                connection.retire()
            else:
                connection.close()
            peer.connection = None
        if peer.opening is None:
            peer.opening = asyncio.get_running_loop().create_task(
                self._open(broker_id, peer, endpoint)
            )
            peer.opening.add_done_callback(mark_retrieved)
        try:
            return await asyncio.shield(peer.opening)
        except asyncio.CancelledError:
            if self._is_closed:
                raise ConnectionError("this broker is stopping") from None
            raise

    def _endpoint(self, broker_id: int) -> Endpoint:
        """Return the address. Raises ConnectionError without the broker or its listener."""
        broker = self._cluster.image.brokers.get(broker_id)
        endpoint = broker.endpoint(self._listener) if broker is not None else None
        if endpoint is None:
            peer = self._peers.pop(broker_id, None)
            if peer is not None and peer.connection is not None:
                peer.connection.close()
            raise ConnectionError(
                f"broker {broker_id} "
                + ("is not registered" if broker is None else f"has no listener {self._listener}")
            )
        return endpoint

    async def _open(self, broker_id: int, peer: _Peer, endpoint: Endpoint) -> AsyncConnection:
        """Raises OSError, ProtocolError; ConnectionError where the broker has left meanwhile."""
        loop = asyncio.get_running_loop()
        try:
            pause_s = peer.retry_at_s - loop.time()
            if pause_s > 0:
                await self._sleep(pause_s)
            async with asyncio.timeout(self._timeout_s):
                tls = self._tls() if self._tls is not None else None
                connection = await AsyncConnection.open(
                    endpoint.host, endpoint.port, self._login, tls
                )
        except Exception as error:
            peer.failures += 1
            # Who waits is told; the log hears of it once.
            if peer.failures == 1:
                logger.warning("cannot connect to %s:%d: %s", endpoint.host, endpoint.port, error)
            peer.retry_at_s = loop.time() + backoff_ms(peer.failures, random.random()) / 1000
            raise
        finally:
            peer.opening = None
        if self._peers.get(broker_id) is not peer:
            connection.close()  # nobody else would
            raise ConnectionError(f"broker {broker_id} is not registered any more")
        peer.failures = 0
        peer.connection, peer.endpoint = connection, endpoint
        return connection
