"""The table of releases as Python: its text runs and says what the facts say."""

from __future__ import annotations

from typing import Any

import pytest

from protocol_specs.codegen.emit_releases import releases_source

TABLE = {
    "releases": ["0.9.0", "1.0", "2.0", "3.0"],
    "apis": [
        {"key": 0, "api": "Produce", "since": {"0.9.0": "0-1", "2.0": "1-3"}},
        {"key": 56, "api": "Gone", "since": {"1.0": "0-0", "3.0": None}},
        {"key": 90, "api": "Never", "since": {}},
    ],
}


def run(table: dict[str, Any]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(releases_source(table), names)
    return names


def test_a_range_holds_until_the_next_one() -> None:
    served = run(TABLE)["served_by"]
    assert served("0.9.0") == {0: (0, 1)}
    assert served("1.0") == {0: (0, 1), 56: (0, 0)}
    assert served("2.0") == {0: (1, 3), 56: (0, 0)}


def test_an_api_that_was_taken_away_is_not_served() -> None:
    assert run(TABLE)["served_by"]("3.0") == {0: (1, 3)}


def test_advertised_from_changes_only_what_is_told() -> None:
    table = dict(TABLE)
    table["apis"] = [
        {
            "key": 0,
            "api": "Produce",
            "since": {"0.9.0": "0-1", "2.0": "2-3"},
            "advertised_from": {"2.0": 0},
        }
    ]
    names = run(table)
    assert names["served_by"]("2.0") == {0: (2, 3)}
    assert names["advertised_by"]("2.0") == {0: (0, 3)}
    assert names["advertised_by"]("1.0") == {0: (0, 1)}


def test_releases_out_of_order_are_refused() -> None:
    table = {
        "releases": ["1.0", "2.0"],
        "apis": [{"key": 0, "api": "Produce", "since": {"2.0": "0-1", "1.0": "0-0"}}],
    }
    with pytest.raises(ValueError, match="Produce: releases are not in order"):
        releases_source(table)
