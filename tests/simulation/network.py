"""The network: connections in memory between brokers and clients.

A connection keeps the order of its bytes, as TCP does. They come later, in other pieces, or never:
a cut link holds them back until it is mended or the connection is reset. Messages of different
connections overtake each other.

Each direction of each pair has chances of its own, so what happens on one changes nothing on
another.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from tests.simulation.loop import CLIENT, MACHINE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.server.connections import Connections
    from tests.simulation.loop import Machine, SimulatedLoop

FIRST_PORT = 9000
CONNECT_TIMEOUT_S = 3.0
PIECE_BYTES_MAX = 4000


class Network:
    """Places are broker ids, and CLIENT."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.loop = loop
        loop.network = self
        self.context = copy_context()
        """The context of code that belongs to no machine."""
        self._seed = seed
        self._chances: dict[tuple[str, int, int], random.Random] = {}
        self.listening: dict[int, SimulatedListener] = {}
        """Port → what accepts there."""
        self.cuts: set[tuple[int, int]] = set()
        """Directions, from and to, in which nothing arrives."""
        self.slow: set[tuple[int, int]] = set()
        self._connections: list[Connection] = []

    def chance(self, purpose: str, source: int = CLIENT, target: int = CLIENT) -> random.Random:
        """Return the chances of one purpose in one direction."""
        key = purpose, source, target
        chance = self._chances.get(key)
        if chance is None:
            chance = self._chances[key] = random.Random(f"{self._seed} {key}")
        return chance

    def delay_s(self, source: int, target: int) -> float:
        """Return how long bytes are on their way: mostly short, sometimes long."""
        chance = self.chance("delay", source, target)
        delay_s = chance.uniform(0.0002, 0.002)
        if chance.random() < 0.05:
            delay_s += chance.uniform(0, 0.1)
        return delay_s + (0.2 if (source, target) in self.slow else 0)

    def disk_delay_s(self) -> float:
        """Return how long work beside the loop waits for the disk; it is not reordered."""
        return 0.001

    # Connections.

    async def connect(self, factory: Callable[[], Any], source: int, port: int) -> tuple[Any, Any]:
        """Return a transport and its protocol. Raises OSError."""
        target = port - FIRST_PORT
        await self.loop.pass_time(self.delay_s(source, target))
        if self.is_cut(source, target):
            await self.loop.pass_time(CONNECT_TIMEOUT_S)
            raise TimeoutError(f"broker {target} does not answer")
        listener = self.listening.get(port)
        if listener is None:
            raise ConnectionRefusedError(f"nobody listens at {port}")
        ours, theirs = factory(), listener.accept(f"broker-{source}", self._next_port())
        connection = Connection(self, (source, target), MACHINE.get(), listener.machine)
        self._connections.append(connection)
        connection.begin(ours, theirs)
        return connection.ends[0], ours

    def _next_port(self) -> int:
        return 40_000 + len(self._connections)

    def is_cut(self, first: int, second: int) -> bool:
        """Return whether one of the two directions is cut."""
        return (first, second) in self.cuts or (second, first) in self.cuts

    def mend(self, source: int, target: int) -> None:
        """Let bytes through again, those that were held back first."""
        self.cuts.discard((source, target))
        for connection in self._connections:
            connection.flush()

    def reset(self, first: int, second: int) -> None:
        """End the connections of two places; bytes on their way are lost."""
        for connection in self._connections:
            if set(connection.places) == {first, second}:
                connection.reset()

    def stop(self, machine: Machine, *, is_silent: bool) -> None:
        """End the connections of a machine. Its peers hear of it at once, or (a power cut) not
        before they wait in vain.
        """
        port = FIRST_PORT + machine.broker_id
        if port in self.listening and self.listening[port].machine is machine:
            del self.listening[port]
        for connection in self._connections:
            if machine in connection.machines:
                if is_silent:
                    connection.is_dead = True
                else:
                    connection.reset()
        self._connections = [
            open_connection for open_connection in self._connections if not open_connection.is_dead
        ]


class SimulatedListener:
    """In the place of `server.listener.ListeningSocket`."""

    def __init__(self, connections: Connections, listener: Listener) -> None:
        machine = MACHINE.get()
        assert machine is not None
        self.machine = machine
        self._connections = connections
        self.listener = listener
        self.port = listener.port
        self.tls = None

    async def prepare(self) -> None:
        """Do nothing: nobody logs in."""

    async def bind(self) -> None:
        """Do nothing: the port is free."""

    def start(self) -> None:
        self.machine.network.listening[self.port] = self

    def stop_accepting(self) -> None:
        self.machine.network.listening.pop(self.port, None)

    async def close(self) -> None:
        """Do nothing: there is no socket."""

    def accept(self, host: str, port: int) -> Any:
        """Return the protocol of a new connection."""
        from minibroker.broker.server.transport import ClientTransport  # noqa: PLC0415

        return ClientTransport(self._connections, self.listener, host, port)


