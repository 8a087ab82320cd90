"""`Desk`: the shared part of all connections of a proxy: rules, names of topics, onlookers.

    Link ─► Desk.note(Seen) ─► decoded if somebody looks on ─► RequestLog, printed lines, recording

Belongs to the loop. `proxy.KafkaProxy` makes the one desk of a proxy.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import TYPE_CHECKING, Final

from minibroker.clock import SystemClock
from minibroker.kafka.protocol.api_keys import (
    FETCH,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from minibroker.proxy.codec import has_short_lists
from minibroker.proxy.frames import SIZE_BYTES
from minibroker.proxy.limits import SHOWN_HEAD_BYTES, SMALL_BYTES, UNREAD_MAX
from minibroker.rig.faults import FaultSet
from minibroker.trace.decode import Frames, decode
from minibroker.trace.subject import TopicNames, learn_names

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from minibroker.kafka.protocol.message import Message
    from minibroker.proxy.heads import RequestHead
    from minibroker.proxy.pending import Pending
    from minibroker.rig.faults import Fault
    from minibroker.trace.exchange import Exchange

_LOGINS: Final = (SASL_HANDSHAKE, SASL_AUTHENTICATE)


class Desk:
    """The shared part of all connections of one proxy."""

    def __init__(self) -> None:
        self.faults = FaultSet()
        self.names: TopicNames = {}
        """Topic id → name, as far as answers of Metadata told it."""
        self.onlookers: list[Callable[[Exchange], None]] = []
        """Get each exchange, until one raises OSError. Without one no frame is decoded for its
        content."""
        self.on_event: Callable[[str], None] = lambda _: None
        """Gets a sentence about a connection: unreadable bytes, a broker that cannot be reached."""
        self.on_expect: Callable[[], object] = bool
        """Called while somebody looks on, when a request begins to wait for its answer."""
        self.clock = SystemClock()
        self.run: Callable[[Coroutine[None, None, None]], None] = self._run_in_task
        """Runs work beside what calls it."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._unread: deque[tuple[Frames, int, int | None]] = deque()
        """Exchanges that wait for one that takes long to decode, which is the first."""
        self._numbers = itertools.count(1)
        self.connection_numbers = itertools.count(1)
        self._releases: dict[Fault, list[Callable[[], None]]] = {}
        """Rule → the calls that go on when it is removed."""

    @property
    def is_watched(self) -> bool:
        """Return whether somebody looks on."""
        return bool(self.onlookers)

    @property
    def is_quiet(self) -> bool:
        """Return whether nobody looks on, and there is no rule."""
        return self.faults.is_empty and not self.onlookers

    def may_meet(self, head: RequestHead) -> bool:
        """Return whether a rule may meet a request, as far as its head says."""
        return not self.faults.is_empty and any(
            _may_meet(fault, head.api_key) for fault in self.faults
        )

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the topic of an id, None while no answer told it."""
        return self.names.get(topic_id)

    def learn(self, api_key: int, answer: Message) -> None:
        """Keep the names of topics in an answer of Metadata."""
        if api_key == METADATA:
            learn_names(answer, self.names)

    def wait(self, fault: Fault, go_on: Callable[[], None]) -> None:
        """Call `go_on` when the rule is removed."""
        self._releases.setdefault(fault, []).append(go_on)

    def forget(self, fault: Fault, go_on: Callable[[], None]) -> None:
        """Do not call it any more: its connection has ended."""
        waiting = self._releases.get(fault, [])
        if go_on in waiting:
            waiting.remove(go_on)

    def release(self, fault: Fault) -> None:
        """End a rule; what it holds goes on."""
        self.faults.discard(fault)
        for go_on in self._releases.pop(fault, ()):
            go_on()

    def note(self, frames: Frames, request_bytes: int, answer_bytes: int | None) -> None:
        """Show an exchange to the onlookers. The sizes are those before long frames were cut.

        A long list in it is decoded beside the loop, and exchanges behind it wait: they are shown
        in their order.
        """
        frames = frames._replace(number=next(self._numbers))
        if not self._unread and _is_quick(frames):
            self._show(decode(frames, self.names), request_bytes, answer_bytes)
            return
        if len(self._unread) >= UNREAD_MAX:
            frames = frames._replace(request=frames.request[:SHOWN_HEAD_BYTES], answer=None)
        self._unread.append((frames, request_bytes, answer_bytes))
        if len(self._unread) == 1:
            self.run(self._read())

    def describe(self, pending: Pending) -> str:
        """Return the subject of a request that waits for its answer; nothing where its frame is not
        here as a whole, or takes long to decode. A frame is decoded once.
        """
        if pending.subject is None:
            pending.subject = ""
            if pending.frame is not None and pending.is_whole:
                request = pending.frame[SIZE_BYTES:]
                frames = Frames(0, 0, "", "", pending.at_ms, None, request, None)
                if _is_quick(frames):
                    pending.subject = decode(frames, self.names).subject
        return pending.subject

    async def _read(self) -> None:
        """Decode and show what waits."""
        while self._unread:
            frames, request_bytes, answer_bytes = self._unread[0]
            if _is_quick(frames):
                exchange = decode(frames, self.names)
            else:
                exchange = await asyncio.to_thread(decode, frames, self.names)
            self._unread.popleft()
            self._show(exchange, request_bytes, answer_bytes)

    def _show(self, exchange: Exchange, request_bytes: int, answer_bytes: int | None) -> None:
        exchange = exchange._replace(request_bytes=request_bytes, answer_bytes=answer_bytes)
        for show in list(self.onlookers):
            try:
                show(exchange)
            except OSError as error:  # a full disk, or a reader of the output that has ended
                self.onlookers.remove(show)
                self.on_event(f"a part of the output ends here, it cannot be written: {error}")

    def _run_in_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Show what is not shown yet."""
        await asyncio.gather(*self._tasks)


def _is_quick(frames: Frames) -> bool:
    """Return whether frames are decoded in less than a millisecond: they are short, or records are
    most of them.
    """
    if len(frames.request) + len(frames.answer or b"") <= SMALL_BYTES:
        return True
    has_records = int.from_bytes(frames.request[:2]) in (PRODUCE, FETCH)
    return has_records and has_short_lists(frames.request, frames.answer)


def _may_meet(fault: Fault, api_key: int) -> bool:
    if fault.login is not None:
        return api_key in _LOGINS
    if fault.broker is not None:
        return fault.hold
    return fault.concerns(api_key)
