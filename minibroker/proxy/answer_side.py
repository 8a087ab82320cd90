"""`AnswerSide`: the answers of one connection, on their way from Kafka to the client.

    frame ─► the request that it answers ─► nobody looks into it: passes, as it comes
                                       └─► whole ─► addresses · errors of rules ─► bytes of rules

Answers that the proxy gives itself leave in their turn. An answer with the address of a broker for
which nobody listens yet waits until somebody does, and those behind it with it.
"""

from __future__ import annotations

import asyncio
import time
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, FETCH, METADATA, PRODUCE
from minibroker.proxy import codec
from minibroker.proxy.addresses import (
    ADDRESSES,
    addressed_parts,
    has_addresses,
    hide_hint,
    may_have_hint,
    rewrite,
)
from minibroker.proxy.frames import SIZE_BYTES, FrameCutter, FrameWay
from minibroker.proxy.kinds import AnswerWay
from minibroker.proxy.limits import (
    HINTED_BYTES_MAX,
    LOOKED_AT_BYTES_MAX,
    PENDING_MAX,
    SHOWN_BYTES_MAX,
    SHOWN_HEAD_BYTES,
    SMALL_BYTES,
)
from minibroker.proxy.pending import Pending, PendingQueue, correlation_of
from minibroker.rig.message_places import give_error, merge
from minibroker.trace.decode import Frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.proxy.addresses import Address
    from minibroker.proxy.desk import Desk
    from minibroker.proxy.heads import RequestHead
    from minibroker.proxy.wire import DueCall, Wire

_SHORTEST: Final = 4
"""Bytes of an answer: its correlation id."""
_FRAME_START: Final = Struct(">ii")
"""Size and correlation id."""
_PASSES: Final = AnswerWay.PASSES
_PIECES_PER_S: Final = 20
"""Pieces of an answer that a rule slows down."""
_TAIL_BYTES: Final = 64 << 10
"""The end of an answer that is too large to be collected: the address of a leader is within."""


class Changing(NamedTuple):
    """An answer on its way to its new bytes."""

    pending: Pending
    head: RequestHead
    frame: bytes
    answer: Any
    """The message in the frame, None for one that cannot be read."""
    is_long: bool = False
    """Its lists are too long for the loop."""


