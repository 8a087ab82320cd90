"""`ControlledBroker` and its flags: who may be served, what is in the way of a start."""

from __future__ import annotations

import asyncio
import logging
import socket
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from minibroker.broker.config.authorizers import STANDARD_AUTHORIZER
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.control import ControlOptions
from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.cli.errors import UsageError
from minibroker.control.broker import ControlledBroker
from minibroker.kafka.errors import ConfigError, MinibrokerError
from minibroker.verbs.serve.verb import parse_serve

if TYPE_CHECKING:
    from pathlib import Path


def config(
    directory: Path, listeners: str = "PLAINTEXT://127.0.0.1:0", **settings: str
) -> BrokerConfig:
    return BrokerConfig({"listeners": listeners, "log.dirs": str(directory), **settings})


def ask(host: str, port: int, method: str, path: str) -> tuple[int, bytes]:
    """Send one request to the API; return status and body."""
    connection = HTTPConnection(host, port, timeout=60)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def control_address(broker: ControlledBroker) -> tuple[str, int]:
    """Return host and port of the API."""
    url = urlsplit(broker.control_url)
    assert url.hostname is not None
    assert url.port is not None
    return url.hostname, url.port


async def test_start_and_stop(tmp_path: Path) -> None:
    broker = ControlledBroker(config(tmp_path), ControlOptions("127.0.0.1", 0))
    await broker.start()
    for address in (broker.address, control_address(broker)):
        socket.create_connection(address, 5).close()
    assert not broker.failure.done()
    await broker.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(control_address(broker), 5)


async def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--control 127.0.0.1:{port}: cannot listen"):
            await ControlledBroker(config(tmp_path), ControlOptions("127.0.0.1", port)).start()
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        broker = ControlledBroker(config(tmp_path, listeners), ControlOptions("127.0.0.1", 0))
        with pytest.raises(MinibrokerError, match="cannot listen"):
            await broker.start()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(control_address(broker), 5)


@pytest.mark.parametrize("value", ["9093", ":9093", "a:b", "a:70000"])
def test_an_address_that_is_none(value: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_serve(["--control", value])


async def test_a_certificate_that_is_not_there_ends_the_start(tmp_path: Path) -> None:
    options = ControlOptions("127.0.0.1", 0, tls="SSL")
    with pytest.raises(ConfigError, match=r"--control-tls SSL: no listener has this name"):
        await ControlledBroker(config(tmp_path), options).start()


@pytest.mark.parametrize(
    "settings",
    [
        {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:root"},
        {
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        },
    ],
)
async def test_a_secured_broker_is_not_reset_without_a_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: dict[str, str]
) -> None:
    broker = ControlledBroker(config(tmp_path, **settings), ControlOptions("127.0.0.1", 0))
    with caplog.at_level(logging.INFO, "minibroker.control.broker"):
        await broker.start((TopicToCreate("kept", 1, {}),))
    try:
        host, port = control_address(broker)
        status, body = await asyncio.to_thread(ask, host, port, "POST", "/reset")
        assert status == 403
        assert b"--control-token" in body
        assert "kept" in broker._node.app.cluster.image.topics
        assert (await asyncio.to_thread(ask, host, port, "GET", "/topics"))[0] == 200
        assert "without a token it only reads" in caplog.text
    finally:
        await broker.stop()


def test_the_url_of_the_api(tmp_path: Path) -> None:
    for options, url in (
        (ControlOptions("127.0.0.1", 5), "http://127.0.0.1:5"),
        (ControlOptions("::1", 5, tls="a.pem"), "https://[::1]:5"),
    ):
        assert ControlledBroker(config(tmp_path), options).control_url == url
