"""Records of `consume` on their way out: written in their layout, counted, ended at a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from minibroker.verbs.record_text import Cut

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from minibroker.client.consume import Fetched
    from minibroker.verbs.reading import Lost
    from minibroker.verbs.record_text import Renderer
    from minibroker.verbs.streams import ProgressLine


class RecordOutput:
    """Records on their way out. Used by one thread."""

    def __init__(
        self,
        stream: BinaryIO,
        renderer: Renderer,
        most: int | None,
        progress: ProgressLine,
        errors: TextIO,
    ) -> None:
        self._stream = stream
        self._renderer = renderer
        self._most = most
        self._progress = progress
        self._errors = errors
        self.shown_count = 0

    @property
    def is_full(self) -> bool:
        """Return whether as many records are written as are wanted."""
        return self._most is not None and self.shown_count >= self._most

    def write(self, fetched: Fetched, start: int, end: int | None) -> int:
        """Write the records of an answer that are between two offsets; return the offset behind.

        Raises BrokenPipeError, CorruptionError.
        """
        remaining = None if self._most is None else self._most - self.shown_count
        data, count, behind = self._renderer.render(fetched, Cut(start, end), remaining)
        self._stream.write(data)
        self.shown_count += count
        self._progress.show(f"{self.shown_count:,} records")
        return behind

    def flush(self) -> None:
        """Hand everything to the reader of the output. Raises BrokenPipeError."""
        self._stream.flush()

    def note(self, text: str) -> None:
        """Tell a person something."""
        self._progress.clear()
        self._errors.write(f"minibroker consume: {text}\n")

    def note_all(self, texts: Iterable[str]) -> None:
        """Tell a person some things, a line each."""
        for text in texts:
            self.note(text)

    def note_lost(self, lost: Lost) -> None:
        """Tell that records were removed before they were read."""
        count = lost.next_offset - lost.first
        self.note(
            f"{count:,} records of {lost.place} are gone: it goes on at offset {lost.next_offset}"
        )

    def end(self) -> None:
        """Show how many records there were."""
        self._progress.end(f"{self.shown_count:,} records")