class Connection:
    """Two ends, between two places."""

    def __init__(
        self,
        network: Network,
        places: tuple[int, int],
        source: Machine | None,
        target: Machine | None,
    ) -> None:
        self.network = network
        self.places = places
        self.machines = source, target
        self.ends: tuple[End, End]
        self.is_dead = False

    def begin(self, ours: Any, theirs: Any) -> None:
        """Connect the two protocols."""
        (source, target), contexts = self.places, [_context(machine) for machine in self.machines]
        self.ends = (
            End(self, ours, contexts[0], (source, target)),
            End(self, theirs, contexts[1], (target, source)),
        )
        for end, other in (self.ends, self.ends[::-1]):
            end.other = other
            end.run(end.protocol.connection_made, end)

    def flush(self) -> None:
        """Let what was held back arrive."""
        for end in self.ends:
            end.run(end.deliver_held)

    def reset(self) -> None:
        """End it on both sides, now; what is on its way is lost."""
        if not self.is_dead:
            self.is_dead = True
            for end in self.ends:
                end.lose(ConnectionResetError("reset by the network"))


def _context(machine: Machine | None) -> Context | None:
    return machine.context if machine is not None else None


class End(asyncio.Transport):
    """The transport of one side. Bytes that are written go to the other side's protocol."""

    def __init__(
        self, connection: Connection, protocol: Any, context: Context | None, way: tuple[int, int]
    ) -> None:
        super().__init__()
        self.connection = connection
        self.protocol = protocol
        self.other: End
        self._context = context
        self._way = way
        """From here to the other side."""
        self._is_closing = self._is_lost = False
        self._is_reading = True
        self._last_arrival_s = 0.0
        self._queue: deque[bytes | None] = deque()
        """Bytes for this side that have not arrived, because the link is cut or it does not read;
        None: the end."""

    def run(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call the protocol, as code of its machine, soon."""
        self.connection.network.loop.call_soon(callback, *arguments, context=self._context)

    # What protocols call.

    def write(self, data: Any) -> None:
        if self._is_closing or self.connection.is_dead:
            return
        content = bytes(data)
        for start in range(0, len(content), PIECE_BYTES_MAX):
            self._send(content[start : start + PIECE_BYTES_MAX])

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(map(bytes, list_of_data)))

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._send(None)
            self.run(self.lose, None)

    def abort(self) -> None:
        self._is_closing = True
        self.connection.reset()

    def is_closing(self) -> bool:
        return self._is_closing or self._is_lost

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.run(self.deliver_held)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the network takes everything."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    # The way of bytes.

    def _send(self, content: bytes | None) -> None:
        network = self.connection.network
        arrival_s = network.loop.time() + network.delay_s(*self._way)
        self._last_arrival_s = arrival_s = max(arrival_s, self._last_arrival_s)
        other = self.other
        network.loop.call_at(arrival_s, other.arrive, content, context=other._context)

    def arrive(self, content: bytes | None) -> None:
        """Take bytes that the other side sent; None: it sends no more."""
        if not self.connection.is_dead:
            self._queue.append(content)
            self.deliver_held()

    def deliver_held(self) -> None:
        """Give the protocol what it may have now."""
        network = self.connection.network
        if self.connection.machines[0] is None and self.connection.is_dead:
            return
        while self._queue and self._is_reading and not self._is_lost:
            if (self.other._way in network.cuts) or self.connection.is_dead:
                return
            content = self._queue.popleft()
            if content is None:
                self.protocol.eof_received()
                self._is_closing = True
                self.lose(None)
            elif isinstance(self.protocol, asyncio.BufferedProtocol):
                while content and not self._is_lost:
                    room = self.protocol.get_buffer(-1)
                    count = min(len(room), len(content))
                    room[:count] = content[:count]
                    content = content[count:]
                    self.protocol.buffer_updated(count)
            else:
                self.protocol.data_received(content)

    def lose(self, error: Exception | None) -> None:
        """Tell the protocol that the connection is over."""
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self.run(self.protocol.connection_lost, error)
