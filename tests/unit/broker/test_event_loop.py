"""The loop that is asked for or there, and signals that wake it."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest
import uvloop

from minibroker.broker.event_loop import new_loop, on_signals


@pytest.mark.parametrize(
    ("name", "is_installed", "kind"),
    [
        ("auto", True, uvloop.Loop),
        ("auto", False, asyncio.SelectorEventLoop),
        ("uvloop", True, uvloop.Loop),
        ("asyncio", True, asyncio.SelectorEventLoop),
    ],
)
def test_the_loop_is_the_one_that_is_asked_for_or_there(
    name: str, is_installed: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_loop(name)
    assert isinstance(loop, kind)
    loop.close()


def test_uvloop_is_not_replaced_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with pytest.raises(ModuleNotFoundError):
        new_loop("uvloop")


class LoopWithoutSignals(asyncio.SelectorEventLoop):
    """As on Windows."""

    def add_signal_handler(self, *_: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("kind", [asyncio.SelectorEventLoop, LoopWithoutSignals])
def test_a_signal_wakes_the_loop(kind: type[asyncio.AbstractEventLoop]) -> None:
    """Nothing else does: no timer runs, and the signal comes while the loop waits."""
    old_handler = signal.getsignal(signal.SIGUSR1)
    calls: list[str] = []

    async def wait_for_signal() -> None:
        called = asyncio.Event()
        with on_signals((signal.SIGUSR1,), called.set):
            signal.raise_signal(signal.SIGUSR1)
            await called.wait()
            calls.append("once")
            called.clear()
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGUSR1)
            await called.wait()
            calls.append("again")

    with asyncio.Runner(loop_factory=kind) as runner:
        runner.run(wait_for_signal())
    assert calls == ["once", "again"]
    assert signal.getsignal(signal.SIGUSR1) == old_handler
