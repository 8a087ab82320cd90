"""The world of scenarios: its time is moved by commands, so no slice of work ends by real time."""

from __future__ import annotations

import pytest

from minibroker.broker import slices

ENDLESS_S = 3600.0


@pytest.fixture(autouse=True)
def endless_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let work in slices end in its first slice, however busy the machine is."""
    monkeypatch.setattr(slices, "SLICE_S", ENDLESS_S)
