"""Listeners that are altered while a broker runs: opened, closed, told, and kept over a start."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from minibroker.broker.broker_listeners import warn_where_open
from minibroker.broker.config.authorizers import STANDARD_AUTHORIZER
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.server.listener import ListeningSocket
from minibroker.kafka.errors import StorageError
from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.certificates import authority, tls_settings
from tests.support.in_process import InProcessBroker, RawClient

HOST = "127.0.0.1"
OWN = f"PLAINTEXT://{HOST}:0"
EXTRA = f"{OWN},EXTRA://{HOST}:0"
MAP = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,SSL:SSL,S:SASL_SSL"}
ALL_PLAIN = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,SSL:PLAINTEXT"
METADATA = MetadataRequest(topics=[])


async def alter(client: RawClient, values: dict[str, str]) -> tuple[int, str | None]:
    configs = [AlterableConfig(name=name, value=value) for name, value in values.items()]
    resource = AlterConfigsResource(resource_type=4, resource_name="0", configs=configs)
    answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return answer.responses[0].error_code, answer.responses[0].error_message


async def ports_when_done(running: InProcessBroker) -> dict[str, int]:
    """Wait for listeners that are being opened and closed; return the ports of all."""
    await asyncio.gather(*running.broker._tasks)
    return running.broker.ports


async def connect(running: InProcessBroker, listener: str, **more: Any) -> RawClient:
    running.broker.address = (HOST, running.broker.ports[listener])
    return await running.connect(**more)


async def ports_told_to(client: RawClient) -> list[int]:
    """Return the ports of brokers that a client is told."""
    return [broker.port for broker in (await client.call(METADATA, 9)).brokers]


@pytest.mark.parametrize(
    ("listener", "more", "sentence"),
    [
        ("PLAINTEXT://127.0.0.1:0", {}, None),
        ("PLAINTEXT://[::1]:0", {}, None),
        ("PLAINTEXT://localhost:0", {}, None),
        ("SASL_PLAINTEXT://0.0.0.0:0", {"security.inter.broker.protocol": "SASL_PLAINTEXT"}, None),
        ("PLAINTEXT://:0", {}, "whoever reaches it may read and change everything"),
        (
            "PLAINTEXT://0.0.0.0:0",
            {"authorizer.class.name": STANDARD_AUTHORIZER},
            "whoever reaches it is User:ANONYMOUS",
        ),
    ],
)
def test_a_listener_that_anyone_reaches_without_a_login_is_one_line(
    caplog: pytest.LogCaptureFixture, listener: str, more: dict[str, str], sentence: str | None
) -> None:
    advertised = listener.replace("0.0.0.0", "broker.example")
    config = BrokerConfig({"listeners": listener, "advertised.listeners": advertised, **more})
    warn_where_open(config.listeners[0], config)
    expected = [] if sentence is None else [_open_line(listener, sentence)]
    assert caplog.messages == expected


def _open_line(listener: str, sentence: str) -> str:
    return (
        f"listener {listener} is on an address that other machines may reach, and asks for no"
        f" login: {sentence}"
    )


async def test_a_listener_comes_stays_over_a_start_and_goes_with_its_clients(
    tmp_path: Path,
) -> None:
    async with InProcessBroker(tmp_path) as running:
        client = await running.connect()
        assert await alter(client, {**MAP, "listeners": EXTRA}) == (0, None)
        ports = await ports_when_done(running)
        async with await connect(running, "EXTRA") as other:
            assert await ports_told_to(other) == [ports["EXTRA"]]
        assert await ports_told_to(client) == [ports["PLAINTEXT"]]
        await client.close()
    async with InProcessBroker(tmp_path) as running:
        own, extra = [await connect(running, name) for name in ("PLAINTEXT", "EXTRA")]
        assert await ports_told_to(extra) == [running.broker.ports["EXTRA"]]
        # Even where the one that asks for it comes by this listener, it is answered.
        assert await alter(extra, {"listeners": OWN}) == (0, None)
        assert await extra.is_closed_by_broker()
        assert await ports_when_done(running) == {
            "PLAINTEXT": own.writer.get_extra_info("peername")[1]
        }
        data, _ = await running.broker.cluster.tree.get("/brokers/ids/0")
        assert b"EXTRA" not in data
        assert len(await ports_told_to(own)) == 1
        for client in (own, extra):
            await client.close()


async def test_a_port_in_use_is_an_error_in_the_log_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        with socket.create_server((HOST, 0)) as holder:
            port = holder.getsockname()[1]
            listeners = f"{OWN},EXTRA://{HOST}:{port}"
            assert await alter(client, {**MAP, "listeners": listeners}) == (0, None)
            assert "EXTRA" not in await ports_when_done(running)
        assert f"cannot listen on {HOST}:{port}: " in caplog.text
        (broker,) = running.broker.cluster.image.brokers.values()
        assert [endpoint.listener for endpoint in broker.endpoints] == ["PLAINTEXT"]
        await alter(client, {"listeners": listeners.replace(",", " ,")})
        assert (await ports_when_done(running))["EXTRA"] == port
    with (
        socket.create_server((HOST, port)),
        pytest.raises(StorageError, match="listeners, as altered while the broker ran"),
    ):
        await InProcessBroker(tmp_path).__aenter__()


async def test_a_name_that_is_none_is_an_error_in_the_log_and_the_others_come(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        listeners = f"{OWN},SSL://a..b:0,EXTRA://{HOST}:0"
        plain = {"listener.security.protocol.map": ALL_PLAIN}
        assert await alter(client, {"listeners": listeners, **plain}) == (0, None)
        assert (await ports_when_done(running)).keys() == {"PLAINTEXT", "EXTRA"}
        assert "cannot listen on a..b:0: this is no name of a host" in caplog.text


async def test_a_listener_with_tls_comes_with_its_certificate_or_not_at_all(tmp_path: Path) -> None:
    listeners = {**MAP, "listeners": f"{OWN},SSL://{HOST}:0"}
    own = {
        f"listener.name.ssl.{name}": text
        for name, text in tls_settings().items()
        if name.startswith("ssl.")
    }
    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        code, message = await alter(client, listeners)
        assert code == 42
        assert "listener SSL: " in str(message)
        sasl = {**MAP, "listeners": f"{OWN},S://{HOST}:0"}
        assert (await alter(client, sasl))[0] == 42
        assert await alter(client, {**listeners, **own}) == (0, None)
        ports = await ports_when_done(running)
        context = ssl.create_default_context()
        authority().configure_trust(context)
        async with await connect(running, "SSL", tls=context) as secured:
            assert await ports_told_to(secured) == [ports["SSL"]]
            assert await alter(client, {"listeners": OWN}) == (0, None)
            assert await secured.is_closed_by_broker()


async def test_an_address_of_an_open_listener_is_bound_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    other = {"listeners": f"PLAINTEXT://{HOST}:{port}"}
    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        old_ports = running.broker.ports
        same = {"listeners": f"PLAINTEXT://{HOST}:{old_ports['PLAINTEXT']}"}
        assert await alter(client, same) == (0, None)
        await ports_when_done(running)
        assert not caplog.text
        assert await alter(client, other) == (0, None)
        assert await ports_when_done(running) == old_ports
        assert await ports_told_to(client) == [port]
        assert f"takes over its address {HOST}:{port} when this broker starts again" in caplog.text
    # The address of the file is in use: it is not bound, not for a moment either.
    with socket.create_server((HOST, old_ports["PLAINTEXT"])):
        async with InProcessBroker(tmp_path, same) as running:
            assert running.broker.ports == {"PLAINTEXT": port}
            altered = f"listeners=PLAINTEXT://{HOST}:{port} were altered while the broker ran"
            assert altered in caplog.text
            assert running.address == (HOST, port)


async def test_a_stop_does_not_wait_for_a_listener_that_is_being_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrival = asyncio.Event()

    async def prepare(self: ListeningSocket) -> None:
        arrival.set()
        await asyncio.Event().wait()

    running = InProcessBroker(tmp_path)
    async with running, await running.connect() as client:
        monkeypatch.setattr(ListeningSocket, "prepare", prepare)
        assert await alter(client, {**MAP, "listeners": EXTRA}) == (0, None)
        await arrival.wait()
        (bound,) = (
            bound_socket
            for bound_socket in running.server._sockets
            if bound_socket.listener.name == "EXTRA"
        )
        assert bound._socket is not None
    assert bound._socket.fileno() == -1
    assert not running.broker._tasks


async def test_a_change_that_cannot_be_is_refused_while_the_broker_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Written by another process it is an error in the log, and the listeners stay."""
    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        old_ports = running.broker.ports
        settings = {"listener.security.protocol.map": "PLAINTEXT:SSL"}
        code, message = await alter(client, settings)
        assert (code, message) == (
            42,
            "Security protocol cannot be updated for existing listener ListenerName(PLAINTEXT)",
        )
        with caplog.at_level(logging.ERROR):
            await running.broker.cluster.alter_config("brokers", "0", settings)
        assert "the values in force stay: Security protocol cannot be updated" in caplog.text
        assert await ports_when_done(running) == old_ports
