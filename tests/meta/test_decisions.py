"""The decisions: every entry has its date, the newest stands first, and the index has them all."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.meta.sources import ROOT

DECISIONS: Final = ROOT / "docs" / "decisions"
PAGES: Final = sorted(path.name for path in DECISIONS.glob("*.md") if path.name != "README.md")
ENTRY: Final = re.compile(r"^## (?P<heading>.+)\n\n(?:\*(?P<date>\d{4}-\d\d-\d\d))?", re.MULTILINE)
SECTION: Final = re.compile(r"^## \[.+\]\((?P<page>.+)\)\n\n(?P<lines>(?:- .+\n)+)", re.MULTILINE)


def index() -> dict[str, list[str]]:
    """Return the lines of the index, by page."""
    text = (DECISIONS / "README.md").read_text(encoding="utf-8")
    return {
        match["page"]: [line.removeprefix("- ") for line in match["lines"].splitlines()]
        for match in SECTION.finditer(text)
    }


def test_the_index_has_every_page() -> None:
    assert sorted(index()) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_the_index_has_the_entries_of_a_page_and_the_newest_is_the_first(page: str) -> None:
    entries = list(ENTRY.finditer((DECISIONS / page).read_text(encoding="utf-8")))
    assert index()[page] == [entry["heading"] for entry in entries]
    dates = [entry["date"] for entry in entries]
    assert None not in dates
    assert dates == sorted(dates, reverse=True)
