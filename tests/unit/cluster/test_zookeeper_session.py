"""A session with ZooKeeper without a server: addresses, time-outs, paths below a chroot.

With one: `tests/integration/test_zookeeper_outage.py`.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from minibroker.cluster.zookeeper_session import ZooKeeperSession, _tries
from minibroker.errors import CoordinationError
from tests.support.processes import free_port


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "127.0.0.1:{port}/chroot", "no.invalid:1"])
async def test_wrong_address_is_one_sentence_in_time(address: str) -> None:
    session = ZooKeeperSession(address.format(port=free_port()), connection_timeout_ms=500)
    started = time.monotonic()
    with pytest.raises(CoordinationError, match=r"no answer from ZooKeeper at .* within 500 ms"):
        await session.open()
    assert time.monotonic() - started < 10
    await session.close()


async def test_port_that_never_answers_is_one_sentence_in_time() -> None:
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        session = ZooKeeperSession(f"127.0.0.1:{port}", connection_timeout_ms=500)
        started = time.monotonic()
        with pytest.raises(CoordinationError, match="within 500 ms"):
            await session.open()
        assert time.monotonic() - started < 10
        for writer in writers:
            writer.close()
            await writer.wait_closed()


async def test_a_connection_that_is_forgotten_does_not_cost_the_session() -> None:
    """A ZooKeeper that starts takes connections it never answers: the next comes in good time."""
    session_timeout_ms = 6_000
    writers: list[asyncio.StreamWriter] = []
    connected: asyncio.Queue[float] = asyncio.Queue()

    def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        connected.put_nowait(time.monotonic())

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        session = ZooKeeperSession(f"127.0.0.1:{port}", session_timeout_ms=session_timeout_ms)
        opening = asyncio.ensure_future(session.open())
        async with asyncio.timeout(60):
            first, second = await connected.get(), await connected.get()
        assert second - first < session_timeout_ms / 1000
        opening.cancel()
        await asyncio.wait([opening])
        await session.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize(
    ("hosts", "session_timeout_ms", "tried"),
    [
        ("a:1", 18_000, "a:1,a:1,a:1"),
        ("a:1", 5_000, "a:1,a:1"),
        ("a:1", 1_000, "a:1"),
        ("a:1,b:2", 18_000, "a:1,b:2"),
    ],
)
def test_a_lonely_server_is_tried_several_times(
    hosts: str, session_timeout_ms: int, tried: str
) -> None:
    assert _tries(hosts, session_timeout_ms) == tried


async def test_nonsense_address_is_named() -> None:
    with pytest.raises(CoordinationError, match=r"zookeeper\.connect=host:port:what"):
        await ZooKeeperSession("host:port:what", connection_timeout_ms=500).open()


@pytest.mark.parametrize(
    ("connect", "hosts", "full"),
    [
        ("h:1", "h:1", "/a/b"),
        ("h:1/", "h:1", "/a/b"),
        ("h:1,i:2/base", "h:1,i:2", "/base/a/b"),
        ("h:1/deep/base/", "h:1", "/deep/base/a/b"),
    ],
)
def test_chroot_is_cut_off_the_address(connect: str, hosts: str, full: str) -> None:
    session = ZooKeeperSession(connect)
    assert session._hosts == hosts
    assert session._full("/a/b") == full
    assert session._full("/") == (full.removesuffix("/a/b") or "/")
