"""Waits for bytes on sockets and pipes: of one broker, of many, of a process that starts."""

from __future__ import annotations

import select
from collections.abc import Iterable
from typing import Protocol


class HasDescriptor(Protocol):
    """A socket, or an object around one."""

    def fileno(self) -> int:
        """Return the descriptor."""


def is_any_readable(sockets: Iterable[HasDescriptor | int], wait_s: float = 0.0) -> bool:
    """Return whether one of the sockets has bytes, or its end, after at most so many seconds.

    A socket may be given by its descriptor; on Unix it may be one of a pipe or a terminal.
    """
    if not hasattr(select, "poll"):  # Windows, whose select() takes any descriptor
        return bool(select.select(list(sockets), [], [], wait_s)[0])  # noqa: TID251
    # Not select(): a process with more than 1,024 open files has larger descriptors.
    look = select.poll()
    for each in sockets:
        look.register(each, select.POLLIN)
    return bool(look.poll(wait_s * 1000))
