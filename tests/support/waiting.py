"""Waits for conditions without an event: asks again and again, with a deadline."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

from tests.support.in_process import TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 0.01


async def eventually(condition: Callable[[], Any]) -> None:
    """Let the loop go on until `condition` holds."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110  what the loop does next is not an event of ours
            await asyncio.sleep(0)


def wait_until(holds: Callable[[], bool], condition: str, seconds: float = TIMEOUT_S) -> None:
    """Ask every 10 ms until `holds()` is true. Raises AssertionError, which names `condition`.

    It blocks its thread. For a process that may end meanwhile see `ManagedProcess.wait_until`.
    """
    deadline = monotonic() + seconds
    pause = threading.Event()
    while not holds():
        assert monotonic() < deadline, f"not so after {seconds:g} s: {condition}"
        pause.wait(PAUSE_S)
