"""The memory that requests lie in until they are handled: buffers, and how much there may be.

Shared by all connections of a broker, owned by the loop. A connection that holds no bytes holds no
buffer: the kernel reads into the buffer that is offered next, and most often its requests are
handled before any other connection reads. So the buffer stays among the spare ones meanwhile. A
connection that needs the bytes for longer takes it (`receive_buffer`).

`queued.max.request.bytes` bounds the memory, as Kafka's pool does it. A request is granted its
whole size while any memory is free, so that a request that has begun can end. When no memory is
free, no more is read than the size of the next request, and its connection is muted until memory
comes back.

Source: Kafka SimpleMemoryPool (not strict), Selector.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

BUFFER_BYTES: Final = 64 * 1024
"""First size of a buffer: many small requests, or one batch of a default producer."""
SPARE_BYTES_MAX: Final = 8 * 1024 * 1024
"""The spare buffers together have at most so many bytes."""
SIZE_BYTES: Final = 4
"""The size in front of each request: all that is read where memory is used up."""
_NO_LIMIT: Final = 1 << 62
_PRIVATE_MAP: Final[dict[str, Any]] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
)
"""No memory of a child of this process, where the system has such."""


class RequestMemory:
    """The memory for requests of one broker."""

    __slots__ = (
        "_call_soon",
        "_is_waking",
        "_large",
        "_mute_calls",
        "_spare",
        "_spare_bytes",
        "free",
        "offered_view",
    )

    def __init__(self, max_bytes: int, call_soon: Callable[[Callable[[], None]], object]) -> None:
        """Take `max_bytes`, `queued.max.request.bytes` (0 or less: no limit), and the loop's
        `call_soon`.
        """
        self.free = max_bytes if max_bytes > 0 else _NO_LIMIT
        """Bytes that may still be reserved; below zero by one request at most, as in Kafka, and by
        what was read already."""
        self._call_soon = call_soon
        self._spare: list[memoryview] = []
        """Buffers of `BUFFER_BYTES`. The last one is offered next: its memory is warm."""
        self._large: list[memoryview] = []
        """Memory that connections with large frames gave back, the last one at the end."""
        self._spare_bytes = 0
        """Size of both kinds together."""
        self.offered_view = memoryview(b"")
        """The buffer of the read that is under way, or of the last one."""
        self._mute_calls: dict[Callable[[], None], None] = {}
        """Called when memory is back, in this order: each asks again for what it needs."""
        self._is_waking = False

    # Buffers.

    def offer(self, *, is_large: bool) -> memoryview:
        """Return the buffer of the next read, `offered_view` until the next call. It stays spare
        until `take_lent`. With `is_large` it is a large one, if there is one."""
        if self.free <= 0:
            self.offered_view = memoryview(bytearray(SIZE_BYTES))
        elif is_large and self._large:
            self.offered_view = self._large[-1]
        else:
            if not self._spare:
                self._spare.append(memoryview(bytearray(BUFFER_BYTES)))
                self._spare_bytes += BUFFER_BYTES
            self.offered_view = self._spare[-1]
        return self.offered_view

    def take_lent(self, view: memoryview) -> None:
        """Let a buffer that was offered belong to the caller: it is not spare any more."""
        spare = self._spare if len(view) == BUFFER_BYTES else self._large
        for place in reversed(range(len(spare))):
            if spare[place] is view:
                del spare[place]
                self._spare_bytes -= len(view)
                return

    def take(self, wanted_bytes: int, new_bytes: int) -> memoryview:
        """Return the smallest spare buffer of at least `wanted_bytes`, or else a new one of
        `new_bytes`."""
        spare = self._spare if wanted_bytes <= BUFFER_BYTES else self._large
        sizes = [len(view) for view in spare]
        large_enough = [size_bytes for size_bytes in sizes if size_bytes >= wanted_bytes]
        if not large_enough:
            return _new_buffer(new_bytes)
        size_bytes = min(large_enough)
        self._spare_bytes -= size_bytes
        return spare.pop(sizes.index(size_bytes))

    def give_back(self, view: memoryview) -> None:
        """Keep a buffer that is used no more, if there is room among the spare ones."""
        size_bytes = len(view)
        if size_bytes >= BUFFER_BYTES and self._spare_bytes + size_bytes <= SPARE_BYTES_MAX:
            (self._spare if size_bytes == BUFFER_BYTES else self._large).append(view)
            self._spare_bytes += size_bytes

    # How much.

    def reserve(self, size_bytes: int, *, is_bounded: bool = True) -> bool:
        """Reserve memory for a request of this size; return whether it may be read.

        A request that is not bounded may always be read; it counts, too.
        """
        if is_bounded and self.free <= 0:
            return False
        self.free -= size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        """Give back reserved bytes; muted connections ask again in the next turn of the loop."""
        self.free += size_bytes
        if self._mute_calls and self.free > 0 and not self._is_waking:
            self._is_waking = True
            self._call_soon(self._wake)

    def mute(self, ask_again: Callable[[], None]) -> None:
        """Call `ask_again` when memory has come back."""
        self._mute_calls[ask_again] = None

    def unmute(self, ask_again: Callable[[], None]) -> None:
        """Forget `ask_again`: the connection has its memory, or is gone."""
        self._mute_calls.pop(ask_again, None)

    def _wake(self) -> None:
        self._is_waking = False
        for ask_again in list(self._mute_calls):
            if self.free <= 0:
                return
            ask_again()


def _new_buffer(size_bytes: int) -> memoryview:
    """Return a buffer; a large one is a map of its own, so the system gets it back when it goes."""
    if size_bytes <= BUFFER_BYTES:
        return memoryview(bytearray(size_bytes))
    return memoryview(mmap.mmap(-1, size_bytes, **_PRIVATE_MAP))
