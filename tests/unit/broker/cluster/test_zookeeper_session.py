"""A session with ZooKeeper without a server: addresses, time-outs, paths below a chroot.

With one: `tests/integration/test_zookeeper_outage.py`.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.zookeeper_session import PIPELINE_MAX, ZooKeeperSession
from minibroker.kafka.errors import CoordinationError
from tests.support.in_process import TIMEOUT_S
from tests.support.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Callable


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
