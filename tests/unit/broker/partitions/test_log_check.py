"""A check of the logs as it is made: idle, nothing armed, whatever kind it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from minibroker.broker.partitions.housekeeping import (
    CompactionCheck,
    FlushSchedule,
    LogCheck,
    RetentionCheck,
)


@pytest.mark.parametrize("kind", [CompactionCheck, FlushSchedule, RetentionCheck])
def test_a_new_check_arms_nothing(kind: type[LogCheck]) -> None:
    """Timers are asked for by `note_change` only: an idle broker has none."""
    part: Any = SimpleNamespace()
    check = kind(logs=part, dynamic=part, clock=part, timers=part, on_error=part)
    assert (check._timer, check._left, check._has_checked) == (None, None, False)
    assert not check._is_needed_again
