"""The ZooKeeper home without a server. With one: `test_tree_contract.py`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.tree import SessionEvent
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.broker.cluster.zookeeper_session import (
    PIPELINE_MAX,
    ZooKeeperSession,
    forget_session,
    load_session,
    save_session,
)
from minibroker.kafka.errors import CoordinationError
from tests.support.in_process import TIMEOUT_S
from tests.support.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def test_everything_is_refused_at_once_before_opening() -> None:
    tree = ZooKeeperTree("127.0.0.1:1")
    calls: list[SessionEvent] = []
    tree.on_session(calls.append)
    assert tree.session_id == 0
    for operation in (
        tree.get("/a"),
        tree.get_many(["/a"]),
        tree.exists("/a"),
        tree.set("/a", b""),
        tree.delete("/a"),
        tree.children("/a"),
        tree.create("/a"),
        tree.watch("/a", lambda: None),
    ):
        with pytest.raises(CoordinationError, match="cannot be reached now"):
            await operation
    await tree.close()
    assert calls == []


def test_kazoo_is_imported_by_opening_only() -> None:
    """Start-up of a broker with the embedded home does not pay for it."""
    code = "import sys, minibroker.broker.cluster.zookeeper; sys.exit('kazoo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# A session with ZooKeeper without a server: addresses, time-outs, paths below a chroot.


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "127.0.0.1:{port}/chroot", "no.invalid:1"])
async def test_wrong_address_is_one_sentence_in_time(address: str) -> None:
    session = ZooKeeperSession(address.format(port=free_port()), connection_timeout_ms=500)
    with pytest.raises(CoordinationError, match=r"no answer from ZooKeeper at .* within 500 ms"):
        async with asyncio.timeout(TIMEOUT_S):
            await session.open()
    await session.close()


async def test_port_that_never_answers_is_one_sentence_in_time() -> None:
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        session = ZooKeeperSession(f"127.0.0.1:{port}", connection_timeout_ms=500)
        with pytest.raises(CoordinationError, match="within 500 ms"):
            async with asyncio.timeout(TIMEOUT_S):
                await session.open()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


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


async def test_calls_in_flight_are_bounded_and_answered_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = ZooKeeperSession("127.0.0.1:1")
    unanswered: list[asyncio.Future[str]] = []
    most = 0

    def send(start: Callable[[], str]) -> asyncio.Future[str]:
        nonlocal most
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        unanswered.append(future)
        most = max(most, len(unanswered))
        path = start()

        def answer() -> None:
            unanswered.remove(future)
            future.set_result(path)

        loop.call_soon(loop.call_soon, answer)
        return future

    monkeypatch.setattr(session, "_send", send)
    names = [str(number) for number in range(3 * PIPELINE_MAX + 1)]
    answers = await session._call_many([(name, partial(str, name)) for name in names])
    assert answers == names
    assert 1 < most <= PIPELINE_MAX


# The saved ZooKeeper session: kept, replaced, private, and ignored when broken.


@pytest.mark.parametrize("session_id", [1, 2**62, -(2**62)])
def test_session_is_kept_and_replaced(tmp_path: Path, session_id: int) -> None:
    path = tmp_path / "session"
    save_session(path, 7, b"old")
    save_session(path, session_id, bytes(range(16)))
    assert load_session(path) == (session_id, bytes(range(16)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["session"]


def test_session_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "session"
    save_session(path, 7, b"x")
    forget_session(path)
    forget_session(path)
    assert load_session(path) is None


@pytest.mark.parametrize("data", [b"", b"1", b"x y", b"1 2 3", b"1 zz", b"\xff 00"])
def test_broken_file_is_no_session(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "session"
    path.write_bytes(data)
    assert load_session(path) is None
