"""`gates`: a listener for each broker, which ends when its broker has gone to another address."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client.settings import client_settings
from minibroker.proxy import gates as gates_module
from minibroker.proxy.gates import UNNAMED_S, Gate, Gates
from minibroker.proxy.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NAMED_S = 1_000.0
"""A time of the loop."""
FIRST, OLD, NEW, OTHER = (("kafka", port) for port in (9092, 9093, 9094, 9095))


class Visitor(asyncio.Protocol):
    """A client's connection, counted as the proxy does."""

    def __init__(self, gates: Gates, gate: Gate) -> None:
        self._gates = gates
        self._gate = gate
        gates.join(gate)
        self.ended = asyncio.Event()
        self.transport: asyncio.Transport

    def connection_made(self, transport: Any) -> None:
        """Do `Protocol.connection_made`."""
        self.transport = transport
        transport.write(b"hello")

    def connection_lost(self, exc: Exception | None) -> None:
        """Do `Protocol.connection_lost`."""
        self._gates.leave(self._gate)
        self.ended.set()


class Building:
    """Gates before `FIRST`, and those who came in."""

    def __init__(self) -> None:
        self.visitors: list[Visitor] = []
        self.sentences: list[str] = []
        self.gates = Gates(
            "127.0.0.1",
            0,
            (FIRST,),
            advertised_host=None,
            tls=None,
            make_end=self._make_end,
            drop_end=lambda visitor: visitor.connection_lost(None),
            report=self.sentences.append,
        )

    def _make_end(self, gate: Gate) -> Visitor:
        self.visitors.append(Visitor(self.gates, gate))
        return self.visitors[-1]

    async def enter(self, port: int) -> asyncio.StreamWriter:
        """Return a connection that was let in. Raises OSError."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.readexactly(5) == b"hello"
        return writer

    def port_of(self, address: tuple[str, int]) -> int | None:
        """Return the port of a broker's listener, None without one."""
        own = self.gates.own_address(address, "127.0.0.1")
        return None if own is None else own[1]


@asynccontextmanager
async def building() -> AsyncIterator[Building]:
    """Yield gates that listen, for `OLD` and `OTHER` too."""
    building = Building()
    await building.gates.start()
    assert await building.gates.open_all([FIRST, OLD, OTHER]) is None
    building.gates.note_brokers(building.gates.first, {0: FIRST, 1: OLD, 2: OTHER}, NAMED_S)
    try:
        yield building
    finally:
        building.gates.close()
        await building.gates.finish()
        for visitor in building.visitors:
            visitor.transport.abort()


async def test_the_listener_of_an_old_address_ends() -> None:
    async with building() as house:
        gates = house.gates
        old_gate = next(gate for gate in gates.all if gate.targets == (OLD,))
        assert old_gate.is_listening
        assert await gates.open_all([NEW]) is None
        gates.note_brokers(gates.first, {0: FIRST, 1: NEW, 2: OTHER}, NAMED_S)
        assert house.port_of(OLD) is None
        assert [gate.targets for gate in gates.all] == [(FIRST,), (OTHER,), (NEW,)]
        assert not old_gate.is_listening


async def test_a_host_that_is_no_name_has_no_address() -> None:
    assert await gates_module._ips_of("a..b") == set()
    upstream = Upstream(client_settings({"bootstrap.servers": "kafka:9092"}))
    with pytest.raises(OSError, match="no name of a host"):
        await upstream.connect(("a..b", 9092))


async def test_a_listener_in_use_ends_with_its_last_connection() -> None:
    async with building() as house:
        gates = house.gates
        old_port = house.port_of(OLD)
        assert old_port is not None
        writers = [await house.enter(old_port) for _ in range(2)]
        await gates.open_all([NEW])
        gates.note_brokers(gates.first, {0: FIRST, 1: NEW}, NAMED_S)
        for number, writer in enumerate(writers):
            assert house.port_of(OLD) == old_port, number
            writer.close()
            await house.visitors[number].ended.wait()
        assert house.port_of(OLD) is None


