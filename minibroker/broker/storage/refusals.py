"""`Refusals`: the lines of the log for what a disk refuses again and again.

A full disk refuses each append, and its directory stays in service: room may come back. The first
refusal is a line at once. Those that follow in the next ten seconds are counted, and the next line
has their number. Kafka needs no such count, because it takes the directory offline.

Each `StorageError` on its way to `FailedDirectories` passes here, those of
`PartitionManager` and of `LogCleaner`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minibroker.kafka.errors import StorageError

logger = logging.getLogger(__name__)

QUIET_S: Final = 10.0
"""Seconds after a line in which refusals of the same kind are only counted."""

Kind = tuple[str | None, type, int | None]
"""A place, the class of the error, and the system's number of it. A disk refuses the whole log
directory; damage, which has no number, belongs to one subject."""


class Refusals:
    """Refusals by their kind: at most one for each directory and error, and for each damaged
    partition. The loop owns it.
    """

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[Kind, tuple[float, int]] = {}
        """The time of the last line of each kind, and the number of refusals after it."""

    def note(self, subject: str, error: StorageError, now_s: float) -> None:
        """Log what was refused to `subject` at `now_s` (monotonic), or count it."""
        code: int | None = getattr(error.__cause__, "errno", None)
        kind = (subject if code is None else error.log_directory, type(error), code)
        line_s, count = self._lines.get(kind, (None, 0))
        if line_s is not None and now_s - line_s < QUIET_S:
            self._lines[kind] = line_s, count + 1
            return
        self._lines[kind] = now_s, 0
        if count:
            logger.error("%s: %s (and %d times since the last such line)", subject, error, count)
        else:
            logger.error("%s: %s", subject, error)
