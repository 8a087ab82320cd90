"""The rows that a command line of the benchmarks chooses."""

from __future__ import annotations

import pytest

from benchmarks.choices import Choices, row_parser

ROWS = ("start", "raw", "load")


def test_no_row_is_all_rows() -> None:
    options = row_parser("benchmarks.thing", ROWS).parse_args([])
    assert (options.rows, options.quick) == (list(ROWS), False)


def test_rows_stand_as_they_are_chosen() -> None:
    options = row_parser("benchmarks.thing", ROWS).parse_args(["load", "raw", "--quick"])
    assert (options.rows, options.quick) == (["load", "raw"], True)


def test_an_unknown_row_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        row_parser("benchmarks.thing", ROWS).parse_args(["raw", "lode"])
    assert "'lode' is none of start, raw, load" in capsys.readouterr().err


def test_names_with_commas_come_in_the_order_of_the_list() -> None:
    assert Choices(ROWS)("load,start") == ["start", "load"]
