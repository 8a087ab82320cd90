"""Reports of a job's progress: one line that stays on a terminal, else one JSON line for each
batch.

A job reports `Batch`es to a callback; `TerminalProgress` and `JsonProgress` are the two that the
command line uses. A rate is over the time since the job's first batch began, so that it does not
jump. The time left is the lag divided by that rate.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TextIO

from minibroker.cli.quantities import counted, duration

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping


_CLEAR_LINE: Final = "\r\x1b[K"


class Batch(NamedTuple):
    """One micro-batch that is done."""

    number: int
    rows: int
    total_rows: int
    """Rows of this run, this batch included."""
    seconds: float
    """Seconds since the job's first batch began."""
    batch_seconds: float
    lag: int | None = None
    """Offsets (not always records) that are still ahead, None if unknown."""
    bad_records: int | None = None
    """Bad records of this run, None if the job does not count them."""
    late_rows: int | None = None
    open_windows: int | None = None

    @property
    def rows_per_s(self) -> float:
        """Return the rate of the whole run."""
        return self.total_rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """Return the seconds until the lag is 0 at the rate so far, None if unknown."""
        if self.lag is None or self.rows_per_s <= 0:
            return None
        return self.lag / self.rows_per_s


class Note(NamedTuple):
    """A sentence of a job that is not about a batch."""

    sentence: str
    """The sentence for a person."""
    fields: Mapping[str, object]
    """The same facts for a script."""


class Progress(Protocol):
    """The interface that a job reports to."""

    def __call__(self, batch: Batch) -> None:
        """Report that `batch` is done."""


def _ignored(note: Note) -> None:
    """Take a note that nobody reads."""


class Reports(NamedTuple):
    """The caller of a job: who gets its batches and notes, and who ends it."""

    stop: threading.Event
    """Set by somebody who wants the job to end after the running batch."""
    progress: Progress | None = None
    """Gets every batch."""
    note: Callable[[Note], None] = _ignored
    """Gets what there is to know beside the batches."""


class JsonProgress:
    """Reports as JSON, one object and line for each batch, for scripts and logs."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __call__(self, batch: Batch) -> None:
        self._out.write(json.dumps(as_json(batch)) + "\n")
        self._out.flush()

    def note(self, note: Note) -> None:
        """Write a line without the field `batch`."""
        self._out.write(json.dumps(note.fields) + "\n")
        self._out.flush()

    def close(self) -> None:
        """Do nothing: no line is left open."""


class TerminalProgress:
    """Reports as one line that is overwritten, and removed at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._line = ""

    def __call__(self, batch: Batch) -> None:
        self.show(as_line(batch))

    def show(self, text: str) -> None:
        """Replace the line with `text`, cut to the terminal's width."""
        width = shutil.get_terminal_size().columns - 1
        self._out.write(_CLEAR_LINE + text[:width])
        self._out.flush()
        self._line = text

    def note(self, note: Note) -> None:
        """Write a line that stays, above the line that is overwritten."""
        line = self._line
        self.close()
        self._out.write(f"{note.sentence}\n")
        self._out.flush()
        if line:
            self.show(line)

    def close(self) -> None:
        """Remove the line, so that the next output begins at the left."""
        if self._line:
            self._out.write(_CLEAR_LINE)
            self._out.flush()
            self._line = ""


def as_json(batch: Batch) -> Mapping[str, object]:
    """Return the fields of a batch, without those that the job does not have."""
    fields: dict[str, object] = {
        "batch": batch.number,
        "rows": batch.rows,
        "rows_per_s": round(batch.rows_per_s, 1),
        "total_rows": batch.total_rows,
        "batch_seconds": round(batch.batch_seconds, 3),
        "lag": batch.lag,
        "eta_s": None if batch.eta_s is None else round(batch.eta_s, 1),
        "bad_records": batch.bad_records,
        "late_rows": batch.late_rows,
        "open_windows": batch.open_windows,
    }
    always = ("lag", "eta_s")
    return {key: value for key, value in fields.items() if value is not None or key in always}


def as_line(batch: Batch) -> str:
    """Return `1,200,000 rows 340,000 rows/s lag 12,000 eta 3 s`, and further counts."""
    parts = [f"{batch.total_rows:,} rows", f"{batch.rows_per_s:,.0f} rows/s"]
    if batch.lag is not None:
        parts.append(f"lag {batch.lag:,}")
        if batch.lag and batch.eta_s is not None:
            parts.append(f"eta {duration(round(batch.eta_s * 1000))}")
    if batch.bad_records:
        parts.append(f"{batch.bad_records:,} bad")
    if batch.late_rows:
        parts.append(f"{batch.late_rows:,} late")
    if batch.open_windows is not None:
        parts.append(f"{batch.open_windows:,} open windows")
    return "  ".join(parts)


def last_sentence(done: str, outcome: Outcome) -> str:
    """Return the last line on the terminal: what the job has `done`, and the rest for a person."""
    if outcome.was_stopped:
        return f"{done} before it was stopped; the same command goes on from there"
    if outcome.batches == 0:
        return f"{done}: nothing is new since the last run"
    parts = [f"{done} in {duration(round(outcome.seconds * 1000))}"]
    if outcome.bad_records:
        parts.append(f"{counted(outcome.bad_records, 'bad record')} set aside")
    if outcome.late_rows:
        parts.append(f"{outcome.late_rows:,} too late and left out")
    if outcome.skipped_offsets:
        parts.append(f"{counted(outcome.skipped_offsets, 'offset')} skipped")
    return "; ".join(parts)


def operation_notes(outcome: Outcome) -> list[Note]:
    """Return what there is to know about masks and selected fields, mostly nothing."""
    notes = []
    if outcome.missed:
        names = ", ".join(outcome.missed)
        notes.append(
            Note(
                f"no record had the place of {names}: nothing was done there; check the name",
                {"not_found": list(outcome.missed)},
            )
        )
    if outcome.unmaskable_rows:
        count = outcome.unmaskable_rows
        notes.append(
            Note(
                f"{counted(count, 'record')} left out, which could not be masked",
                {"unmaskable_records": count},
            )
        )
    return notes


class Outcome(NamedTuple):
    """The outcome of a job in this run."""

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    was_stopped: bool = False
    """True if the job was asked to stop before all was done."""
    bad_records: int = 0
    """Records that were set aside: `--bad-records` of a rollup, `--dead-letters` of an archive."""
    unmaskable_rows: int = 0
    """Records that were left out since they could not be masked."""
    found_places: int = 0
    """Bits of the rules and selected fields that a record had, see `operations.masking`."""
    missed: tuple[str, ...] = ()
    """Rules of `mask` and fields of `select` that no record had: perhaps a wrong name."""
    skipped_offsets: int = 0
    """Offsets, at least, whose records were removed before they were read, where that is allowed.
    """
    late_rows: int = 0
    final_windows: int = 0
    """Windows of a rollup (one for each group) that this run has written for good."""
    open_windows: int = 0
    """Windows that were still open after the last batch."""
    provisional_windows: int = 0
    """Open windows that this run has written, until the next run writes them again."""
