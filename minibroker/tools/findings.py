"""Findings of `check-log`: each is printed at once with file and place, and counted for the end.

There are two weights. BROKEN: an invariant of the log does not hold. NOTE: a leftover, or a defect
that the recovery of the next start mends; a directory with only notes is sound. One cause may break
thousands of entries, so only the first few findings of a rule and file are printed, and the others
are counted.
"""

import json
from typing import Final, NamedTuple, TextIO

BROKEN: Final = "broken"
NOTE: Final = "note"

SAID_MAX: Final = 10
"""Most findings of one rule that are printed for one file."""


class Finding(NamedTuple):
    """One finding; `position` is a byte in the file, None for the file as a whole."""

    weight: str
    rule: str
    path: str
    position: int | None
    detail: str

    def as_json(self) -> dict[str, object]:
        """Return the finding as a line of JSON has it: the detail is called `what`."""
        facts = self._asdict()
        facts["what"] = facts.pop("detail")
        return facts


class Findings:
    """Collects, prints and counts findings."""

    __slots__ = (
        "_counts",
        "_is_json",
        "_is_quiet",
        "_write",
        "broken_count",
        "excuses",
        "note_count",
    )

    def __init__(self, out: TextIO, *, is_json: bool = False, is_quiet: bool = False) -> None:
        self._write = out.write
        self._is_json = is_json
        self._is_quiet = is_quiet
        self._counts: dict[tuple[str, str], int] = {}
        self.broken_count = 0
        self.note_count = 0
        self.excuses = False
        """While True, damage counts as a note: the next start mends it."""

    def broken(self, rule: str, path: str, position: int | None, detail: str) -> None:
        """Report an invariant that does not hold."""
        if self.excuses:
            detail += " (the next start mends it)"
        self.add(Finding(NOTE if self.excuses else BROKEN, rule, path, position, detail))

    def note(self, rule: str, path: str, detail: str) -> None:
        """Report a fact that is no damage."""
        self.add(Finding(NOTE, rule, path, None, detail))

    def add(self, finding: Finding) -> None:
        """Print a finding, unless enough of its kind were printed for its file."""
        key = finding.rule, finding.path
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if finding.weight == BROKEN:
            self.broken_count += 1
        else:
            self.note_count += 1
            if self._is_quiet:
                return
        if count > SAID_MAX:
            return
        self._say(finding)

    def _say(self, finding: Finding) -> None:
        if self._is_json:
            line = json.dumps(finding.as_json(), ensure_ascii=False)
        else:
            place = "" if finding.position is None else f" at position {finding.position}"
            line = f"{finding.weight}: {finding.path}{place}: {finding.detail} [{finding.rule}]"
        self._write(line + "\n")

    def close_file(self, path: str) -> None:
        """Print how many findings about `path` were left out: no more follow."""
        for key in [key for key in self._counts if key[1] == path]:
            unsaid = self._counts.pop(key) - SAID_MAX
            if unsaid > 0 and not self._is_json:
                self._write(f"  … and {unsaid} more of [{key[0]}] in {path}\n")

    def summary(self, partitions: int, segments: int) -> None:
        """Print the last line."""
        if self._is_json:
            counts = {
                "weight": "summary",
                "partitions": partitions,
                "segments": segments,
                "broken": self.broken_count,
                "notes": self.note_count,
            }
            self._write(json.dumps(counts) + "\n")
            return
        self._write(
            f"{partitions} partitions, {segments} segments: {self.broken_count} broken, "
            f"{self.note_count} notes\n"
        )
