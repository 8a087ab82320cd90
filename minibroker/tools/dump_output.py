"""Output of `dump-log`: text line for line as Kafka's DumpLogSegments prints it, or JSON.

The walk (`dump_log`, `dump_indexes`) calls a method for each kind of thing that a file holds.
`TextOutput` prints Kafka's lines; reports of mismatches, and of files of an unknown kind, go to the
error stream, as Kafka's do. `JsonOutput` prints one object on each line for programs: `file` and
`type` say what it is about, it has the same contents, with the reports at the end, under names of
minibroker's own.

Source: Kafka DumpLogSegments.
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TextIO

from minibroker.broker.storage.producer_state import ProducerEntry
from minibroker.kafka.records.batch import BatchHeader
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import (
    ControlRecord,
    LogRecord,
    delete_horizon_ms,
    timestamp_type,
)
from minibroker.tools.metadata_records import raft_content
from minibroker.tools.stored_json import to_line

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


RECORD_INDENT: Final = "|"


class TextOutput:
    """Output as Kafka's lines."""

    def __init__(self, out: TextIO, errors: TextIO) -> None:
        self._write = out.write
        self._complain = errors.write

    def begin_file(self, path: str) -> None:
        self._write(f"Dumping {path}\n")

    def unknown_file(self, path: str) -> None:
        self._complain(f"Ignoring unknown file {path}\n")

    def log_start(self, offset: int) -> None:
        self._write(f"Log starting offset: {offset}\n")

    def snapshot_end(self, offset: int, epoch: int) -> None:
        self._write(f"Snapshot end offset: {offset}, epoch: {epoch}\n")

    def batch(self, header: BatchHeader, position: int, is_valid: bool) -> None:
        if header.magic >= 2:
            horizon = delete_horizon_ms(header)
            start = (
                f"baseOffset: {header.base_offset} lastOffset: {header.last_offset}"
                f" count: {header.count} baseSequence: {header.base_sequence}"
                f" lastSequence: {header.last_sequence} producerId: {header.producer_id}"
                f" producerEpoch: {header.producer_epoch}"
                f" partitionLeaderEpoch: {header.leader_epoch}"
                f" isTransactional: {_java(header.is_transactional)}"
                f" isControl: {_java(header.is_control)}"
                f" deleteHorizonMs: {_optional(horizon)}"
            )
        else:
            start = f"offset: {header.base_offset}"
        self._write(
            f"{start} position: {position} {timestamp_type(header)}: {header.max_timestamp}"
            f" size: {header.size_bytes} magic: {header.magic}"
            f" compresscodec: {CODEC_NAMES[header.codec]} crc: {header.crc}"
            f" isvalid: {_java(is_valid)}\n"
        )

    def record(
        self,
        header: BatchHeader,
        record: LogRecord,
        control: ControlRecord | None,
        decoded: Decoded | None,
        *,
        with_metadata: bool,
    ) -> None:
        prefix = f"{RECORD_INDENT} "
        line = ""
        if with_metadata:
            line = (
                f"{prefix}offset: {record.offset} {timestamp_type(header)}: {record.timestamp}"
                f" keySize: {_size(record.key)} valueSize: {_size(record.value)}"
            )
            prefix = " "
            if record.crc is None:
                keys = ",".join(name for name, _ in record.headers)
                line += f" sequence: {record.sequence} headerKeys: [{keys}]"
            else:
                # Kafka's line has this closing brace, too.
                line += f" isValid: {_java(record.is_valid)} crc: {record.crc}}}"
            if control is not None:
                line += _control_text(control)
        if decoded is not None:
            if decoded.key is not None:
                line += f"{prefix}key: {decoded.key}"
            if decoded.value is not None:
                line += f" payload: {decoded.value}"
        self._write(f"{line}\n")

    def trailing_bytes(self, count: int, name: str) -> None:
        self._write(f"Found {count} invalid bytes at the end of {name}\n")

    def index_is_empty(self, path: str) -> None:
        self._write(f"{path} is empty.\n")

    def index_is_sane(self, path: str) -> None:
        self._write(f"{path} passed sanity check.\n")

    def offset_entry(self, offset: int, position: int) -> None:
        self._write(f"offset: {offset} position: {position}\n")

    def time_entry(self, timestamp: int, offset: int) -> None:
        self._write(f"timestamp: {timestamp} offset: {offset}\n")

    def aborted_transaction(self, version: int, fields: Sequence[int]) -> None:
        producer_id, first, last, last_stable = fields
        self._write(
            f"version: {version} producerId: {producer_id} firstOffset: {first}"
            f" lastOffset: {last} lastStableOffset: {last_stable}\n"
        )

    def producer(self, producer_id: int, entry: ProducerEntry) -> None:
        start = entry.transaction_start if entry.transaction_start >= 0 else None
        line = (
            f"producerId: {producer_id} producerEpoch: {entry.epoch}"
            f" coordinatorEpoch: {entry.coordinator_epoch}"
            f" currentTxnFirstOffset: {_optional(start)} lastTimestamp: {entry.last_timestamp} "
        )
        for batch in entry.batches:
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset}"
                f" offsetDelta: {batch.offset_delta}"
                f" timestamp: {batch.timestamp}"
            )
        self._write(f"{line}\n")

    def damaged_snapshot(self, reason: str) -> None:
        self._complain(f"{reason}\n")

    def mismatches(self, report: Report, path: str, pairs: Sequence[Pair]) -> None:
        lines = [report.heading(path), *map(report.line, pairs)]
        self._complain("\n".join(lines) + "\n")


