"""Standing watches made of ZooKeeper's one-shot watches.

A watch is armed again before its callbacks run: requests of one session are answered in order, so
what changes after a callback's own read fires again. After a reconnection all are armed anew and
fire once, for what may have been missed. Knows kazoo by what the tree passes in only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.errors import CoordinationError

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Coroutine

    from minibroker.cluster.tree import Cancel


class WatchSet:
    """All watches of one tree. Loop thread only, except `_Watch.on_event`.

    Args:
        read: starts the read of (path, whether of its children) that sets a one-shot watch.
        send: sends what it is given now; raises CoordinationError when there is no connection.
        call: the same, and waits for the answer.
        hop: calls a function on the loop, from any thread.
    """

    def __init__(
        self,
        *,
        read: Callable[[str, bool, Callable[[Any], None]], Any],
        send: Callable[[Callable[[], Any]], Future[Any]],
        call: Callable[[str, Callable[[], Any]], Coroutine[Any, Any, Any]],
        hop: Callable[..., None],
    ) -> None:
        self.read = read
        self._send = send
        self._call = call
        self.hop = hop
        self._watches: dict[tuple[str, bool], _Watch] = {}

    async def add(self, key: tuple[str, bool], callback: Callable[[], None]) -> Cancel:
        """Watch (path, whether its children). Raises NoNode for the children of nothing."""
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = _Watch(self, key)
        watch.callbacks.append(callback)

        def cancel() -> None:
            if callback in watch.callbacks:
                watch.callbacks.remove(callback)
            if not watch.callbacks and self._watches.get(key) is watch:
                del self._watches[key]

        try:
            await self._call(key[0], watch.arm)
        except BaseException:
            cancel()
            raise
        return cancel

    def fire_all(self) -> None:
        """The connection is back: arm everything, and tell everybody to look again."""
        for watch in list(self._watches.values()):
            self.fire(watch)

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
        """Something happened; type NONE is a dropped connection, which the session tells of."""
        if event.type != "NONE":
            self.owner.hop(self.owner.fire, self)
