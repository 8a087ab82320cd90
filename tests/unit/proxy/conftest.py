"""Every test of this folder runs on both loops: uvloop, which serves, and asyncio's own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Makes the loop of the test."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
