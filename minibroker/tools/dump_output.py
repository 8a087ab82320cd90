"""Output of `dump-log`: one method for each kind of thing that a file holds.

The walk (`dump_log`, `dump_indexes`) calls these methods; `dump_text` prints lines, `dump_json`
JSON.

Source: Kafka DumpLogSegments.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from minibroker.broker.storage.producer_state import ProducerEntry
from minibroker.kafka.records.batch import BatchHeader
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
        """Return the line above the pairs of one file."""
        return self.heading_words + path if self.names_file else self.heading_words

    def line(self, pair: Pair) -> str:
        """Return the line of one pair."""
        return self.line_words.format(*pair)


class Output(Protocol):
    """Methods of both outputs, text and JSON."""

    def begin_file(self, path: str) -> None:
        """Begin the output about the file `path`."""

    def unknown_file(self, path: str) -> None:
        """Report a file of an unknown kind."""

    def log_start(self, offset: int) -> None:
        """Show the offset in the name of a `.log`."""

    def snapshot_end(self, offset: int, epoch: int) -> None:
        """Show offset and epoch in the name of a snapshot of the metadata log."""

    def batch(self, header: BatchHeader, position: int, is_valid: bool) -> None:
        """Show one batch, or one message of format 0 or 1."""

    def record(
        self,
        header: BatchHeader,
        record: LogRecord,
        control: ControlRecord | None,
        decoded: Decoded | None,
        *,
        with_metadata: bool,
    ) -> None:
        """Show one record; `decoded` is None if contents are not wanted."""

    def trailing_bytes(self, count: int, name: str) -> None:
        """Show the number of bytes behind the last whole batch."""

    def index_is_empty(self, path: str) -> None:
        """Report an offset index without entries."""

    def index_is_sane(self, path: str) -> None:
        """Report an index that the broker would not rebuild."""

    def offset_entry(self, offset: int, position: int) -> None:
        """Show an entry of `.index`."""

    def time_entry(self, timestamp: int, offset: int) -> None:
        """Show an entry of `.timeindex`."""

    def aborted_transaction(self, version: int, fields: Sequence[int]) -> None:
        """Show an entry of `.txnindex`: producer id, first, last and last stable offset."""

    def producer(self, producer_id: int, entry: ProducerEntry) -> None:
        """Show an entry of `.snapshot`."""

    def damaged_snapshot(self, reason: str) -> None:
        """Report a `.snapshot` that cannot be read."""

    def mismatches(self, report: Report, path: str, pairs: Sequence[Pair]) -> None:
        """Show, at the very end, which entries of `path` do not fit the log."""
