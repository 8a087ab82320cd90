"""Standing watches made of ZooKeeper's one-shot watches.

A watch is armed again before its callbacks run: requests of one session are answered in order, so
a change after a callback's own read fires again. After a reconnection all are armed anew and
fire once, because a change may have been missed. The tree passes in all that it needs of kazoo.
"""

from __future__ import annotations

from asyncio import get_running_loop, sleep
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.tree import TreeError
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from minibroker.broker.cluster.tree import Cancel

    Key = tuple[str, bool]
    """Path, and whether its children are watched."""

FIRED_AT_ONCE: Final = 100
"""Watches that are armed, and called back, between two turns of others."""
REARM_DELAY_S: Final = 0.2
"""Pause before watches are armed again whose answer was late."""


class WatchSet:
    """All watches of one tree. Loop thread only, except `_Watch.on_event`.

    Args:
        read: starts the read of (path, whether of its children) that sets a one-shot watch.
        send: sends one call now; raises CoordinationError when there is no connection.
        call_many: sends the calls that it is given, path by path, a bounded number at a time, and
            waits for the answers; returns them in order, refusals as TreeError. Raises
            CoordinationError.
        hop: calls a function on the loop, from any thread.
    """

    def __init__(
        self,
        *,
        read: Callable[[str, bool, Callable[[Any], None]], Any],
        send: Callable[[Callable[[], Any]], Future[Any]],
        call_many: Callable[
            [Sequence[tuple[str, Callable[[], Any]]]], Coroutine[Any, Any, list[Any]]
        ],
        hop: Callable[..., None],
    ) -> None:
        self.read = read
        self._send = send
        self._call_many = call_many
        self.hop = hop
        self._watches: dict[Key, _Watch] = {}
        self._rearm_task: Task[None] | None = None

    async def add(self, key: Key, callback: Callable[[], None]) -> Cancel:
        """Watch one node or one node's children.

        Raises NoNode for the children of a missing node, CoordinationError.
        """
        (cancel,) = await self.add_many({key: callback})
        return cancel

    async def add_many(self, callbacks: Mapping[Key, Callable[[], None]]) -> list[Cancel]:
        """Watch all of these, or none; return the end of each watch, in order.

        Raises NoNode for the children of nothing, CoordinationError.
        """
        cancels = [self._register(key, callback) for key, callback in callbacks.items()]
        try:
            for answer in await self._arm([self._watches[key] for key in callbacks]):
                if isinstance(answer, TreeError):
                    raise answer
        except BaseException:
            for cancel in cancels:
                cancel()
            raise
        return cancels

    def _register(self, key: Key, callback: Callable[[], None]) -> Cancel:
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = _Watch(self, key)
        watch.callbacks.append(callback)

        def cancel() -> None:
            if callback in watch.callbacks:
                watch.callbacks.remove(callback)
            if not watch.callbacks and self._watches.get(key) is watch:
                del self._watches[key]

        return cancel

    async def _arm(self, watches: Sequence[_Watch]) -> list[Any]:
        """Set these one-shot watches; return the answers, refusals as TreeError."""
        return await self._call_many([(watch.key[0], watch.arm) for watch in watches])

    def fire_all(self) -> None:
        """Arm every watch after a reconnection, and tell everybody to look again."""
        if self._rearm_task is not None:
            self._rearm_task.cancel()
        self._rearm_task = get_running_loop().create_task(self._fire_all())

    async def _fire_all(self) -> None:
        watches = list(self._watches.values())
        for start in range(0, len(watches), FIRED_AT_ONCE):
            part = watches[start : start + FIRED_AT_ONCE]
            await self._arm_until_answered(part)
            for watch in part:
                for callback in list(watch.callbacks):
                    callback()

    async def _arm_until_answered(self, watches: Sequence[_Watch]) -> None:
        """Do `_arm`, again after each error: an answer may be late on a connection that stays. A
        new connection cancels this, and arms everything anew.
        """
        while True:
            try:
                await self._arm(watches)
                return
            except CoordinationError:
                await sleep(REARM_DELAY_S)

    def fire(self, watch: _Watch) -> None:
        """Arm one watch again, then call back."""
        if self._watches.get(watch.key) is not watch:
            return  # cancelled
        try:
            # Not awaited. It may fail: a children watch ends with its node (NoNode), and when the
            # connection drops everything is armed anew.
            self._send(watch.arm)
        except CoordinationError:
            return  # armed when the connection is back
        for callback in list(watch.callbacks):
            callback()

    def clear(self) -> None:
        """Forget all."""
        self._watches.clear()
        if self._rearm_task is not None:
            self._rearm_task.cancel()
            self._rearm_task = None


class _Watch:
    """The callbacks of one node or of one node's children, and its standing one-shot watch."""

    __slots__ = ("callbacks", "key", "owner")

    def __init__(self, owner: WatchSet, key: tuple[str, bool]) -> None:
        self.owner = owner
        self.key = key
        self.callbacks: list[Callable[[], None]] = []

    def arm(self) -> Any:
        """Start the read that sets the watch. kazoo keeps one per function: always `on_event`."""
        path, of_children = self.key
        return self.owner.read(path, of_children, self.on_event)

    def on_event(self, event: Any) -> None:  # kazoo's thread
        """Take an event of kazoo. Type NONE is a dropped connection, which the session tells of."""
        if event.type != "NONE":
            self.owner.hop(self.owner.fire, self)
