"""The links between three brokers, and between a broker and ZooKeeper; each can be cut both ways.

Brokers talk to each other, and to ZooKeeper, through proxies of this module; clients do not. A link
that is cut holds every byte, as a network does that drops packets: nothing is refused, nothing is
closed, and what was on its way arrives when the link is whole again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Final

import psutil

from tests.support.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

ZOOKEEPER: Final = "zookeeper"
End = int | str
"""A broker's id, or ZOOKEEPER."""
CHUNK_BYTES: Final = 1 << 16
HOST: Final = "127.0.0.1"


class Links:
    """The proxies, on a thread of their own. The methods are called by the test's thread."""

    def __init__(
        self, ids: Iterable[int], zookeeper_port: int, pid_of: Callable[[int], int | None]
    ):
        """`pid_of`: the process of a broker that runs, None of one that does not."""
        self._ids = tuple(ids)
        self._pid_of = pid_of
        self._cut: set[frozenset[End]] = set()
        self.inside = {n: free_port() for n in self._ids}
        """Broker → the port of its listener for the others, behind the proxy."""
        self.outside = {n: free_port() for n in self._ids}
        """Broker → the port that it tells the others."""
        self.zookeeper = {n: free_port() for n in self._ids}
        """Broker → the port where it finds ZooKeeper."""
        self._zookeeper_port = zookeeper_port
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._call(self._listen())

    def _call(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(180)

    async def _listen(self) -> None:
        for broker_id in self._ids:
            await self._serve(self.outside[broker_id], self.inside[broker_id], broker_id, None)
            await self._serve(self.zookeeper[broker_id], self._zookeeper_port, ZOOKEEPER, broker_id)

    async def _serve(self, port: int, target: int, end: End, source: int | None) -> None:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._connect(reader, writer, target, end, source))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._servers.append(await asyncio.start_server(accept, HOST, port))

    async def _connect(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target: int,
        end: End,
        source: int | None,
    ) -> None:
        """Carry the bytes of one connection until both sides have ended theirs."""
        if source is None:
            source = self._owner_of(writer.get_extra_info("peername")[1])
        try:
            with contextlib.suppress(OSError):  # its process has gone, or the target refuses
                if source is not None:
                    await self._carry_both(reader, writer, target, frozenset((source, end)))
        finally:
            writer.transport.abort()

    async def _carry_both(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target: int,
        link: frozenset[End],
    ) -> None:
        """Carry bytes both ways until both sides have ended. Raises OSError."""
        await self._until_whole(link)
        to_reader, to_writer = await asyncio.open_connection(HOST, target)
        try:
            await asyncio.gather(
                self._carry(reader, to_writer, link), self._carry(to_reader, writer, link)
            )
        finally:
            to_writer.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: frozenset[End]
    ) -> None:
        with contextlib.suppress(ConnectionError):  # a process was killed: the other side hears it
            while data := await reader.read(CHUNK_BYTES):
                await self._until_whole(link)
                writer.write(data)
                await writer.drain()
        await self._until_whole(link)
        if not writer.is_closing():
            writer.write_eof()

    async def _until_whole(self, link: frozenset[End]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: link not in self._cut)

    def _owner_of(self, port: int) -> int | None:
        """Return the broker whose process has this port as its own end of a connection."""
        for broker_id in self._ids:
            pid = self._pid_of(broker_id)
            if pid is None:
                continue
            with contextlib.suppress(psutil.Error):
                connections = psutil.Process(pid).net_connections("tcp")
                if any(
                    connection.laddr and connection.laddr.port == port for connection in connections
                ):
                    return broker_id
        return None

    def cut(self, broker: End, others: Iterable[End]) -> None:
        """Cut the links between a broker and each of `others`."""
        self._call(self._set(self._cut | {frozenset((broker, other)) for other in others}))

    def mend(self) -> None:
        """Make every link whole."""
        self._call(self._set(set()))

    async def _set(self, cut: set[frozenset[End]]) -> None:
        async with self._changed:
            self._cut = cut
            self._changed.notify_all()

    def close(self) -> None:
        """End every connection, and the thread."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
