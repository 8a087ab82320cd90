"""`FrameCutter`: the frames in one direction of a connection, without its socket.

    bytes ─► FrameCutter ─► FrameSide.skim    frames that are known to pass, in one go
                         ─► FrameSide.judge   a verdict on each other frame, by its first bytes
                    PASS ──► FrameSide.pass_on   untouched, as they come, however large
                    WHOLE ─► FrameSide.take      the frame alone, once all of it is here
                    RAW ───► FrameSide.pass_on   this and all that follows

A frame that passes is never collected, so a frame of 100 MB takes no memory. Several that pass go
on in one piece, as they came. A side may hold the cutter: what comes then waits, and the owner
stops to read.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, Protocol

SIZE: Final = Struct(">i")
SIZE_BYTES: Final = 4


class FrameWay(IntEnum):
    """The way of a frame."""

    PASS = 0
    WHOLE = 1
    MORE = 2
    """More of its first bytes are needed. Only for a frame that is not whole yet."""
    RAW = 3


class FrameSide(Protocol):
    """The owner of a cutter: decides on frames, and takes them."""

    watches_end: bool
    """True while the end of a frame that passes matters."""

    def skim(self, data: bytes, at: int) -> int:
        """Return the position behind the frames from `at` on that are known to pass; `at` for none.

        The last one may end behind `data`: the rest of it passes, too.
        """

    def judge(self, size: int, data: bytes, at: int) -> FrameWay:
        """Return the way of the frame of `size` bytes, of which the bytes from `at` on are here."""

    def take(self, frame: bytes) -> None:
        """Take a whole frame, with its size in front."""

    def pass_on(self, data: bytes) -> None:
        """Send bytes on that nobody looks at."""

    def end_passing(self) -> None:
        """Note the end of a frame that passed, all of which was passed on; for `watches_end`."""


class FrameCutter:
    """Belongs to the loop, as its side does."""

    __slots__ = ("_is_raw", "_needed", "_passing_bytes", "_rest", "_side", "is_held")

    def __init__(self, side: FrameSide) -> None:
        self._side = side
        """Constant."""
        self._rest = bytearray()
        """Bytes that could not be judged yet, or were held."""
        self._needed = 0
        """Bytes in `_rest` without which another look says nothing new."""
        self._passing_bytes = 0
        """Bytes of a frame that passes and are still to come."""
        self._is_raw = False
        self.is_held = False
        """True while the side keeps the next frame from being looked at."""

    @property
    def is_passing(self) -> bool:
        """Return whether a frame that passes has begun and is not whole."""
        return self._passing_bytes > 0

    @property
    def rest_bytes(self) -> int:
        """Return the number of bytes that wait here."""
        return len(self._rest)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream, and give frames to the side."""
        if not (self._rest or self.is_held or self._passing_bytes or self._is_raw):
            # The usual bytes: whole frames, all of which pass.
            at = self._side.skim(data, 0)
            if at >= len(data):
                self._passing_bytes = at - len(data)
                self._side.pass_on(data)
                return
            self._cut(data, at)
            return
        if self._rest or self.is_held:
            self._rest += data
            if self.is_held or len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        if self._is_raw:
            self._side.pass_on(data)
        else:
            self._cut(data)

    def resume(self) -> None:
        """Look at what waits, after a hold."""
        self.is_held = False
        self._needed = 0
        if self._rest:
            self.feed(b"")

    def flush(self) -> None:
        """Pass on a frame that is not whole and never will be: the sender has ended."""
        rest = bytes(self._rest)
        self._rest.clear()
        if rest:
            self._side.pass_on(rest)

    def _cut(self, data: bytes, at: int = 0) -> None:
        """Take frames from `at` on; what lies before has passed and is not sent yet."""
        end = len(data)
        begin = 0
        while at < end:
            if self._passing_bytes:
                begin, at = self._pass_along(data, begin, at)
                continue
            if self.is_held:
                break
            frames_end = self._side.skim(data, at)
            if frames_end > at:
                self._passing_bytes = max(frames_end - end, 0)
                at = min(frames_end, end)
                continue
            if end - at < SIZE_BYTES:
                self._needed = SIZE_BYTES
                break
            (size,) = SIZE.unpack_from(data, at)
            way = self._side.judge(size, data, at + SIZE_BYTES)
            if way is FrameWay.PASS:
                at += SIZE_BYTES
                self._passing_bytes = size
                continue
            if way is FrameWay.RAW:
                self._is_raw = True
                at = end
                break
            frame_end = at + SIZE_BYTES + size
            if way is FrameWay.MORE or frame_end > end:
                # Of a frame that is judged again, each byte may be the one that was missing.
                self._needed = SIZE_BYTES + size if way is FrameWay.WHOLE else end - at + 1
                break
            if begin < at:
                self._side.pass_on(data[begin:at])
            self._side.take(data[at:frame_end])
            begin = at = frame_end
        if begin < at:
            self._side.pass_on(data[begin:at] if begin or at < end else data)
        if at < end:
            self._rest += data[at:]

    def _pass_along(self, data: bytes, begin: int, at: int) -> tuple[int, int]:
        """Return `begin` and `at` behind what is here of the frame that passes."""
        step = min(self._passing_bytes, len(data) - at)
        at += step
        self._passing_bytes -= step
        if self._passing_bytes or not self._side.watches_end:
            return begin, at
        self._side.pass_on(data[begin:at])
        self._side.end_passing()
        return at, at
