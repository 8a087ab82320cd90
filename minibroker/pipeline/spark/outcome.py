"""The outcome of a job, for its caller and for its last sentence."""

from __future__ import annotations

from typing import NamedTuple


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
