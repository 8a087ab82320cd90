"""A broker in the test's own loop, and a raw asyncio client for it.

`InProcessBroker` starts `minibroker.broker.app.Broker` on a free port with a directory of its own.
A test reaches into it (`broker.partitions`, `server`) to see what a client cannot. `RawClient`
sends our generated requests at any version, or any bytes at all.

    async with InProcessBroker(tmp_path) as running:
        async with await running.connect() as client:
            answer = await client.call(MetadataRequest(topics=None), 9)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from struct import pack, unpack
from typing import TYPE_CHECKING, Any

from minibroker.broker.app import Broker
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.protocol.api_keys import load_messages
from minibroker.kafka.protocol.header import response_header_version
from minibroker.kafka.protocol.primitives import Reader
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.message_bytes import request_bytes

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from pathlib import Path

    from minibroker.broker.cluster.tree import Tree
    from minibroker.broker.config.topic_option import TopicToCreate
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.server.server import Server
    from minibroker.broker.storage.files import Files
    from minibroker.clock import Clock

TIMEOUT_S = 180.0
START_MS = 1_700_000_000_000


class ManualClock:
    """A clock that stands still until the test moves it; `timers.Timers` follow at once."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.ms = now_ms
        self._listeners: list[Callable[[float], None]] = []

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000

    def on_move(self, listener: Callable[[float], None]) -> None:
        self._listeners.append(listener)

    def advance(self, elapsed_ms: int) -> None:
        """Move the clock; everything due by then is called before this returns, at the new time."""
        self.ms += elapsed_ms
        for listener in self._listeners:
            listener(elapsed_ms / 1000)


class InProcessBroker:
    """One broker between `__aenter__` and `__aexit__`; `settings` are Kafka's keys."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        topics: tuple[TopicToCreate, ...] = (),
        files: Files = REAL_FILES,
        tree: Tree | None = None,
    ) -> None:
        self.settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(directory / "data"),
            **(settings or {}),
        }
        self._clock = clock
        self._topics = topics
        self._files = files
        self._tree = tree
        self.broker: Broker
        self.is_running = False

    async def __aenter__(self) -> InProcessBroker:
        self.broker = Broker(
            BrokerConfig(self.settings), clock=self._clock, files=self._files, tree=self._tree
        )
        await self.broker.start(self._topics)
        self.is_running = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop cleanly; a second call does nothing."""
        if self.is_running:
            self.is_running = False
            await self.broker.stop()

    async def die(self) -> None:
        """Leave everything as a kill does."""
        self.is_running = False
        await self.broker.abandon()

    @property
    def server(self) -> Server:
        return self.broker._server

    @property
    def partitions(self) -> PartitionManager:
        return self.broker.partitions

    @property
    def address(self) -> tuple[str, int]:
        return self.broker.address

    async def connect(
        self,
        client_id: str | None = "raw",
        *,
        tls: ssl.SSLContext | None = None,
        listener: str | None = None,
    ) -> RawClient:
        """Return a new connection; `listener`: the name of another than the first one."""
        name = None if tls is None else "localhost"
        host, port = self.address
        if listener is not None:
            port = self.broker.ports[listener]
        reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=name)
        return RawClient(reader, writer, client_id)

    async def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic without a request; `segment_bytes=…` stands for `segment.bytes`."""
        properties = {key.replace("_", "."): value for key, value in configs.items()}
        await self.broker.cluster.create_topic(name, partitions, 1, configs=properties)


Serve = Callable[..., Awaitable[InProcessBroker]]
"""Starts a broker; the keywords are its settings."""


class RawClient:
    """One connection: requests at any version, answers as our generated messages."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str | None
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.client_id = client_id
        self.correlation_id = 0
        self._unanswered: list[tuple[int, int, int]] = []

    async def __aenter__(self) -> RawClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close; the broker sees the end of the stream."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):  # the broker was faster
            await self.writer.wait_closed()

    async def call(self, request: Any, version: int) -> Any:
        """Send a request and return the answer.

        Raises ConnectionError if the broker closes instead.
        """
        self.send(request, version)
        return await self.receive()

    def send(self, request: Any, version: int) -> int:
        """Send a request without waiting; return its correlation id."""
        self.correlation_id += 1
        frame = request_frame(request, version, self.correlation_id, self.client_id)
        self._unanswered.append((request.API_KEY, version, self.correlation_id))
        self.writer.write(frame)
        return self.correlation_id

    def expect(self, api_key: int, version: int, correlation_id: int) -> None:
        """Expect an answer to bytes that the test wrote itself."""
        self._unanswered.append((api_key, version, correlation_id))

    async def receive(self) -> Any:
        """Return the answer to the oldest open request; its correlation id is checked."""
        api_key, version, correlation_id = self._unanswered.pop(0)
        frame = await self.receive_frame()
        (answered_id,) = unpack(">i", frame[:4])
        assert answered_id == correlation_id, (
            f"answer to {answered_id} came instead of {correlation_id}"
        )
        position = 4 + response_header_version(api_key, version)
        reader = Reader(memoryview(frame), position)
        answer = load_messages(api_key)[1].read(reader, version)
        assert reader.remaining == 0, f"{reader.remaining} bytes behind the answer"
        return answer

    async def receive_frame(self) -> bytes:
        """Return the next frame without its size. Raises ConnectionError, TimeoutError."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                (size,) = unpack(">i", await self.reader.readexactly(4))
                return await self.reader.readexactly(size)
            except asyncio.IncompleteReadError as error:
                raise ConnectionError("the broker closed the connection") from error

    async def is_closed_by_broker(self) -> bool:
        """Wait for the end of the stream or for bytes; return True for the end."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True


def request_frame(
    request: Any, version: int, correlation_id: int = 1, client_id: str | None = "raw"
) -> bytes:
    """Return a whole frame: size, header, body."""
    frame = request_bytes(request, version, correlation_id, client_id)
    return pack(">i", len(frame)) + frame


def batch_of(*values: bytes, timestamp: int = START_MS, **header: Any) -> bytearray:
    """Return a v2 batch of values without keys; `header` as `build_batch` takes it."""
    records = [Record(index, timestamp, None, value, ()) for index, value in enumerate(values)]
    return build_batch(records, **header)
