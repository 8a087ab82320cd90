"""The words of `make proxy-suites`: tests that are equal, unsteady or differ."""

from __future__ import annotations

import pytest

from tests.clients.comparison import Results, unlike, verdict


def results_of(result: str | None) -> Results:
    """Return the results of a suite with one test, None: it did not run."""
    return {"test": result} if result else {}


@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        (("PASS", "PASS"), [], None),
        (("PASS", "FAIL"), [("PASS", "PASS")] * 3, "steadied"),
        (("FAIL", "PASS"), [("PASS", "PASS")] * 3, "steadied"),
        (("PASS", "FAIL"), [("FAIL", "FAIL")] * 3, "steadied"),
        (("PASS", "FAIL"), [("FAIL", "PASS"), ("PASS", "PASS")], "unsteady"),
        (("FAIL", "PASS"), [("PASS", "FAIL"), ("PASS", "PASS")], "unsteady"),
        (("PASS", "FAIL"), [("PASS", "FAIL"), ("PASS", "PASS")], "differing"),
        (("PASS", "FAIL"), [], "differing"),
        (("PASS", None), [("PASS", None)] * 3, "differing"),
    ],
)
def test_a_test_is_judged_by_its_later_runs(
    first: tuple[str, str | None], later: list[tuple[str, str | None]], kind: str | None
) -> None:
    (directly, through), *repeats = [
        (results_of(one_side), results_of(other_side)) for one_side, other_side in (first, *later)
    ]
    row = verdict(directly, through, repeats)
    for name in ("steadied", "unsteady", "differing"):
        assert list(getattr(row, name)) == (["test"] if name == kind else [])
    assert row.equal == (0 if kind in {"unsteady", "differing"} else 1)
    assert row.passed == (1 if first[0] == "PASS" else 0)


def test_tests_of_one_side_alone_are_unlike() -> None:
    assert unlike({"a": "PASS", "b": "PASS"}, {"a": "PASS", "c": "PASS"}) == ["b", "c"]
