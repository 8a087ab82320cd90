"""The bytes of a connection until their requests are handled.

Before the first station of a request: the kernel writes to `room()`, `connection.py` takes frames
(size int32, big-endian; then as many bytes) from `start` on and moves it as it goes.

    bytes of the buffer:   [0 ... start)   [start ... filled)      [filled ... size_bytes)
                           handled         whole frames, a part    room for the kernel

A connection that holds no bytes has no buffer: `request_memory` offers one for each read. Most
often all frames of a read are handled before anybody else reads. So the buffer is only lent at
first, and there is nothing to give back; a connection that keeps bytes takes it. A buffer grows
towards an announced frame only as its bytes arrive, so a hostile size field costs nothing.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.broker.server.request_memory import BUFFER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.server.request_memory import RequestMemory

GROWTH_MAX: Final = 4
"""A buffer that is full of one frame grows at most so many times at once."""
FRAME_SIZE: Final = Struct(">i")
"""In front of every frame: how many bytes follow."""
_NONE: Final = memoryview(b"")


class ReceiveBuffer:
    """The buffer of one connection.

    Frames are slices of `view`; they are valid until `compact`, `room` or `abandon`.
    Afterwards another connection may read into the same memory. `compact` or `keep` has to follow
    `note_received` before another connection reads.
    """

    __slots__ = (
        "_go_on",
        "_had_large_frames",
        "_is_lent",
        "_memory",
        "_reserved_bytes",
        "end",
        "ends_early",
        "is_bounded",
        "lacks_memory",
        "size_bytes",
        "start",
        "view",
    )

    def __init__(self, memory: RequestMemory, go_on: Callable[[], None]) -> None:
        """`go_on` is called when there is memory again after `lacks_memory`."""
        self._memory = memory
        self._go_on = go_on
        self._had_large_frames = False
        self._is_lent = False
        """True while the buffer is among the spare ones, too; nothing is reserved for it."""
        self._reserved_bytes = 0
        self.view = _NONE
        self.start = self.end = self.size_bytes = 0
        self.ends_early = False
        """True once somebody met a frame at `start` that is not here to its end; until bytes come.
        """
        self.lacks_memory = False
        """Nothing more may be read: the memory for requests is used up."""
        self.is_bounded = True
        """False where requests are read even if the memory is used up: the controller's."""

    @property
    def is_full(self) -> bool:
        """Return whether the kernel has no room left in the buffer that is held."""
        return self.end == self.size_bytes and self.size_bytes > 0

    def room(self) -> memoryview:
        """Return where the kernel may write; `note_received` has to follow the write at once."""
        if not self.size_bytes:
            return self._memory.offer(is_large=self._had_large_frames)
        self._take()
        if self.end == self.size_bytes:
            self._make_room()
        return self.view[self.end :]

    def note_received(self, size_bytes: int) -> None:
        """Note that the kernel wrote so many bytes into `room`."""
        if not self.size_bytes:
            self.view = self._memory.offered_view
            self.size_bytes = len(self.view)
            self._is_lent = True
        self.end += size_bytes
        self.ends_early = False

    def compact(self) -> None:
        """Give the buffer back if every frame is handled; else make room for the rest of a frame.

        The part of the frame moves to where the rest fits behind it; memory for the rest is
        reserved.
        """
        unhandled_bytes = self.end - self.start
        if unhandled_bytes == 0:
            if self._is_lent:  # most often; nothing is reserved then
                self._had_large_frames = self.end > BUFFER_BYTES
                self._is_lent = False
                self.view = _NONE
                self.start = self.end = self.size_bytes = 0
            elif self.size_bytes:
                self._had_large_frames = self.end > BUFFER_BYTES
                self._memory.give_back(self.view)
                self._forget()
            return
        self._take()
        frame_bytes = self._frame_bytes(unhandled_bytes)
        if frame_bytes <= BUFFER_BYTES < self.size_bytes:
            self._memory.give_back(self._replace(self._memory.take(BUFFER_BYTES, BUFFER_BYTES)))
        elif self.start and self.start + frame_bytes > self.size_bytes:
            self._move_to_front(unhandled_bytes)
        self._reserve(max(self.size_bytes, frame_bytes))
        if self.lacks_memory and self.size_bytes > unhandled_bytes:
            self._memory.give_back(self._replace(memoryview(bytearray(unhandled_bytes))))

    def ask_again(self) -> None:
        """Go on if there is enough memory by now; called when some has come back."""
        self.compact()
        if not self.lacks_memory:
            self._go_on()

    def keep(self) -> None:
        """Count the bytes of frames that are not handled yet as memory in use."""
        self._take()
        if self._reserved_bytes < self.size_bytes:
            self._memory.free -= self.size_bytes - self._reserved_bytes
            self._reserved_bytes = self.size_bytes

    def abandon(self) -> None:
        """Let go of the memory of a connection that is gone. It is not used again: a request may be
        in hand.
        """
        self._take()
        self._forget()

    def _take(self) -> None:
        """Hold the buffer for longer than until another connection reads."""
        if self._is_lent:
            self._is_lent = False
            self._memory.take_lent(self.view)

    def _forget(self) -> None:
        self.view = _NONE
        self.start = self.end = self.size_bytes = 0
        if self._is_lent:
            self._is_lent = False
            return
        if self.lacks_memory:
            self.lacks_memory = False
            self._memory.unmute(self.ask_again)
        if self._reserved_bytes:
            self._memory.release(self._reserved_bytes)
            self._reserved_bytes = 0

    def _reserve(self, size_bytes: int) -> None:
        """Reserve `size_bytes` in place of the earlier size; set `lacks_memory` if none is free."""
        if size_bytes == self._reserved_bytes:
            return
        memory = self._memory
        if self._reserved_bytes:
            memory.release(self._reserved_bytes)
        if memory.reserve(size_bytes, is_bounded=self.is_bounded):
            self._reserved_bytes = size_bytes
            if self.lacks_memory:
                self.lacks_memory = False
                memory.unmute(self.ask_again)
        else:
            self._reserved_bytes = 0
            self.lacks_memory = True
            memory.mute(self.ask_again)

    def _make_room(self) -> None:
        """Move the frame in whose middle the buffer is full, or grow towards its end."""
        unhandled_bytes = self.end - self.start
        if self.start:
            self._move_to_front(unhandled_bytes)
            return
        frame_bytes = self._frame_bytes(unhandled_bytes)
        growth = max(self.size_bytes * GROWTH_MAX, BUFFER_BYTES)
        outgrown = self._replace(self._memory.take(frame_bytes, min(frame_bytes, growth)))
        if len(outgrown) == BUFFER_BYTES:  # a step of growth is of no size that is needed again
            self._memory.give_back(outgrown)

    def _frame_bytes(self, unhandled_bytes: int) -> int:
        """Return the size of the unfinished frame, its size field included; `unhandled_bytes` of it
        are in the buffer.
        """
        if unhandled_bytes < FRAME_SIZE.size:
            return FRAME_SIZE.size
        return FRAME_SIZE.size + int(FRAME_SIZE.unpack_from(self.view, self.start)[0])

    def _move_to_front(self, unhandled_bytes: int) -> None:
        self.view[:unhandled_bytes] = self.view[self.start : self.end]
        self.start, self.end = 0, unhandled_bytes

    def _replace(self, view: memoryview) -> memoryview:
        """Move the unhandled bytes to another buffer; return the old one."""
        unhandled_bytes = self.end - self.start
        view[:unhandled_bytes] = self.view[self.start : self.end]
        old_view, self.view = self.view, view
        self.size_bytes = len(view)
        self.start, self.end = 0, unhandled_bytes
        return old_view
