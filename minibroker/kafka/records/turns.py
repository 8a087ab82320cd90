"""Turns for other threads in long loops: `let_others_run`, and `in_turns` around a sequence.

Python takes the interpreter from a thread where it calls, or goes on with, an interpreted function.
A loop of compiled modules calls none, so the loop of the broker would wait until a worker had
checked a million records. Loops over records, headers and entries call this module now and then. It
is never compiled; in the pure package it changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Item = TypeVar("Item")

TURN: Final = 0x3F
"""A loop over records gives way where these bits of its index are 0: every 30 µs at most."""


def let_others_run() -> None:
    """Do nothing. The call is what counts: other threads may run meanwhile."""


def in_turns(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items. Other threads may run before each of them."""
    for item in items:  # noqa: UP028  `yield from` would not come back here
        yield item
