"""The lines on the keys, read from `documentation.txt` at the first request for one.

The file has one `key: line` per key, under a heading per scope (`[broker]`, `[topic]`, `[group]`,
`[client-metrics]`). A topic's or group's key without a line of its own has that of the broker key
that gives its default.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from minibroker.broker.config.topic_keys import SYNONYMS


def line_of(scope: str, name: str) -> str | None:
    """Return the line on one key of one scope, None for an unknown key."""
    texts = _load()
    line = texts.get((scope, name))
    if line is None and scope == "topic" and name in SYNONYMS:
        line = texts.get(("broker", SYNONYMS[name][0][0]))
    if line is None and scope == "group":
        line = texts.get(("broker", f"group.{name}"))
    return line


@cache
def _load() -> dict[tuple[str, str], str]:
    """Return (scope, key) → line."""
    texts: dict[tuple[str, str], str] = {}
    scope = ""
    content = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    for line in content.splitlines():
        if line.startswith("["):
            scope = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, text = line.partition(": ")
            texts[scope, name] = text
    return texts