class AnswerSide:
    """The answers of one connection. Belongs to the loop."""

    def __init__(self, desk: Desk, wire: Wire) -> None:
        self._desk = desk
        self._wire = wire
        self.cutter = FrameCutter(self)
        self.queue = PendingQueue()
        self.make_room: Callable[[], None] = lambda: None
        """Called when the queue is short again after it was full."""
        self._idle: asyncio.Event | None = None
        """Set when the queue has become empty, and when a hold of the requests has ended. None
        while nobody waits for that.
        """
        self.watches_end = False
        self._is_full = False
        self._own_count = 0
        """Answers of the proxy's own in the queue."""
        self._passing: tuple[Pending, int, bytes] | None = None
        """The request whose answer passes, the answer's size, and its first bytes; for onlookers.
        """
        self._tail: bytearray | None = None
        """The last bytes of an answer that passes and may have an address at its end."""
        self._is_raw = False
        self._has_told_stray = False
        self._timer: DueCall | None = None
        self._has_ended = False

    def be_raw(self) -> None:
        """Pass everything from now on: the client's requests cannot be read."""
        self._is_raw = True

    @property
    def is_busy(self) -> bool:
        """Return whether an answer is still to come, or on its way."""
        return bool(self.queue) or self.cutter.is_passing or self.cutter.is_held

    async def next_idle(self) -> None:
        """Wait until this may be idle."""
        self._idle = asyncio.Event()
        self.watches_end = self.watches_end or self.cutter.is_passing
        await self._idle.wait()

    def tell_idle(self) -> None:
        """Wake `next_idle`."""
        if self._idle is not None:
            self._idle.set()
            self._idle = None

    # The order of answers.

    def expect(self, pending: Pending) -> None:
        """Put a request at the end of the queue."""
        self.queue.append(pending)
        if self._desk.is_watched:
            self._desk.on_expect()
        if pending.is_own:
            self._own_count += 1
            if self.cutter.is_passing:
                self.watches_end = True
            elif not self.cutter.is_held:
                self._flush_own()

    def be_full(self) -> None:
        """Tell when the queue is short again."""
        self._is_full = True

    def note_unanswered(self, pending: Pending) -> None:
        """Show a request that gets no answer."""
        self._show(pending, None, None)

    def _flush_own(self) -> None:
        """Send the proxy's own answers whose turn it is."""
        while self.queue and self.queue[0].is_own and not self.cutter.is_held:
            pending = self.queue.popleft()
            self._own_count -= 1
            if pending.own_answer is None:
                self._show(pending, None, None)
                self._end(pending)
            else:
                self._send(pending, pending.own_answer)
        self._tell_room()

    def _tell_room(self) -> None:
        if not self.queue:
            self.tell_idle()
        if self._is_full and len(self.queue) < PENDING_MAX // 2:
            self._is_full = False
            self.make_room()

    # The cutter calls these.

    def skim(self, data: bytes, at: int) -> int:
        """Do `FrameSide.skim`: answers pass in which nobody waits for anything."""
        if self._own_count or self._is_raw:
            return at
        queue, end = self.queue, len(data)
        while queue and end - at >= _FRAME_START.size:
            pending = queue[0]
            size, correlation_id = _FRAME_START.unpack_from(data, at)
            if correlation_id != pending.correlation_id or size < _SHORTEST:
                break
            frame_end = at + SIZE_BYTES + size
            if pending.way is not _PASSES and _may_change(pending, data, at, frame_end):
                break
            queue.popleft()
            at = frame_end
        if self._is_full or self._idle is not None:
            self._tell_room()
        return at

    def judge(self, size: int, data: bytes, at: int) -> FrameWay:
        """Do `FrameSide.judge`."""
        if self._is_raw:
            return FrameWay.RAW
        if size < _SHORTEST:
            self._desk.on_event(
                f"{self._wire.broker_address} sent bytes that are no frame (a size of {size}): "
                "they pass"
            )
            return FrameWay.RAW
        if len(data) - at < _SHORTEST:
            return FrameWay.MORE
        pending = self.queue.match(correlation_of(data, at), self.note_unanswered)
        if pending is None:
            self._tell_stray()
            return FrameWay.PASS
        if self._is_looked_at(pending, size):
            return FrameWay.WHOLE
        self.queue.popleft()
        self._begin_passing(pending, size, data, at)
        return FrameWay.PASS

    def _tell_stray(self) -> None:
        """Say once that Kafka answers what nobody asked: it may do so for ever."""
        if not self._has_told_stray:
            self._has_told_stray = True
            self._desk.on_event(
                f"{self._wire.broker_address} sent an answer that nobody waits for: it passes, and "
                "so do others on this connection"
            )

    def _is_looked_at(self, pending: Pending, size: int) -> bool:
        if size > LOOKED_AT_BYTES_MAX:
            return False
        head = pending.head
        if pending.fault is not None or (head is not None and head.api_key == API_VERSIONS):
            return True
        if head is not None and has_addresses(head.api_key, head.version):
            return not ADDRESSES[head.api_key].is_hint or size <= HINTED_BYTES_MAX
        return self._desk.is_watched and size <= SHOWN_BYTES_MAX

    def _begin_passing(self, pending: Pending, size: int, data: bytes, at: int) -> None:
        head = pending.head
        if head is not None and has_addresses(head.api_key, head.version):
            self._tail = bytearray() if ADDRESSES[head.api_key].is_hint else None
        if self._desk.is_watched:
            self._passing = (pending, size, data[at : at + SHOWN_HEAD_BYTES])
        has_own = bool(self.queue) and self.queue[0].is_own
        self.watches_end = has_own or self._tail is not None or self._passing is not None
        self._tell_room()

    def pass_on(self, data: bytes) -> None:
        """Do `FrameSide.pass_on`."""
        if self._tail is None:
            self._wire.to_client(data)
            return
        self._tail += data
        if len(self._tail) > _TAIL_BYTES:
            self._wire.to_client(bytes(self._tail[:-_TAIL_BYTES]))
            del self._tail[:-_TAIL_BYTES]

    def end_passing(self) -> None:
        """Do `FrameSide.end_passing`."""
        if self._tail is not None:
            hide_hint(self._tail)
            tail, self._tail = bytes(self._tail), None
            self._wire.to_client(tail)
        if self._passing is not None:
            pending, size, start = self._passing
            self._passing = None
            self._show(pending, start, size)
        self.watches_end = False
        self._flush_own()

    def take(self, frame: bytes) -> None:
        """Do `FrameSide.take`."""
        pending = self.queue.popleft()
        head = pending.head
        if head is None or not self._is_changed(pending, head, frame):
            self._send(pending, frame)
        elif len(frame) > SMALL_BYTES and head.api_key not in (FETCH, PRODUCE):
            self._change_beside(pending, head, frame)
        else:
            try:
                answer = codec.read_short_answer(head, frame)
            except codec.LongMessageError:
                self._change_beside(pending, head, frame)
            else:
                if answer is not None:
                    self._desk.learn(head.api_key, answer)
                self._change(Changing(pending, head, frame, answer))
        if not self.cutter.is_held:
            self._flush_own()

    @staticmethod
    def _is_changed(pending: Pending, head: RequestHead, frame: bytes) -> bool:
        """Return whether the content of the answer may have to change."""
        fault = pending.fault
        if pending.failed is not None or (fault is not None and fault.error is not None):
            return True
        if head.api_key == API_VERSIONS:
            return True
        if not has_addresses(head.api_key, head.version):
            return False
        return not ADDRESSES[head.api_key].is_hint or may_have_hint(head.api_key, frame)

    # The content.

    def _change_beside(self, pending: Pending, head: RequestHead, frame: bytes) -> None:
        """Decode a large answer beside the loop; the connection is held until it is sent."""
        self._hold()
        self._wire.run(self._change_later(pending, head, frame))

    async def _change_later(self, pending: Pending, head: RequestHead, frame: bytes) -> None:
        def read() -> Any:
            answer = codec.read_answer(head, frame)
            if answer is not None:
                self._desk.learn(head.api_key, answer)
            return answer

        answer = await asyncio.to_thread(read)
        self._go_on(Changing(pending, head, frame, answer, is_long=True))

    def _go_on(self, changing: Changing) -> None:
        """Take the next step with an answer for which the connection was held."""
        self.cutter.is_held = False
        self._change(changing)
        self._resume_unless_held()

    def _change(self, changing: Changing) -> None:
        """Write addresses and errors into an answer, and send it."""
        api_key, answer = changing.head.api_key, changing.answer
        if answer is None:
            self._send(changing.pending, changing.frame)
            return
        own_addresses: dict[Address, Address] = {}
        if has_addresses(api_key, changing.head.version):
            addresses = [(part.host, part.port) for part in addressed_parts(api_key, answer)]
            unknown = [each for each in addresses if self._wire.own_address(each) is None]
            if unknown:
                self._hold()
                self._wire.run(self._change_when_open(changing, unknown))
                return
            self._note_addresses(api_key, answer, addresses)
            own_addresses = {each: self._wire.own_address(each) or each for each in addresses}
        if changing.is_long:
            self._hold()
            self._wire.run(self._send_later(changing, own_addresses))
        else:
            self._send(changing.pending, self._changed(changing, own_addresses))

    async def _send_later(self, changing: Changing, own_addresses: dict[Address, Address]) -> None:
        frame = await asyncio.to_thread(self._changed, changing, own_addresses)
        self.cutter.is_held = False
        self._send(changing.pending, frame)
        self._resume_unless_held()

    def _note_addresses(self, api_key: int, answer: Any, addresses: list[Address]) -> None:
        """Say which brokers there are."""
        if api_key == METADATA:
            self._wire.note_brokers(
                {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
            )
        else:
            self._wire.note_addresses(addresses)

    async def _change_when_open(self, changing: Changing, unknown: list[Any]) -> None:
        await self._wire.open_addresses(unknown)
        self._go_on(changing)

    def _changed(self, changing: Changing, own_addresses: dict[Address, Address]) -> bytes:
        """Return the frame with the error of a rule and the proxy's addresses. It changes the
        answer alone, so a long one is changed beside the loop.
        """
        pending, head, answer = changing.pending, changing.head, changing.answer
        is_changed = self._fail(pending, answer)
        if head.api_key == API_VERSIONS:
            is_changed = _narrow(answer) or is_changed
        elif own_addresses:
            is_changed = rewrite(head.api_key, answer, own_addresses.__getitem__) or is_changed
        if not is_changed:
            return changing.frame
        return codec.write_answer(head, pending.correlation_id, answer)

    def _fail(self, pending: Pending, answer: Any) -> bool:
        """Put the error of a rule into an answer; return whether there is one."""
        if pending.failed is not None:
            merge(answer, pending.failed)
            return True
        fault = pending.fault
        if fault is None or fault.error is None:
            return False
        whole = fault.topic is None and fault.partition is None
        give_error(answer, fault.error, fault.covers, self._desk.name_of, whole=whole)
        return True

    # The bytes.

    def _send(self, pending: Pending, frame: bytes) -> None:
        """Send an answer as its rule says."""
        fault = pending.fault
        if fault is None:
            self._wire.to_client(frame)
            self._show(pending, frame[SIZE_BYTES:], len(frame) - SIZE_BYTES)
        elif fault.drop is not None:
            self._show(pending, None, None)
            self._end(pending)
        else:
            data = frame if fault.truncate_bytes is None else frame[: fault.truncate_bytes]
            self._show(pending, data[SIZE_BYTES:], max(len(data) - SIZE_BYTES, 0))
            data *= 2 if fault.twice else 1
            if fault.truncate_bytes is not None:
                pending.closes = True
            if fault.bytes_per_s is not None:
                self._hold()
                self._send_slowly(pending, data, fault.bytes_per_s)
                return
            self._wire.to_client(data)
        if pending.closes:
            self._end(pending)

    def _send_slowly(self, pending: Pending, rest: bytes, bytes_per_s: int) -> None:
        """Send a piece now and the others later; go on behind the last."""
        self._timer = None
        piece_bytes = max(bytes_per_s // _PIECES_PER_S, 1)
        piece, rest = rest[:piece_bytes], rest[piece_bytes:]
        self._wire.to_client(piece)
        delay_s = len(piece) / bytes_per_s
        if rest:
            self._timer = self._wire.later(
                delay_s, lambda: self._send_slowly(pending, rest, bytes_per_s)
            )
        elif pending.closes:
            self._end(pending)
        else:
            self.cutter.is_held = False
            self._resume_unless_held()

    def _end(self, pending: Pending) -> None:
        self._has_ended = True
        self.cutter.is_held = True
        reason = "" if pending.fault is None else f": {pending.fault.effect}"
        self._wire.end(f"a rule ended the connection{reason}")

    def _hold(self) -> None:
        self.cutter.is_held = True
        self._wire.read_kafka(is_on=False)

    def _resume_unless_held(self) -> None:
        """Go on with what waits, unless it waits for something else now."""
        if self.cutter.is_held or self._has_ended:
            return
        self._flush_own()
        if not self.cutter.is_held:
            self.cutter.resume()
        if not self.cutter.is_held:
            self._wire.read_kafka(is_on=True)

    def close(self) -> None:
        """Forget what waits, and show requests that got no answer."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        while self.queue:
            self._show(self.queue.popleft(), None, None)

    def _show(self, pending: Pending, answer: bytes | None, size: int | None) -> None:
        """Show the onlookers a request and its answer, None for one without."""
        if not self._desk.is_watched or pending.frame is None:
            return
        duration_ms = (time.perf_counter_ns() - pending.started_ns) / 1_000_000
        frames = Frames(
            number=0,
            connection=self._wire.number,
            client_address=self._wire.client_address,
            broker=self._wire.broker_address,
            at_ms=pending.at_ms,
            duration_ms=None if answer is None else duration_ms,
            request=pending.frame[SIZE_BYTES:],
            answer=answer,
            fault=None if pending.fault is None else pending.fault.effect,
            is_token=pending.is_token,
        )
        self._desk.note(frames, pending.request_bytes, size)


def _may_change(pending: Pending, data: bytes, at: int, end: int) -> bool:
    """Return whether an answer may have to change, also where it is not whole yet."""
    head = pending.head
    if pending.way is AnswerWay.READ or head is None or end > len(data):
        return True
    return may_have_hint(head.api_key, data, at, end)


def _narrow(answer: Any) -> bool:
    """Lower the newest version of each API whose addresses this program could not rewrite; return
    whether there was one.
    """
    is_changed = False
    for key in answer.api_keys:
        if key.api_key in ADDRESSES and key.max_version > APIS[key.api_key].max_version:
            key.max_version = APIS[key.api_key].max_version
            is_changed = True
    return is_changed
