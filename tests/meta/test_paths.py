"""Files and folders that pages and docstrings name from the top of the repository exist."""

from __future__ import annotations

import re

from tests.meta.sources import ROOT, assert_none, name_of, sources

TOP = ("benchmarks", "docs", "examples", "minibroker", "protocol_specs", "tests")
FILE = re.compile(rf"(?<![\w/.-])(?:{'|'.join(TOP)})/[\w./-]*\w\.(?:py|md|json|txt|toml|yml)\b")
ROOM = re.compile(rf"`((?:{'|'.join(TOP)})/[\w./-]+)`")

EXAMPLES = ("NN_name.json", "DATE.json")
"""Names that stand for others."""
PROGRAMS_OF_TESTS = ("tests/meta/", "tests/unit/codegen/")
"""These name files that a test makes up."""


def test_a_path_that_is_named_exists() -> None:
    pages = [path for folder in TOP for path in (ROOT / folder).rglob("*.md")]
    pages += [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    problems = []
    for path in sorted(pages) + sources(*TOP):
        if name_of(path).startswith(PROGRAMS_OF_TESTS):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            names = {match[0] for match in FILE.finditer(line)}
            names |= {match[1].partition("::")[0] for match in ROOM.finditer(line)}
            problems += [
                f"{name_of(path)}:{number} {name}"
                for name in sorted(names)
                if not name.endswith(EXAMPLES) and not (ROOT / name).exists()
            ]
    assert_none(problems, "the file or folder has another name now:")
