"""Several sessions with one embedded tree; `test_tree_contract` asks one of them everything."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster.context import ClusterContext
from minibroker.broker.cluster.image import MetadataImage
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.updates import ImageUpdater
from minibroker.broker.peers import PeerClient
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.peer_clients import LISTENER, image_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Send
    from minibroker.broker.cluster.shared import TreeSession
    from minibroker.broker.cluster.tree import Tree

    Sessions = tuple[TreeSession, TreeSession]


@pytest.fixture
async def sessions(tmp_path: Path) -> AsyncIterator[Sessions]:
    """Two open sessions."""
    home = SharedTree(tmp_path / "metadata.db", SystemClock())
    first, second = home.session(), home.session()
    await first.open()
    await second.open()
    yield first, second
    await first.close()
    await second.close()


async def test_a_session_takes_its_ephemeral_nodes_along(sessions: Sessions) -> None:
    first, second = sessions
    await first.create("/mine", ephemeral=True)
    await second.create("/yours", ephemeral=True)
    stat = await second.exists("/mine")
    assert stat is not None
    assert stat.ephemeral_owner == first.session_id != second.session_id
    await first.close()
    assert await second.exists("/mine") is None
    assert await second.exists("/yours") is not None


async def test_the_end_of_a_session_is_told_to_the_others(sessions: Sessions) -> None:
    first, second = sessions
    await first.create("/ids")
    await first.create("/ids/1", ephemeral=True)
    noticed = asyncio.Event()
    await second.watch_children("/ids", noticed.set)
    await first.abandon()
    await noticed.wait()
    assert await second.children("/ids") == []


async def test_a_session_that_is_over_hears_and_does_nothing(sessions: Sessions) -> None:
    first, second = sessions
    heard: list[str] = []
    await first.create("/node")
    await first.watch("/node", lambda: heard.append("first"))
    noticed = asyncio.Event()
    await second.watch("/node", noticed.set)
    await first.close()
    await second.set("/node", b"x")
    await noticed.wait()
    assert heard == []
    with pytest.raises(CoordinationError, match="the session with the metadata tree is over"):
        await first.get("/node")


async def test_lasting_nodes_are_there_for_the_next_sessions(tmp_path: Path) -> None:
    home = SharedTree(tmp_path / "metadata.db", SystemClock())
    session = home.session()
    await session.open()
    await session.create("/a/b", b"x", make_parents=True)
    await session.close()
    later = home.session()
    await later.open()
    assert (await later.get("/a/b"))[0] == b"x"
    await later.close()


async def test_a_session_that_is_held_hears_later(sessions: Sessions) -> None:
    first, second = sessions
    heard: list[str] = []
    await first.create("/node")
    await first.watch("/node", lambda: heard.append("first"))
    noticed = asyncio.Event()
    await second.watch("/node", noticed.set)
    first.hold(is_held=True)
    await second.set("/node", b"x")
    await noticed.wait()
    assert heard == []
    first.hold(is_held=False)
    assert heard == ["first"]


async def test_a_paused_session_goes_on_where_it_stopped(sessions: Sessions) -> None:
    """A read that begins within the pause sees what is there after it."""
    first, second = sessions
    await first.create("/node")
    first.pause(is_paused=True)
    reading = asyncio.create_task(first.get("/node"))
    await second.set("/node", b"x")
    assert not reading.done()
    first.pause(is_paused=False)
    assert (await reading)[0] == b"x"


async def test_calls_of_a_paused_session_fail_with_its_end(sessions: Sessions) -> None:
    """It had decided it in the session that is over; so it does where the broker is killed."""
    first, _ = sessions
    for end in (lambda: first.pause(is_paused=False), first.close):
        first.pause(is_paused=True)
        writing = asyncio.create_task(first.create("/mine", ephemeral=True))
        await asyncio.sleep(0)
        await first.lose_session()
        if (closing := end()) is not None:
            await closing
        with pytest.raises(CoordinationError, match="the session with the metadata tree is over"):
            await writing
        assert await sessions[1].exists("/mine") is None


async def test_a_lost_session_is_followed_by_another(sessions: Sessions) -> None:
    first, _ = sessions
    events: list[str] = []
    first.on_session(lambda event: events.append(event.name))
    await first.create("/mine", ephemeral=True)
    first_id = first.session_id
    await first.lose_session()
    assert (await first.exists("/mine"), events) == (None, ["EXPIRED", "RENEWED"])
    assert first.session_id > first_id
    first.hold(is_held=True)
    await first.lose_session()
    with pytest.raises(CoordinationError, match="the session with the metadata tree is over"):
        await first.get("/")
    assert len(events) == 2
    first.hold(is_held=False)
    assert len(events) == 4
    await first.create("/mine", ephemeral=True)


async def test_brokers_that_start_together_go_on_in_the_order_of_their_sessions(
    sessions: Sessions,
) -> None:
    first, second = sessions
    order: list[int] = []

    async def start(session: TreeSession) -> None:
        await session.wait_until_gathered()
        order.append(session.session_id)

    first._home.gather(2)
    late = asyncio.create_task(start(second))
    await asyncio.sleep(0)
    assert not late.done()
    await asyncio.gather(start(first), late)
    assert order == [first.session_id, second.session_id]
    await first.wait_until_gathered()  # later it waits for nobody


async def test_no_watch_is_called_when_all_stop(sessions: Sessions) -> None:
    first, second = sessions
    heard: list[str] = []
    await first.create("/node")
    await first.watch("/node", lambda: heard.append("first"))
    first._home.end_watches()
    await second.set("/node", b"x")
    await asyncio.sleep(0)
    assert heard == []


# The shared context: its lock orders writers and readers of the tree.


async def test_lock_lets_one_at_a_time_in(tree: Tree) -> None:
    context = ClusterContext(
        broker_id=1,
        tree=tree,
        updater=ImageUpdater(MetadataImage()),
        clock=SystemClock(),
        log=logging.getLogger(__name__),
    )
    order = []

    async def step(name: str) -> None:
        async with context.lock:
            order.append(f"{name} in")
            await context.tree.flush()
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(step("writer"), step("reader"))
    assert order == ["writer in", "writer out", "reader in", "reader out"]


# A look at requests to other brokers, from the client that sends them.


class Refusing:
    """Answers the first request itself and lets the others pass."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, Any]] = []

    async def call(self, broker_id: int, request: Any, send: Send) -> Any:
        self.requests.append((broker_id, request))
        return "own" if len(self.requests) == 1 else await send()


async def test_an_interceptor_answers_or_lets_a_request_pass() -> None:
    cluster = image_of({})
    cluster.peer_interceptor = interceptor = Refusing()
    client = PeerClient(cluster, listener=LISTENER, timeout_ms=30_000)
    request = MetadataRequest()
    assert await client.call(7, request, MetadataResponse) == "own"
    with pytest.raises(ConnectionError, match="broker 7 is not registered"):
        await client.call(7, request, MetadataResponse)
    assert interceptor.requests == [(7, request)] * 2
    await client.close()
