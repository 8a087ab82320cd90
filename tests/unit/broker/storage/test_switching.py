"""Threads that wait for the interpreter get it sooner, as long as somebody asks for that."""

from __future__ import annotations

import sys

import pytest

from minibroker.broker.storage.tasks import SWITCH_S, quick_switches


def test_threads_switch_quickly_until_the_last_one_has_ended() -> None:
    before_s = sys.getswitchinterval()
    with quick_switches():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        with quick_switches():
            assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
    assert sys.getswitchinterval() == pytest.approx(before_s)
