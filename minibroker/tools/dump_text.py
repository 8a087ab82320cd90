"""`dump-log` in text: line for line what Kafka's DumpLogSegments prints.

Reports of mismatches, and of files of an unknown kind, go to the error stream, as Kafka's do.

Source: Kafka DumpLogSegments.
"""

from collections.abc import Sequence
from typing import Final, TextIO

from minibroker.broker.storage.producer_state import ProducerEntry
from minibroker.kafka.records.batch import BatchHeader
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.tools.decoders import Decoded
from minibroker.tools.dump_output import Pair, Report
from minibroker.tools.log_records import (
    ControlRecord,
    LogRecord,
    delete_horizon_ms,
    timestamp_type,
)
from minibroker.tools.metadata_records import raft_content
from minibroker.tools.stored_json import to_line

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
