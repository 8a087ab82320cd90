"""`Gates`: a listener for each broker of the cluster, and the addresses that clients get.

    127.0.0.1:9192 ─► kafka-1:9092        the one of --listen, which asks any of --to
    127.0.0.1:9193 ─► kafka-2:9092        made when an answer names the broker for the first time
    127.0.0.1:9194 ─► kafka-3:9092

A broker keeps its listener, also while it is away. A listener takes leave when Metadata says that
its broker has another address, or when Metadata never spoke of the address and no other answer has
named it for `UNNAMED_S`. It ends with its last connection. Belongs to the loop.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Final

from minibroker.acceptor import Acceptor
from minibroker.kafka.errors import ConfigError
from minibroker.proxy.addresses import name_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping

    from minibroker.proxy.addresses import Address

GATES_MAX: Final = 1_000
"""Brokers with a listener; the addresses of more pass as they are."""
PORTS_TRIED: Final = 100
"""Ports behind the first that are tried for a broker, before a free one is taken."""
PORT_MAX: Final = 65_535
PLACES_MAX: Final = 10_000
"""Addresses of brokers that are compared with their next ones."""
UNNAMED_S: Final = 1_800.0
"""So long an address that Metadata never had may be out of all answers, too."""
LOOK_S: Final = 60.0
"""Time between two looks for such addresses."""
BACKLOG: Final = 1_024
ANY_HOST: Final = ("0.0.0.0", "::")
"""Hosts of a listener that clients cannot connect to."""


class Gate:
    """A listener, and the broker behind it."""

    def __init__(self, targets: tuple[Address, ...], port: int) -> None:
        self.targets = targets
        """The addresses to connect to, in this order. Constant."""
        self.port = port
        """Constant after the first start."""
        self.acceptor: Acceptor[Any] | None = None
        """None before it listens for the first time."""
        self.connection_count = 0
        """Connections of clients."""
        self.named_s = 0.0
        """The loop's time when an answer named its address last."""
        self.is_left = False
        """True when no answer will name its address again, as far as it can be known."""

    @property
    def is_listening(self) -> bool:
        """Return whether clients can come."""
        return self.acceptor is not None and self.acceptor.is_listening

    def close(self) -> None:
        """Listen no more; connections stay."""
        if self.acceptor is not None:
            self.acceptor.close()


