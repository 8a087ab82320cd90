"""`dump-log --json`: one object on each line, for programs; `file` and `type` say what it is about.

It has the same contents as the text (`dump_text`), with the reports at the end, under names of
minibroker's own.
"""

import json
from collections.abc import Sequence
from typing import TextIO

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


class JsonOutput:
    """Output as one JSON object on each line; `file` and `type` say what it is about."""

    def __init__(self, out: TextIO) -> None:
        self._write = out.write
        self._path = ""

    def _emit(self, kind: str, **fields: object) -> None:
        found = {"file": self._path, "type": kind, **fields}
        self._write(json.dumps(found, ensure_ascii=False, separators=(", ", ": ")) + "\n")

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


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
