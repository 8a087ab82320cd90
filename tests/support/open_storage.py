"""Storage that a test leaves open: its handles, maps, locks and pinned files are closed behind it.

A test of storage often ends like a kill: nobody closes its logs. Their descriptors would stay with
the process of the tests, hundreds of them.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.log_directory import LogDirectory
from tests.support.faulty_files import FaultyFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Closer = Callable[[Any], object]

CLOSERS: dict[type, Closer] = {
    Disk: Disk.close,
    LogDirectory: LogDirectory.release,
    FaultyFiles: FaultyFiles.forget_pins,
}
"""The classes that hold descriptors, and the call that closes them; a second call does nothing."""


@contextmanager
def storage_closed() -> Iterator[None]:
    """Close at the end what this block makes and leaves open."""
    with ExitStack() as at_end:
        for kind, closer in CLOSERS.items():
            make = _maker(kind.__init__, closer, at_end)  # type: ignore[misc]
            at_end.enter_context(patch.object(kind, "__init__", make))
        yield


def _maker(original: Callable[..., None], closer: Closer, at_end: ExitStack) -> Callable[..., None]:
    """Return an `__init__` that also has the new object closed at the end."""

    def make(holder: object, *arguments: Any, **options: Any) -> None:
        original(holder, *arguments, **options)
        at_end.callback(closer, holder)

    return make
