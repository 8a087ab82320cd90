"""Version branches, newest first and only where something differs."""

from __future__ import annotations

from protocol_specs.codegen.ladder import indented, ladder, starts_of
from protocol_specs.codegen.spec import Range


def test_one_code_for_all_versions_needs_no_branch() -> None:
    assert ladder(Range(0, 9), {3, 5}, lambda _: ["x"]) == ["x"]


def test_two_codes_make_if_and_else() -> None:
    lines = ladder(Range(0, 9), {3}, lambda version: ["new" if version >= 3 else "old"])
    assert lines == ["if version >= 3:", "    new", "else:", "    old"]


def test_a_middle_range_makes_elif_and_an_empty_one_pass() -> None:
    lines = ladder(Range(0, 9), {3, 6}, lambda v: [] if 3 <= v < 6 else [f"from {v}"])
    assert lines == [
        "if version >= 6:",
        "    from 6",
        "elif version >= 3:",
        "    pass",
        "else:",
        "    from 0",
    ]


def test_nothing_in_old_or_in_new_versions() -> None:
    assert ladder(Range(0, 9), {3}, lambda v: ["x"] if v >= 3 else []) == [
        "if version >= 3:",
        "    x",
    ]
    assert ladder(Range(0, 9), {3}, lambda v: [] if v >= 3 else ["x"]) == [
        "if version < 3:",
        "    x",
    ]


def test_breaks_outside_the_scope_do_not_count() -> None:
    assert ladder(Range(4, 9), {3, 12}, lambda v: [str(v)]) == ["4"]


def test_edges_of_ranges() -> None:
    assert starts_of(Range(2, 4), None, Range(0, 1)) == {2, 5, 0}


def test_empty_lines_are_not_indented() -> None:
    assert indented(["a", ""]) == ["    a", ""]
