"""Looks up the addresses of host names in threads, beside the loop.

A name server may take many seconds to answer. Each lookup has a thread of its own, and few run at a
time, so a slow lookup delays other lookups and nothing else. The threads are daemons: a stop of the
broker does not wait for them.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LOOKUPS_MAX: Final = 2
"""Most lookups at the same time."""


class Resolver:
    """Looks up addresses. The loop owns it; without a lookup it has no thread."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(LOOKUPS_MAX)
        """A slot per thread. If the caller is cancelled, its thread keeps the slot until it ends.
        """

    async def addresses(self, name: str) -> list[str]:
        """Return the addresses of a host, IPv4 before IPv6; an address is returned as it is, at
        once.
        Raises OSError if the name has no address, UnicodeError if it is not a valid name.
        """
        if is_address(name):
            return [name]
        await self._slots.acquire()
        try:
            lookup = _Lookup(name)
        except BaseException:
            self._slots.release()
            raise
        lookup.found.add_done_callback(lambda _: self._slots.release())
        return await asyncio.shield(lookup.found)


class _Lookup:
    """A lookup and its thread. Constant after construction."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self.found: asyncio.Future[list[str]] = self._loop.create_future()
        self.found.add_done_callback(_mark_retrieved)
        Thread(target=self._run, name="minibroker-resolver", daemon=True).start()

    def _run(self) -> None:
        """Do the lookup, on the thread, and hand the outcome to the loop."""
        try:
            entries = socket.getaddrinfo(self._name, None, type=socket.SOCK_STREAM)
        except Exception as error:  # the caller gets it, whatever it is
            self._tell(partial(self.found.set_exception, error))
            return
        entries.sort(key=lambda entry: entry[0] != socket.AF_INET)
        self._tell(partial(self.found.set_result, [str(entry[4][0]) for entry in entries]))

    def _tell(self, settle: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(settle)


def is_address(name: str) -> bool:
    """Return whether this is an IPv4 or IPv6 address in the usual form."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, name)
        except (OSError, ValueError):  # ValueError: a NUL, or a character outside ASCII
            continue
        return True
    return False


def _mark_retrieved(found: asyncio.Future[list[str]]) -> None:
    """Read the error, so that asyncio does not log it if the caller is gone."""
    found.exception()
