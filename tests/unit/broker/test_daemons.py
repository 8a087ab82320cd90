"""Work on a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from minibroker.broker.daemons import in_daemon

TIMEOUT_S = 60

NEVER_ENDS = """
import asyncio, threading
from minibroker.broker.daemons import in_daemon

async def main():
    begun = threading.Event()
    def wait_for_ever():
        begun.set()
        threading.Event().wait()
    in_daemon(wait_for_ever, "waits")
    begun.wait()

asyncio.run(main())
"""


async def test_the_result_or_the_error_comes_back_to_the_loop() -> None:
    assert await in_daemon(lambda: threading.current_thread().name, "named") == "named"

    def fail() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        await in_daemon(fail, "fails")


async def test_a_caller_that_is_gone_gets_nothing() -> None:
    may_end, ended = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        assert may_end.wait(TIMEOUT_S)
        loop.call_soon_threadsafe(ended.set)
        raise ValueError("nobody hears this")

    found = in_daemon(work, "late")
    found.cancel()
    may_end.set()
    async with asyncio.timeout(TIMEOUT_S):
        await ended.wait()
    await asyncio.sleep(0)
    assert found.cancelled()


def test_a_process_ends_without_it() -> None:
    command = [sys.executable, "-c", NEVER_ENDS]
    assert subprocess.run(command, timeout=TIMEOUT_S, check=False).returncode == 0
