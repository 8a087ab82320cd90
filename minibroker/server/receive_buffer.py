"""Where a connection's bytes arrive and lie until their requests are handled.

Before the first station of a request: the kernel writes behind `filled`, `connection.py` takes
frames (size int32, big-endian; then as many bytes) from `start` on and moves it as it goes.

    bytes of the buffer:   [0 ... start)   [start ... filled)      [filled ... size_bytes)
                           handled         whole frames, a part    room for the kernel

It grows towards an announced frame only as its bytes arrive, so a hostile size field costs nothing,
and falls back to its first size when a large frame has passed.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

BUFFER_BYTES: Final = 64 * 1024
"""First size of the buffer: many small requests, or one batch of a default producer."""
BUFFER_KEPT_BYTES_MAX: Final = 2 * 1024 * 1024
"""A buffer that grew beyond this is given back once its frame has passed."""
GROWTH_MAX: Final = 4
"""A buffer that is full of one frame grows at most so many times at once."""
FRAME_SIZE: Final = Struct(">i")
"""In front of every frame: how many bytes follow."""


class ReceiveBuffer:
    """Of one connection. Frames are slices of `view`; they are valid until `compact` or
    `make_room`."""

    __slots__ = ("filled", "size_bytes", "start", "view")

    def __init__(self) -> None:
        self.start = 0
        self.filled = 0
        self.size_bytes = BUFFER_BYTES
        self.view = memoryview(bytearray(BUFFER_BYTES))

    @property
    def is_full(self) -> bool:
        """Whether the kernel has no room left."""
        return self.filled == self.size_bytes

    def compact(self) -> None:
        """Every whole frame is handled: move a part of one to the front if it does not fit where it
        is; give a large buffer back when it is empty.
        """
        left = self.filled - self.start
        if left == 0:
            if self.size_bytes > BUFFER_KEPT_BYTES_MAX:
                self._replace(BUFFER_BYTES)
            self.start = self.filled = 0
        elif self.start and self.start + self._frame_bytes(left) > self.size_bytes:
            self._move_to_front(left)

    def make_room(self) -> None:
        """It is full in the middle of a frame: move the frame, or grow towards its end."""
        left = self.filled - self.start
        if self.start:
            self._move_to_front(left)
        else:
            self._replace(min(self._frame_bytes(left), self.size_bytes * GROWTH_MAX))

    def _frame_bytes(self, left: int) -> int:
        """Size of the unfinished frame, its size field included; `left` bytes of it are here."""
        if left < FRAME_SIZE.size:
            return FRAME_SIZE.size
        return FRAME_SIZE.size + int(FRAME_SIZE.unpack_from(self.view, self.start)[0])

    def _move_to_front(self, left: int) -> None:
        self.view[:left] = self.view[self.start : self.filled]
        self.start, self.filled = 0, left

    def _replace(self, size_bytes: int) -> None:
        left = self.filled - self.start
        view = memoryview(bytearray(size_bytes))
        view[:left] = self.view[self.start : self.filled]
        self.view = view
        self.size_bytes = size_bytes
        self.start, self.filled = 0, left
