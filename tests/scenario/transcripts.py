"""Readable transcripts of a state machine: commands, and below them the reactions of the machine.

    # A single member leads.
    join a
    ----
    a: joined generation=1 …

A block is one or more commands, the line `----`, and their output, up to an empty line. The file is
the expectation: REWRITE_TRANSCRIPTS=1 writes the current output, and the difference is reviewed in
the commit like any other code. The form is that of etcd's raft (datadriven).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEPARATOR = "----"
REWRITE = bool(os.environ.get("REWRITE_TRANSCRIPTS"))


def check_transcript(path: Path, play: Callable[[str], list[str]]) -> None:
    """Play every command of the file with `play` and compare the lines that it returns."""
    transcript = path.read_text(encoding="utf-8")
    played = _played(transcript, play)
    if REWRITE and played != transcript:
        path.write_text(played, encoding="utf-8")
        return
    assert played == transcript, f"{path.name}: REWRITE_TRANSCRIPTS=1 shows what is different"


def _played(text: str, play: Callable[[str], list[str]]) -> str:
    lines: list[str] = []
    outcome: list[str] = []
    is_outcome = False
    for line in text.split("\n"):
        if line == SEPARATOR:
            lines += [SEPARATOR, *(outcome or ["nothing happens"])]
            outcome = []
            is_outcome = True
        elif not line:
            is_outcome = False
            lines.append("")
        elif is_outcome:
            continue  # what was expected; the lines that came stand there already
        else:
            lines.append(line)
            if not line.startswith("#"):
                outcome += play(line)
    return "\n".join(lines)


def words_of(command: str) -> tuple[list[str], dict[str, str]]:
    """Return (["join", "a", "skip"], {"id": "a-1"}) for `join a id=a-1 skip`."""
    plain, options = [], {}
    for word in command.split():
        name, equals, value = word.partition("=")
        if equals:
            options[name] = value
        else:
            plain.append(word)
    return plain, options