async def test_a_broker_that_is_away_keeps_its_listener() -> None:
    async with building() as house:
        gates = house.gates
        gates.note_brokers(gates.first, {0: FIRST, 2: OTHER}, NAMED_S)
        assert house.port_of(OLD) is not None
        gates.note_brokers(gates.first, {0: FIRST, 1: OTHER, 2: OLD}, NAMED_S)
        assert house.port_of(OLD) is not None, "another broker is there now"


async def test_a_broker_that_is_back_keeps_its_listener() -> None:
    async with building() as house:
        gates = house.gates
        old_port = house.port_of(OLD)
        assert old_port is not None
        writer = await house.enter(old_port)
        await gates.open_all([NEW])
        gates.note_brokers(gates.first, {1: NEW}, NAMED_S)
        gates.note_brokers(gates.first, {1: OLD}, NAMED_S)
        writer.close()
        await house.visitors[0].ended.wait()
        assert house.port_of(OLD) == old_port
        assert house.port_of(NEW) is None


async def test_a_first_word_of_another_broker_is_no_move() -> None:
    """Two listeners of one Kafka name different addresses for one id."""
    async with building() as house:
        gates = house.gates
        gate = next(gate for gate in gates.all if gate.targets == (OTHER,))
        await gates.open_all([NEW])
        for _ in range(2):
            gates.note_brokers(gate, {1: NEW}, NAMED_S)
            gates.note_brokers(gates.first, {1: OLD}, NAMED_S)
        assert house.port_of(OLD) is not None
        assert house.port_of(NEW) is not None


async def test_an_address_that_no_answer_names_any_more_loses_its_listener() -> None:
    """FindCoordinator may say an address that Metadata never has."""
    async with building() as house:
        gates = house.gates
        assert await gates.open_all([NEW]) is None
        gates.note_addresses([NEW], NAMED_S)
        gates.leave_unnamed(NAMED_S + UNNAMED_S - 1)
        assert house.port_of(NEW) is not None
        gates.note_addresses([NEW], NAMED_S + 60)
        gates.leave_unnamed(NAMED_S + UNNAMED_S)
        assert house.port_of(NEW) is not None
        gates.leave_unnamed(NAMED_S + 60 + UNNAMED_S)
        assert house.port_of(NEW) is None
        assert [gate.targets for gate in gates.all] == [(FIRST,), (OLD,), (OTHER,)]


async def test_an_unnamed_listener_in_use_ends_with_its_last_connection() -> None:
    async with building() as house:
        gates = house.gates
        await gates.open_all([NEW])
        gates.note_addresses([NEW], NAMED_S)
        port = house.port_of(NEW)
        assert port is not None
        for number, is_named_again in enumerate((True, False)):
            writer = await house.enter(port)
            gates.leave_unnamed(NAMED_S + UNNAMED_S)
            if is_named_again:
                gates.note_addresses([NEW], NAMED_S)
            assert house.port_of(NEW) == port
            writer.close()
            await house.visitors[number].ended.wait()
            assert house.port_of(NEW) == (port if is_named_again else None)


async def test_gates_look_for_unnamed_addresses_while_they_listen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates_module, "LOOK_S", 0.0)
    looks = asyncio.Queue[float]()
    async with building() as house:
        monkeypatch.setattr(house.gates, "leave_unnamed", looks.put_nowait)
        for _ in range(2):
            await looks.get()
        house.gates.close()
        assert house.gates._next_look is None


async def test_the_first_listener_stays() -> None:
    async with building() as house:
        gates = house.gates
        await gates.open_all([NEW])
        gates.note_brokers(gates.first, {0: NEW}, NAMED_S)
        for number in range(2):
            writer = await house.enter(gates.first.port)
            writer.close()
            await house.visitors[number].ended.wait()


async def test_brokers_beyond_the_limit_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates_module, "GATES_MAX", 4)
    async with building() as house:
        sentence = await house.gates.open_all([NEW, ("kafka", 9096)])
        assert sentence == "4 brokers have a listener each: clients go to others directly"
        assert house.port_of(NEW) not in (None, NEW[1])
        assert house.port_of(("kafka", 9096)) == 9096
        assert await house.gates.open_all([("kafka", 9097)]) is None
        assert house.port_of(("kafka", 9097)) == 9097
