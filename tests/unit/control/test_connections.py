"""Connections over HTTP, with the clients that made them."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.support.waiting import eventually, wait_until

if TYPE_CHECKING:
    from tests.unit.control.conftest import Control


@pytest.mark.kafka(topics=["orders"])
def test_a_connection_has_its_client_and_its_use(control: Control) -> None:
    settings = {"bootstrap.servers": control.broker.bootstrap, "client.id": "mine", "log_level": 0}
    producer = Producer(settings)
    for _ in range(3):
        producer.produce("orders", b"v")
        assert producer.flush(60) == 0
    status, view = control.ask("GET", "/connections")
    (connection,) = [part for part in view["connections"] if "Produce" in part["apis"]]
    assert (status, view["cut"]) == (200, False)
    assert connection["apis"]["Produce"]["count"] == 3
    assert (connection["client_id"], connection["principal"]) == ("mine", "User:ANONYMOUS")
    assert connection["software_name"] == "confluent-kafka-python"
    assert (connection["broker_id"], connection["security"]) == (0, "PLAINTEXT")
    assert connection["requests"] == sum(api["count"] for api in connection["apis"].values())
    assert connection["request_bytes"] > 0
    assert connection["answer_bytes"] > 0
    assert connection["state"] == "open"
    _, _, lines = control.raw("GET", f"/requests?client_address={connection['client_address']}")
    assert len(lines.splitlines()) == connection["requests"]


async def test_a_connection_is_ended(control: Control) -> None:
    host, port = control.broker.bootstrap.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    address = "{}:{}".format(*writer.get_extra_info("sockname"))

    async def addresses() -> list[str]:
        _, view = await asyncio.to_thread(control.ask, "GET", "/connections")
        return [connection["client_address"] for connection in view["connections"]]

    await eventually(lambda: len(control.broker._node.app.connections))
    assert await addresses() == [address]
    path = f"/connections?client_address={address}"
    assert (await asyncio.to_thread(control.ask, "DELETE", path))[0] == 200
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.transport.abort()
    assert (await asyncio.to_thread(control.ask, "DELETE", path))[0] == 404


def test_connections_beyond_the_limit_are_cut(control: Control) -> None:
    host, port = control.broker.bootstrap.split(":")
    clients = [socket.create_connection((host, int(port))) for _ in range(3)]
    wait_until(lambda: len(control.broker._node.app.connections) == 3, "all are accepted")
    view = control.ask("GET", "/connections?limit=2")[1]
    assert (len(view["connections"]), view["cut"]) == (2, True)
    for client in clients:
        client.close()
    uses = control.broker._node.interceptor.connection_uses
    wait_until(lambda: len(uses) == 0, "closed connections are forgotten")


@pytest.mark.kafka(security="SASL_PLAINTEXT", users={"alice": "secret"})
def test_a_client_that_has_not_logged_in_has_no_principal(control: Control) -> None:
    host, port = control.broker.bootstrap.split(":")
    with socket.create_connection((host, int(port))):
        wait_until(lambda: len(control.broker._node.app.connections) > 0, "it is accepted")
        (connection,) = control.ask("GET", "/connections")[1]["connections"]
        assert (connection["principal"], connection["state"]) == (None, "authenticating")
        assert connection["security"] == "SASL_PLAINTEXT"
