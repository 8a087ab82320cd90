"""Directories and switches of check-log."""

from __future__ import annotations

import pytest

from minibroker.broker.config.options import UsageError
from minibroker.tools.check_arguments import parse_check_log


def test_directories_and_switches() -> None:
    arguments = parse_check_log(["a/", "--deep", "b", "--json"])
    assert arguments.directories == ["a", "b"]
    assert (arguments.is_deep, arguments.is_json) == (True, True)
    assert (arguments.is_quiet, arguments.is_strict) == (False, False)
    assert parse_check_log(["/"]).directories == ["/"]


@pytest.mark.parametrize("words", [[], ["--deep"], ["a", "--fix"], ["a", "--json=1"]])
def test_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_check_log(words)
