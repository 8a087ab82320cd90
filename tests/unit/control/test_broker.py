"""`ControlledBroker` and its flags: who may be served, what is in the way of a start."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from minibroker.cli import UsageError, build, parse_serve
from minibroker.config.broker import BrokerConfig
from minibroker.control.broker import ControlledBroker
from minibroker.errors import ConfigError, MinibrokerError

if TYPE_CHECKING:
    from pathlib import Path


def config(directory: Path, listeners: str = "PLAINTEXT://127.0.0.1:0") -> BrokerConfig:
    return BrokerConfig({"listeners": listeners, "log.dirs": str(directory)})


async def test_start_and_stop(tmp_path: Path) -> None:
    broker = ControlledBroker(config(tmp_path), "127.0.0.1", 0, None)
    await broker.start()
    for address in (broker.address, broker.control_address):
        socket.create_connection(address, 5).close()
    assert not broker.failure.done()
    await broker.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(broker.control_address, 5)


async def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--control 127.0.0.1:{port}: cannot listen"):
            await ControlledBroker(config(tmp_path), "127.0.0.1", port, None).start()
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        broker = ControlledBroker(config(tmp_path, listeners), "127.0.0.1", 0, None)
        with pytest.raises(MinibrokerError, match="cannot listen"):
            await broker.start()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(broker.control_address, 5)


@pytest.mark.parametrize("value", ["9093", ":9093", "a:b", "a:70000"])
def test_an_address_that_is_none(value: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_serve(["--control", value])


def test_requests_that_need_a_token() -> None:
    for local in ("127.0.0.1:1", "localhost:1", "[::1]:1"):
        _, options = build(parse_serve(["--control", local]), {})
        assert options.control is not None
        assert options.control_token is None
    open_to_all = parse_serve(["--control", "0.0.0.0:9093"])
    with pytest.raises(ConfigError, match="MINIBROKER_CONTROL_TOKEN"):
        build(open_to_all, {})
    _, options = build(open_to_all, {"MINIBROKER_CONTROL_TOKEN": "a"})
    assert (options.control, options.control_token) == (("0.0.0.0", 9093), "a")
    with pytest.raises(ConfigError, match="ASCII"):
        build(parse_serve(["--control-token", "two words"]), {})
