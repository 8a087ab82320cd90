"""The inter-broker protocols that ask the controller for a change of the ISR."""

from __future__ import annotations

import pytest

from minibroker.replication.isr_change import asks_controller


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("3.9-IV0", True),
        ("4.4", True),
        ("2.8", True),
        ("2.8-IV0", True),
        ("2.7", True),
        ("2.7-IV2", True),
        ("2.7-IV1", False),
        ("2.6", False),
        ("2.6-IV0", False),
        ("0.10.2.1", False),
    ],
)
def test_leaders_ask_since_2_7_iv2(protocol: str, expected: bool) -> None:
    assert asks_controller(protocol) is expected
