"""Several brokers that share a process: started together, stopped together, one metadata tree.

They need no ZooKeeper: the tree is one file, and each broker has a session with it
(`cluster.shared`). They differ from brokers of several processes in three ways:

- Each waits until all are registered. So nobody leads alone what another one has.
- Every partition begins a new leader epoch. After a power cut, a follower may have records that its
  leader lost. By the epoch it notices, and cuts its log (KIP-101).
- When they stop, no broker takes over from another. So leaders and in-sync replicas are at the next
  start what they were.

`members` are `app.Broker`s, or nodes of `testing` that have one each.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.broker.app import CLUSTER_FILE
from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import decode_state, encode_state
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import Set
from minibroker.broker.slices import TimeSlice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from minibroker.broker.config.topic_option import TopicToCreate
    from minibroker.clock import Clock

STATE_DEPTH: Final = paths.partition_state("t", 0).count("/")
"""Slashes in the path of a partition's state."""
STATES_AT_ONCE: Final = 25
"""Partition states in one transaction of the tree: half a millisecond of the loop."""


class Member(Protocol):
    """One broker of the cluster."""

    @property
    def failure(self) -> asyncio.Future[str]: ...

    @property
    def address(self) -> tuple[str, int]: ...

    async def start(self, topics: Sequence[TopicToCreate] = ()) -> None: ...

    async def stop(self, *, hands_over: bool = True) -> None: ...


class LocalCluster:
    """Brokers between `start` and `stop`. Owned by the loop."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        """`directory`: where the tree is. It has to exist at `start`."""
        # Constant after construction.
        self.tree = SharedTree(directory / CLUSTER_FILE, clock)
        """Each broker is made with a session of this tree."""
        self.members: list[Member] = []
        """In the order of their ids; filled before `start`."""
        self.failure: asyncio.Future[str]
        """Done with the reason when one of them cannot go on; then `stop` is due."""

    async def start(self, topics: Sequence[TopicToCreate] = ()) -> None:
        """Start all brokers; each knows all others when this returns.

        Raises MinibrokerError with one sentence for the user; then nothing is left running.
        """
        self.failure = asyncio.get_running_loop().create_future()
        await self.tree.open()
        tasks: list[asyncio.Task[None]] = []
        try:
            await begin_epochs(self.tree)
            self.tree.gather(len(self.members))
            async with asyncio.TaskGroup() as group:
                for member in self.members:
                    start_steps = member.start(() if tasks else topics)
                    tasks.append(group.create_task(start_steps))
        except BaseException as error:
            self.tree.end_watches()
            for member, task in zip(self.members, tasks, strict=False):
                if not task.cancelled() and task.exception() is None:
                    await member.stop()
            await self.tree.close()
            if isinstance(error, BaseExceptionGroup):
                # The others were cancelled; the first error is the reason.
                raise error.exceptions[0] from None
            raise
        for member in self.members:
            member.failure.add_done_callback(self._failed)

    def _failed(self, failure: asyncio.Future[str]) -> None:
        if not failure.cancelled() and not self.failure.done():
            self.failure.set_result(failure.result())

    async def stop(self) -> None:
        """Stop all brokers, and raise the first MinibrokerError when all have stopped.

        They stop side by side: each ends its fetches before the others close their connections.
        """
        self.tree.end_watches()
        stop_steps = (member.stop(hands_over=False) for member in self.members)
        outcomes = await asyncio.gather(*stop_steps, return_exceptions=True)
        await self.tree.close()
        for error in outcomes:
            if error is not None:
                raise error


async def begin_epochs(home: SharedTree) -> None:
    """Raise the leader epoch of each partition. Call it before the brokers start.

    Raises CoordinationError.
    """
    tree = home.tree
    turn = TimeSlice()
    states = [path for path in await tree.subtree(paths.TOPICS) if path.count("/") == STATE_DEPTH]
    for start in range(0, len(states), STATES_AT_ONCE):
        part = states[start : start + STATES_AT_ONCE]
        operations = []
        for path, value in zip(part, await tree.get_many(part), strict=True):
            if value is not None:
                state = decode_state(path, value[0])
                new_state = state._replace(leader_epoch=state.leader_epoch + 1)
                operations.append(Set(path, encode_state(new_state)))
        await tree.multi(operations)
        if turn.is_over:
            await turn.pause()
