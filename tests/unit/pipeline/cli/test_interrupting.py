"""Ctrl-C of a command that runs."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from minibroker.pipeline.cli.interrupting import ctrl_c_sets, when_set


def test_the_first_ctrl_c_asks_and_the_second_one_ends() -> None:
    stop = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_sets(stop):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(60)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  it comes when Python looks
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_call_is_made_once_the_end_is_asked_for() -> None:
    stop, is_called = threading.Event(), threading.Event()
    with when_set(stop, is_called.set):
        assert not is_called.is_set()
        stop.set()
        assert is_called.wait(60)