def _java(flag: bool | None) -> str:
    return "true" if flag else "false"


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _control_text(control: ControlRecord) -> str:
    if control.coordinator_epoch is None:
        content = raft_content(control)
        if content is not None:
            return f" {content[0]} {to_line(content[1])}"
        return f" controlType: {control.name}({control.type_id})"
    return f" endTxnMarker: {control.name} coordinatorEpoch: {control.coordinator_epoch}"


class JsonOutput:
    """Output as one JSON object on each line; `file` and `type` say what it is about."""

    def __init__(self, out: TextIO) -> None:
        self._write = out.write
        self._path = ""

    def _emit(self, kind: str, **fields: object) -> None:
        line = {"file": self._path, "type": kind, **fields}
        self._write(json.dumps(line, ensure_ascii=False, separators=(", ", ": ")) + "\n")

    def begin_file(self, path: str) -> None:
        self._path = path

    def unknown_file(self, path: str) -> None:
        self._emit("unknown_file")

    def log_start(self, offset: int) -> None:
        self._emit("log", starting_offset=offset)

    def snapshot_end(self, offset: int, epoch: int) -> None:
        self._emit("metadata_snapshot", end_offset=offset, epoch=epoch)

    def batch(self, header: BatchHeader, position: int, is_valid: bool) -> None:
        fields: dict[str, object] = {"position": position, "size": header.size_bytes}
        fields |= {"magic": header.magic, "base_offset": header.base_offset}
        if header.magic >= 2:
            fields |= {
                "last_offset": header.last_offset,
                "count": header.count,
                "base_sequence": header.base_sequence,
                "last_sequence": header.last_sequence,
                "producer_id": header.producer_id,
                "producer_epoch": header.producer_epoch,
                "leader_epoch": header.leader_epoch,
                "is_transactional": header.is_transactional,
                "is_control": header.is_control,
                "delete_horizon_ms": delete_horizon_ms(header),
            }
        fields |= {
            "timestamp_type": timestamp_type(header),
            "max_timestamp": header.max_timestamp,
            "codec": CODEC_NAMES[header.codec],
            "crc": header.crc,
            "is_valid": is_valid,
        }
        self._emit("batch", **fields)

    def record(
        self,
        header: BatchHeader,
        record: LogRecord,
        control: ControlRecord | None,
        decoded: Decoded | None,
        *,
        with_metadata: bool,
    ) -> None:
        fields: dict[str, object] = {"offset": record.offset}
        if with_metadata:
            fields |= {
                "timestamp_type": timestamp_type(header),
                "timestamp": record.timestamp,
                "key_size": _size(record.key),
                "value_size": _size(record.value),
            }
            if record.crc is None:
                fields |= {
                    "sequence": record.sequence,
                    "header_keys": [name for name, _ in record.headers],
                }
            else:
                fields |= {"crc": record.crc, "is_valid": record.is_valid}
        if control is not None:
            fields["control_type"] = control.name
            content = raft_content(control)
            if content is not None:
                fields["control_content"] = content[1]
            if control.coordinator_epoch is not None:
                fields["coordinator_epoch"] = control.coordinator_epoch
        if decoded is not None:
            fields |= {"key": decoded.key, "value": decoded.value}
        self._emit("record", **fields)

    def trailing_bytes(self, count: int, name: str) -> None:
        self._emit("trailing_bytes", count=count)

    def index_is_empty(self, path: str) -> None:
        self._emit("empty_index")

    def index_is_sane(self, path: str) -> None:
        self._emit("sane_index")

    def offset_entry(self, offset: int, position: int) -> None:
        self._emit("offset_entry", offset=offset, position=position)

    def time_entry(self, timestamp: int, offset: int) -> None:
        self._emit("time_entry", timestamp=timestamp, offset=offset)

    def aborted_transaction(self, version: int, fields: Sequence[int]) -> None:
        names = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
        self._emit("aborted_transaction", version=version, **dict(zip(names, fields, strict=True)))

    def producer(self, producer_id: int, entry: ProducerEntry) -> None:
        last = entry.batches[-1] if entry.batches else None
        self._emit(
            "producer",
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            coordinator_epoch=entry.coordinator_epoch,
            transaction_start=entry.transaction_start if entry.transaction_start >= 0 else None,
            last_timestamp=entry.last_timestamp,
            last_batch=None
            if last is None
            else {
                "first_sequence": last.first_sequence,
                "last_sequence": last.last_sequence,
                "first_offset": last.first_offset,
                "last_offset": last.last_offset,
            },
        )

    def damaged_snapshot(self, reason: str) -> None:
        self._emit("damaged_snapshot", reason=reason)

    def mismatches(self, report: Report, path: str, pairs: Sequence[Pair]) -> None:
        self._path = path
        for first, second in pairs:
            self._emit(report.kind, **{report.first_name: first, report.second_name: second})
