"""Output of `dump-log`: one method for each kind of thing that a file holds.

The walk (`dump_log`, `dump_indexes`) talks to this and does not know whether lines (`dump_text`) or
JSON (`dump_json`) come of it.

Source: Kafka DumpLogSegments.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from minibroker.records.batch import BatchHeader
from minibroker.storage.producer_state import ProducerEntry
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import ControlRecord, LogRecord

Pair = tuple[int, int]


class Report(NamedTuple):
    """One kind of mismatch: its names in JSON, and the words of Kafka's tool."""

    kind: str
    first_name: str
    second_name: str
    heading_words: str
    line_words: str
    names_file: bool = True

    def heading(self, path: str) -> str:
        """The line above the pairs of one file."""
        return self.heading_words + path if self.names_file else self.heading_words

    def line(self, pair: Pair) -> str:
        """One pair."""
        return self.line_words.format(*pair)


class Output(Protocol):
    """Methods of both outputs, text and JSON."""

    def begin_file(self, path: str) -> None:
        """Begin the output about the file `path`."""

    def unknown_file(self, path: str) -> None:
        """Nothing is known about files of this name."""

    def log_start(self, offset: int) -> None:
        """The offset in the name of a `.log`."""

    def snapshot_end(self, offset: int, epoch: int) -> None:
        """Show offset and epoch in the name of a snapshot of the metadata log."""

    def batch(self, header: BatchHeader, position: int, is_valid: bool) -> None:
        """One batch, or one message of format 0 or 1."""

    def record(
        self,
        header: BatchHeader,
        record: LogRecord,
        control: ControlRecord | None,
        decoded: Decoded | None,
        *,
        with_metadata: bool,
    ) -> None:
        """One record; `decoded` None: contents are not asked for."""

    def trailing_bytes(self, count: int, name: str) -> None:
        """Bytes behind the last whole batch."""

    def index_is_empty(self, path: str) -> None:
        """An offset index without entries."""

    def index_is_sane(self, path: str) -> None:
        """An index that the broker would not make again."""

    def offset_entry(self, offset: int, position: int) -> None:
        """An entry of `.index`."""

    def time_entry(self, timestamp: int, offset: int) -> None:
        """An entry of `.timeindex`."""

    def aborted_transaction(self, version: int, fields: Sequence[int]) -> None:
        """An entry of `.txnindex`: producer id, first, last and last stable offset."""

    def producer(self, producer_id: int, entry: ProducerEntry) -> None:
        """An entry of `.snapshot`."""

    def damaged_snapshot(self, reason: str) -> None:
        """A `.snapshot` that cannot be read."""

    def mismatches(self, report: Report, path: str, pairs: Sequence[Pair]) -> None:
        """Show, at the very end, which entries of `path` do not fit the log."""
