"""The places of slices: which bytes of which file an answer's records are.

    log_reads ──note──► SlicePlaces ──place_of──► server/direct_socket ──sendfile──► client

A Fetch is answered with slices of mapped files. Such a memoryview does not tell where in its file
it lies, and the system can send these bytes without a copy only from the file. So the place is
noted here beside the slice, by the slice's identity, as long as it is in use.

Source: Kafka FileRecords.writeTo (`transferTo`), whose records are a file and a range.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    Place = tuple[ref[memoryview], str, int]
    """The slice, the path of its file, and its position there, in bytes."""


class SlicePlaces:
    """The places of the slices that are in use. The loop notes and asks; a slice may be dropped on
    any thread.
    """

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}
        """By the identity of the slice."""

    def __len__(self) -> int:
        """Return the number of slices that are in use and lie in a file."""
        return len(self._places)

    def note(self, view: memoryview, path: str, position: int) -> None:
        """Remember that `view` shows the bytes of `path` from `position` on, until it is dropped
        or the file is forgotten.
        """
        key = id(view)
        self._places[key] = (ref(view, partial(self._drop, key)), path, position)

    def _drop(self, key: int, _slice: ref[memoryview]) -> None:
        """Forget a slice that nobody uses any more: its identity is free for another one."""
        self._places.pop(key, None)

    def place_of(self, view: object) -> tuple[str, int] | None:
        """Return the path and the position of a slice, None: it lies in no file, or no more."""
        place = self._places.get(id(view))
        return None if place is None or place[0]() is not view else place[1:]

    def forget(self, path: str) -> None:
        """Forget the places in a file that is cut, renamed or removed: other bytes may be there."""
        # A copy takes no step in which the collector could drop a slice; a list of items does.
        for key, place in self._places.copy().items():
            if place[1] == path:
                self._places.pop(key, None)
