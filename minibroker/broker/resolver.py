"""Looks up the addresses of host names in threads, beside the loop.

A name server may take many seconds to answer. Each lookup has a thread of its own, and few run at a
time, so a slow lookup delays other lookups and nothing else. The threads are daemons: a stop of the
broker does not wait for them.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Final

from minibroker.client.daemons import in_daemon

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
        """Return the addresses of a host, IPv4 before IPv6; an address is returned at once. It may
        stand in brackets, as for Java.
        Raises OSError if the name has no address, UnicodeError if it is not a valid name.
        """
        address = name.strip("[]")
        if is_address(address):
            return [address]
        await self._slots.acquire()
        try:
            lookup = in_daemon(partial(_look_up, name), "minibroker-resolver")
        except BaseException:
            self._slots.release()
            raise
        lookup.add_done_callback(lambda _: self._slots.release())
        return await asyncio.shield(lookup)


def _look_up(name: str) -> list[str]:
    """Return the addresses of a name, IPv4 first. Blocks. Raises OSError, UnicodeError."""
    entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    entries.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return [str(entry[4][0]) for entry in entries]


def is_address(name: str) -> bool:
    """Return whether this is an IPv4 or IPv6 address in the usual form."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, name)
        except (OSError, ValueError):  # ValueError: a NUL, or a character outside ASCII
            continue
        return True
    return False
