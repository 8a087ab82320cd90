"""A client between brokers, and a broker of the test with scripted answers."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.image import BrokerInfo, Endpoint
from minibroker.broker.peers import PeerClient
from minibroker.kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tests.support.message_bytes import body_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

LISTENER = "PLAINTEXT"


def registered(brokers: Mapping[int, tuple[str, int]]) -> dict[int, BrokerInfo]:
    """Return broker id → its registration at this address."""
    return {
        broker_id: BrokerInfo(broker_id, (Endpoint(LISTENER, *address),))
        for broker_id, address in brokers.items()
    }


def image_of(brokers: Mapping[int, tuple[str, int]]) -> Any:
    """Return an image of a cluster for a `PeerClient`; `image.brokers` may be changed."""
    image = SimpleNamespace(brokers=registered(brokers))
    return SimpleNamespace(image=image, peer_interceptor=None)


@asynccontextmanager
async def peer_client(
    brokers: Mapping[int, tuple[str, int]],
    *,
    timeout_ms: int = 30_000,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[PeerClient]:
    """Yield a client that knows these brokers; it is closed at the end."""
    client = PeerClient(image_of(brokers), listener=LISTENER, timeout_ms=timeout_ms, sleep=sleep)
    try:
        yield client
    finally:
        await client.close()


class ScriptedBroker:
    """A listener that answers ApiVersions, and each other request as `answer` says.

    `answer` gets (API key, version, correlation id) and returns the body behind the header, None:
    no answer, or raises ConnectionError: the connection is closed.
    """

    def __init__(self, answer: Callable[[int, int, int], bytes | None]) -> None:
        self.answer = answer
        self.versions = {18: (0, 3), 3: (0, 9)}
        self.newest_api_versions = 3
        self.requests: list[tuple[int, int, int]] = []
        """(API key, version, correlation id), in order."""
        self.connection_count = 0
        self.arrived = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> ScriptedBroker:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.hang_up()
        await self._server.wait_closed()

    def hang_up(self) -> None:
        """Close every connection."""
        for writer in list(self._writers):
            writer.close()

    async def wait_for(self, count: int) -> None:
        """Wait until this many requests have come, ApiVersions among them."""
        async with asyncio.timeout(30), self.arrived:
            await self.arrived.wait_for(lambda: len(self.requests) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                await self._handle(frame, writer)
        self._writers.discard(writer)
        writer.close()

    async def _handle(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
        async with self.arrived:
            self.requests.append((api_key, version, correlation_id))
            self.arrived.notify_all()
        if api_key == 18:
            body: bytes | None = self._api_versions(version)
        else:
            body = self.answer(api_key, version, correlation_id)
        if body is not None:
            head = struct.pack(">i", correlation_id)
            writer.write(struct.pack(">i", len(head) + len(body)) + head + body)

    def _api_versions(self, version: int) -> bytes:
        is_known = version <= self.newest_api_versions
        response = ApiVersionsResponse(
            error_code=0 if is_known else 35,
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.versions.items()
            ],
        )
        return body_of(response, version if is_known else 0)