class Gates:
    """The listeners of one proxy."""

    def __init__(
        self,
        host: str,
        port: int,
        targets: tuple[Address, ...],
        *,
        advertised_host: str | None,
        tls: ssl.SSLContext | None,
        make_end: Callable[[Gate], asyncio.BaseProtocol],
        drop_end: Callable[[Any], None],
        report: Callable[[str], None],
    ) -> None:
        """Take the settings of the listeners, and who gets the clients.

        Args:
            host: address of each listener.
            port: that of the first one, 0: a free one.
            targets: where the first one leads.
            advertised_host: what clients are told, None: `host`, or for a host that stands for all
                addresses the one that the client came to.
            tls: None: plaintext.
            make_end: returns the protocol of a client.
            drop_end: gets the protocol of one that never became a connection.
            report: gets a sentence when no client can be accepted.
        """
        self._host = host
        self._advertised_host = advertised_host
        self._tls = tls
        self._make_end, self._drop_end, self._report = make_end, drop_end, report
        self.first = Gate(targets, port)
        self._by_address: dict[Address, Gate] = {}
        self._opening = asyncio.Lock()
        self._refused: set[Address] = set()
        """Addresses that cannot be served."""
        self._places: dict[tuple[Gate, int], Address] = {}
        """Gate and id → the address that the broker behind the gate said last of that id."""
        self._next_port = port
        self._next_look: asyncio.TimerHandle | None = None
        """None while nobody listens."""

    @property
    def all(self) -> list[Gate]:
        """Return every listener, the first one first."""
        return list(dict.fromkeys((self.first, *self._by_address.values())))

    async def start(self) -> None:
        """Listen for the first address. Raises ConfigError where that cannot be."""
        try:
            await self._listen(self.first)
        except OSError as error:
            name = name_of((self._host, self.first.port))
            raise ConfigError(
                f"--listen {name}: cannot listen: {error.strerror or error}"
            ) from error
        self._next_port = self.first.port + 1
        self._look_later()

    async def listen_again(self) -> None:
        """Listen at every address once more, after `close`. Raises OSError."""
        for gate in self.all:
            if not gate.is_listening:
                await self._listen(gate)
        self._look_later()

    def close(self) -> None:
        """Stop to listen; connections are the owner's."""
        self._end_looks()
        for gate in self.all:
            gate.close()

    async def finish(self) -> None:
        """Return when nothing is left of clients that were no connection yet at `close`."""
        for gate in self.all:
            if gate.acceptor is not None:
                await gate.acceptor.finish()

    def own_address(self, address: Address, local_host: str) -> Address | None:
        """Return where clients reach a broker through the proxy, None while nobody listens for it.

        `local_host`: the address to which the client of this answer came.
        """
        gate = self._by_address.get(address)
        if gate is None:
            return address if address in self._refused or self._are_full else None
        if self._advertised_host is not None:
            return self._advertised_host, gate.port
        return (local_host if self._host in ANY_HOST else self._host), gate.port

    @property
    def _are_full(self) -> bool:
        """Return whether no more broker gets a listener: its clients go there directly."""
        return len(self._by_address) + len(self._refused) >= GATES_MAX

    def note_addresses(self, addresses: Iterable[Address], now_s: float) -> None:
        """Take the addresses of brokers in an answer: their listeners stay."""
        for address in addresses:
            gate = self._by_address.get(address)
            if gate is not None:
                gate.named_s, gate.is_left = now_s, False

    def note_brokers(self, gate: Gate, brokers: Mapping[int, Address], now_s: float) -> None:
        """Take id → address of the brokers, as the one behind `gate` says in Metadata.

        A broker that is not there may come back. One that is at another address than before has
        left the old one.
        """
        present = set(brokers.values())
        self.note_addresses(present, now_s)
        for broker_id, address in brokers.items():
            old_address = self._places.get((gate, broker_id))
            if old_address is None and len(self._places) >= PLACES_MAX:
                continue
            self._places[gate, broker_id] = address
            if old_address not in present and old_address in self._by_address:
                old_gate = self._by_address[old_address]
                old_gate.is_left = True
                self._end_unused(old_gate)

    def leave_unnamed(self, now_s: float) -> None:
        """End unused listeners whose addresses no answer has named for `UNNAMED_S`, but for those
        of which Metadata spoke last: a broker may be away.
        """
        known_places = set(self._places.values())
        for address, gate in list(self._by_address.items()):
            if address not in known_places and now_s - gate.named_s >= UNNAMED_S:
                gate.is_left = True
                self._end_unused(gate)

    def _end_looks(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look_later(self) -> None:
        self._end_looks()
        self._next_look = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self.leave_unnamed(asyncio.get_running_loop().time())
        self._look_later()

    def join(self, gate: Gate) -> None:
        """Count a connection of a client that begins."""
        gate.connection_count += 1

    def leave(self, gate: Gate) -> None:
        """Count a connection of a client that ends."""
        gate.connection_count -= 1
        self._end_unused(gate)

    def _end_unused(self, gate: Gate) -> None:
        """End a listener that has been left, once nobody uses it. The first one stays."""
        if not gate.is_left or gate.connection_count or gate is self.first:
            return
        address = gate.targets[0]
        if self._by_address.get(address) is not gate:
            return  # it has ended; this connection was accepted before
        del self._by_address[address]
        for place in [place for place in self._places if place[0] is gate]:
            del self._places[place]
        gate.close()
        if gate.port > self.first.port:
            self._next_port = min(self._next_port, gate.port)

    async def open_all(self, addresses: Iterable[Address]) -> str | None:
        """Listen for each of these brokers; return a sentence if one cannot be served."""
        failure = None
        async with self._opening:
            for address in addresses:
                if address not in self._by_address and address not in self._refused:
                    failure = await self._open(address) or failure
        return failure

    async def _open(self, address: Address) -> str | None:
        if await self._is_first(address):
            self._by_address[address] = self.first
            return None
        if self._are_full:
            return None
        name = name_of(address)
        gate = Gate((address,), 0)
        gate.named_s = asyncio.get_running_loop().time()
        ports = range(self._next_port, min(self._next_port + PORTS_TRIED, PORT_MAX + 1))
        for port in (*(ports if self._next_port > 1 else ()), 0):
            gate.port = port
            try:
                await self._listen(gate)
            except OSError as error:
                if port:
                    continue
                self._refused.add(address)
                return f"cannot listen for {name}, clients go there directly: {error}"
            break
        self._by_address[address] = gate
        if gate.port >= self._next_port > 1:
            self._next_port = gate.port + 1
        if self._are_full:
            return f"{GATES_MAX} brokers have a listener each: clients go to others directly"
        return None

    async def _is_first(self, address: Address) -> bool:
        """Return whether the first listener leads to this broker alone, by this or another name of
        its host.
        """
        if len(self.first.targets) != 1 or self.first in self._by_address.values():
            return address == self.first.targets[0]
        host, port = self.first.targets[0]
        if address == (host, port):
            return True
        if address[1] != port:
            return False
        return not (await _ips_of(host)).isdisjoint(await _ips_of(address[0]))

    async def _listen(self, gate: Gate) -> None:
        """Raises OSError."""
        if gate.acceptor is None:
            gate.acceptor = Acceptor(
                lambda: self._make_end(gate),
                self._drop_end,
                self._report,
                backlog=BACKLOG,
                tls=self._tls,
            )
        gate.port = await gate.acceptor.listen(self._host, gate.port)


async def _ips_of(host: str) -> set[str]:
    """Return the addresses of a host, none if nobody knows it or it is no name of a host."""
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return set()
    return {str(info[4][0]) for info in infos}
