"""Announcements: read once each, read again after an error, removed when they are old."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.announcements import (
    EXPIRATION_MS,
    AnnouncementFollower,
    Announcements,
)
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import SessionEvent, ensure_node
from minibroker.kafka.errors import CoordinationError
from minibroker.rig.clock import MovableClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.cluster.announcements import Announcement
    from minibroker.broker.cluster.tree import Tree

PARENT = "/changes"
TIMEOUT_S = 20


class Reads:
    """The announcements that were read; the next read raises `failure`."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.failure: Exception | None = None
        self.was_read_whole = asyncio.Event()

    async def read(self, announcements: list[Announcement]) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        self.values.extend(value for _, value in announcements)

    async def read_all(self) -> None:
        self.was_read_whole.set()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
async def tree(tmp_path: Path, clock: MovableClock) -> AsyncIterator[Tree]:
    session = SharedTree(tmp_path / "metadata.db", clock).session()
    await session.open()
    await ensure_node(session, PARENT)
    yield session
    await session.close()


async def announce(tree: Tree, value: bytes) -> None:
    await tree.create(f"{PARENT}/change_", value, sequence=True)


async def test_each_announcement_is_read_once(tree: Tree, clock: MovableClock) -> None:
    announcements, reads = Announcements(tree, clock, PARENT), Reads()
    await announce(tree, b"before")
    await announcements.skip()
    for value in (b"first", b"second"):
        await announce(tree, value)
        await announcements.apply(reads.read)
        await announcements.apply(reads.read)
    assert reads.values == [b"first", b"second"]


async def test_an_announcement_is_new_after_a_failed_read(tree: Tree, clock: MovableClock) -> None:
    announcements, reads = Announcements(tree, clock, PARENT), Reads()
    await announce(tree, b"first")
    reads.failure = CoordinationError("out of reach")
    with pytest.raises(CoordinationError):
        await announcements.apply(reads.read)
    await announcements.apply(reads.read)
    assert reads.values == [b"first"]


async def test_an_old_announcement_is_removed_when_it_was_read(
    tree: Tree, clock: MovableClock
) -> None:
    announcements, reads = Announcements(tree, clock, PARENT), Reads()
    await announce(tree, b"first")
    clock.move(EXPIRATION_MS + 1)
    await announcements.apply(reads.read)
    assert len(await tree.children(PARENT)) == 1  # it was new
    await announcements.apply(reads.read)
    assert (reads.values, await tree.children(PARENT)) == ([b"first"], [])


@pytest.mark.parametrize("failure", [CoordinationError("out of reach"), RuntimeError("a bug")])
async def test_a_follower_reads_on_after_an_error_and_after_a_new_session(
    tree: Tree, clock: MovableClock, failure: Exception
) -> None:
    reads = Reads()
    log = logging.getLogger(__name__)
    follower = AnnouncementFollower(
        tree, clock, (PARENT,), read=reads.read, read_all=reads.read_all, log=log
    )
    await follower.start()
    reads.failure = failure
    await announce(tree, b"first")
    await eventually(lambda: reads.values == [b"first"])
    assert not reads.was_read_whole.is_set()
    follower._on_session(SessionEvent.RENEWED)
    async with asyncio.timeout(TIMEOUT_S):
        await reads.was_read_whole.wait()
    await follower.close()


async def test_a_session_that_is_new_while_everything_is_read_has_it_read_again(
    tree: Tree, clock: MovableClock
) -> None:
    reads: list[asyncio.Future[None]] = []

    async def read_all() -> None:
        reads.append(asyncio.get_running_loop().create_future())
        await reads[-1]

    log = logging.getLogger(__name__)
    follower = AnnouncementFollower(
        tree, clock, (PARENT,), read=Reads().read, read_all=read_all, log=log
    )
    await follower.start()
    follower._on_session(SessionEvent.RENEWED)
    await eventually(lambda: len(reads) == 1)
    follower._on_session(SessionEvent.RENEWED)
    reads[0].set_result(None)
    await eventually(lambda: len(reads) == 2)
    reads[1].set_exception(CoordinationError("out of reach"))
    await eventually(lambda: len(reads) == 3)
    await follower.close()


async def test_a_follower_reads_nothing_from_the_tree_of_another_cluster(
    tree: Tree, clock: MovableClock
) -> None:
    """ACLs and tokens stay as they are until the broker has stopped."""
    reads = Reads()
    log = logging.getLogger(__name__)
    await tree.create(paths.CLUSTER_ID, b"ours", make_parents=True)
    follower = AnnouncementFollower(
        tree, clock, (PARENT,), read=reads.read, read_all=reads.read_all, log=log
    )
    await follower.start()
    await tree.delete(paths.CLUSTER_ID)
    follower._on_session(SessionEvent.RENEWED)
    assert follower._task is not None
    async with asyncio.timeout(TIMEOUT_S):
        await follower._task
    assert not reads.was_read_whole.is_set()
    await announce(tree, b"foreign")
    await follower.close()
    assert reads.values == []
