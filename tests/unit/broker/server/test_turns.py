"""Requests of the controller go before those of other connections, whatever those take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.server import connections
from minibroker.broker.server.connection import ConnectionState
from minibroker.broker.server.connections import DATA_PART_MS, DataTurns
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.create_topics import CreateTopicsRequest
from minibroker.kafka.protocol.messages.list_groups import ListGroupsRequest
from minibroker.kafka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataRequest,
)
from tests.support.in_process import InProcessBroker, Serve
from tests.support.waiting import eventually
from tests.unit.broker.handlers.control_requests import Controlled

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.server.transport import ClientTransport
    from tests.unit.broker.server.gate import Gate

EPOCH = 7
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
    "control.plane.listener.name": "control",
}


class Loop:
    """Turns when the test says so, at times that the test sets."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.ran: list[str] = []
        self._soon: list[Callable[[], None]] = []
        self.turns = DataTurns(self._soon.append, lambda: self.now_ns)

    def run(self, name: str, takes_ms: float) -> None:
        """Begin a run if it may, and let it take so long; else it asks again."""
        if self.turns.may_run(lambda: self.run(name, takes_ms)):
            self.ran.append(name)
            self.now_ns += int(takes_ms * 1_000_000)

    def turn(self) -> list[str]:
        """Turn once; return the runs that this turn began."""
        soon, self._soon[:] = list(self._soon), []
        old_count = len(self.ran)
        for call in soon:
            call()
        return self.ran[old_count:]


def test_runs_begin_until_the_part_is_over_and_the_rest_comes_in_order() -> None:
    loop = Loop()
    for name in "abcdef":
        loop.run(name, DATA_PART_MS / 2)
    assert loop.ran == ["a", "b"]
    assert [loop.turn(), loop.turn()] == [[], ["c", "d"]]  # sockets were looked at in between
    loop.run("g", 0)
    assert [loop.turn(), loop.turn()] == [[], ["e", "f"]]
    assert [loop.turn(), loop.turn()] == [[], ["g"]]
    assert [loop.turn(), loop.turn()] == [[], []]


def test_a_run_that_takes_longer_than_a_part_is_begun_all_the_same() -> None:
    loop = Loop()
    for name in "abc":
        loop.run(name, DATA_PART_MS * 10)
    assert loop.ran == ["a"]
    assert [loop.turn(), loop.turn()] == [[], ["b"]]
    assert [loop.turn(), loop.turn()] == [[], ["c"]]


def test_a_loop_that_turns_holds_nobody_up() -> None:
    """It looks at its sockets often enough, and each part costs one call."""
    loop = Loop()
    for name in "abcdef":
        loop.run(name, DATA_PART_MS / 2)
        loop.turn()
    assert loop.ran == list("abcdef")


def update(controlled: Controlled, epoch: int = EPOCH) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=0,
        controller_epoch=epoch,
        broker_epoch=controlled.broker_epoch,
        live_brokers=[UpdateMetadataBroker(id=0)],
    )


def transports(running: InProcessBroker) -> list[ClientTransport]:
    return list(running.server.connections)  # type: ignore[arg-type]


async def test_a_connection_is_the_controllers_once_a_request_passed_its_epochs(
    serve: Serve,
) -> None:
    running = await serve()
    controlled = Controlled(running)
    async with await running.connect() as client:
        assert (await client.call(update(controlled, epoch=-1), 8)).error_code != 0
        (transport,) = transports(running)
        assert not transport.is_control
        assert (await client.call(update(controlled), 8)).error_code == 0
        assert transport.is_control
        assert not transport.connection.receive_buffer.is_bounded
        assert running.server.connections.turns.controllers == 1
        assert (await client.call(update(controlled), 8)).error_code == 0
        assert running.server.connections.turns.controllers == 1


async def test_every_connection_by_the_control_plane_listener_is_the_controllers(
    serve: Serve,
) -> None:
    running = await serve(**SETTINGS)
    async with (
        await running.connect() as client,
        await running.connect(listener="CONTROL") as controller,
    ):
        await client.call(ApiVersionsRequest(), 0)
        await controller.call(ApiVersionsRequest(), 0)
        by_listener = {t.listener.name: t.is_control for t in transports(running)}
        assert by_listener == {"PLAINTEXT": False, "CONTROL": True}


async def test_the_controllers_place_is_free_when_it_left(serve: Serve) -> None:
    running = await serve(**SETTINGS)
    controller = await running.connect(listener="CONTROL")
    await controller.call(ApiVersionsRequest(), 0)
    count = running.server.connections.turns
    assert count.controllers == 1
    await controller.close()
    async with await running.connect() as client:
        while count.controllers:
            await client.call(ApiVersionsRequest(), 0)


async def test_the_controller_connects_though_max_connections_is_reached(serve: Serve) -> None:
    running = await serve(**SETTINGS, **{"max.connections": "1"})
    async with await running.connect() as client:
        await client.call(ApiVersionsRequest(), 0)
        async with await running.connect(listener="CONTROL") as controller:
            await controller.call(ApiVersionsRequest(), 0)


async def test_a_control_request_overtakes_data_requests_that_came_before_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of two APIs in turns: each is a run of its own, and a part has time for one."""
    monkeypatch.setattr(connections, "DATA_PART_MS", 0)
    running = await serve()
    controlled = Controlled(running)
    async with await running.connect() as client, await running.connect() as controller:
        assert (await controller.call(update(controlled), 8)).error_code == 0
        count = 1000
        frames: list[Any] = [ApiVersionsRequest(), ListGroupsRequest()] * (count // 2)
        for request in frames:
            client.send(request, 0)
        await client.receive()
        assert (await controller.call(update(controlled), 8)).error_code == 0
        metrics = running.broker.services.metrics.of_api("ListGroups")
        assert metrics.by_name()["TotalTimeMs"].count < count // 2
        for _ in range(count - 1):
            await client.receive()
        assert metrics.by_name()["TotalTimeMs"].count == count // 2


async def test_a_control_request_waits_for_no_place_among_the_tasks(
    serve: Serve, gate: Gate
) -> None:
    running = await serve(**SETTINGS, **{"queued.max.requests": "1"})
    controlled = Controlled(running)
    async with (
        await running.connect() as client,
        await running.connect(listener="CONTROL") as controller,
    ):
        client.send(CreateTopicsRequest(), 5)
        await eventually(lambda: gate.waiting == 1)
        assert (await controller.call(update(controlled), 8)).error_code == 0
        gate.open()
        await client.receive()


async def test_no_quota_delays_a_control_request(serve: Serve) -> None:
    running = await serve()
    controlled = Controlled(running)
    await running.broker.cluster.alter_config("clients", "raw", {"request_percentage": "0.000001"})
    async with await running.connect() as controller:
        assert (await controller.call(update(controlled), 8)).error_code == 0
        (transport,) = transports(running)
        assert transport.connection.state is ConnectionState.OPEN
        await controller.call(ListGroupsRequest(), 1)
        assert transport.connection.state is ConnectionState.THROTTLED
