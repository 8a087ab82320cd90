"""`minibroker dump-log`: prints the files of a log as Kafka's DumpLogSegments prints them.

This module tells the kinds of files apart and walks through a `.log`. Indexes and snapshots are in
`dump_indexes`, the texts in `dump_output`. A file is streamed: memory holds one
window of it and, for records, the current batch.

Source: Kafka DumpLogSegments.
"""

import re
from typing import Final, TextIO

from minibroker.broker.storage import names
from minibroker.kafka.errors import CorruptionError, ProtocolError
from minibroker.tools import dump_indexes
from minibroker.tools.dump_output import JsonOutput, Output, Pair, Report, TextOutput
from minibroker.tools.dump_plan import INT_MAX, DumpPlan
from minibroker.tools.log_file import FileBatch, LogFile
from minibroker.tools.log_records import control_of, records_of

EXIT_OK: Final = 0
EXIT_DAMAGED: Final = 1

METADATA_SNAPSHOT: Final = ".checkpoint"
_SNAPSHOT_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


_GAP: Final = Report(
    "gap", "offset", "next_offset", "Non-consecutive offsets in ", "  {} is followed by {}"
)
"""Mismatch for a gap in the offsets; compaction leaves such gaps."""


def run_dump_log(arguments: DumpPlan, out: TextIO, errors: TextIO) -> int:
    """Dump every file in turn and return the exit code; stop at damage, like Kafka's tool."""
    output: Output = JsonOutput(out) if arguments.is_json else TextOutput(out, errors)
    dump = _Dump(arguments, output)
    try:
        for path in arguments.files:
            dump.dump_file(re.sub(r"/+", "/", path).removesuffix("/") or "/")
        dump.report()
    except (CorruptionError, ProtocolError) as error:
        out.flush()
        errors.write(f"minibroker dump-log: {error}\n")
        return EXIT_DAMAGED
    except BrokenPipeError:
        raise
    except OSError as error:
        out.flush()
        errors.write(f"minibroker dump-log: {error.filename or dump.path}: {error.strerror}\n")
        return EXIT_DAMAGED
    return EXIT_OK


class _Dump:
    """One run; it collects the mismatches of all files for the end."""

    def __init__(self, arguments: DumpPlan, output: Output) -> None:
        self.arguments = arguments
        self.prints_data = arguments.prints_data
        self.decoder = arguments.decoder()
        self.output = output
        self.path = ""
        self.gaps: dict[str, list[Pair]] = {}
        self.indexes = dump_indexes.IndexMismatches()

    def dump_file(self, path: str) -> None:
        """Dump one file. Raises CorruptionError, OSError."""
        output = self.output
        self.path = path
        output.begin_file(path)
        _, dot, suffix = path.rpartition("/")[2].rpartition(".")
        suffix = dot + suffix
        if suffix in (names.LOG, METADATA_SNAPSHOT):
            self._dump_log(path, suffix)
        elif suffix == names.OFFSET_INDEX:
            dump_indexes.dump_offset_index(path, self.arguments, output, self.indexes)
        elif suffix == names.TIME_INDEX:
            dump_indexes.dump_time_index(path, self.arguments, output, self.indexes)
        elif suffix == names.SNAPSHOT:
            dump_indexes.dump_snapshot(path, output)
        elif suffix == names.TXN_INDEX:
            dump_indexes.dump_txn_index(path, output)
        else:
            output.unknown_file(path)

    def report(self) -> None:
        """Show the mismatches, in Kafka's order."""
        self.indexes.report(self.output)
        for path, pairs in self.gaps.items():
            self.output.mismatches(_GAP, path, pairs[::-1])

    def _dump_log(self, path: str, suffix: str) -> None:
        name = path.rpartition("/")[2]
        if suffix == names.LOG:
            self.output.log_start(dump_indexes.base_offset_in(path))
        else:
            parts = _SNAPSHOT_NAME.fullmatch(name)
            if parts is None:
                raise CorruptionError(
                    f"{path}: expected a name of offset, epoch and .checkpoint, for instance "
                    "00000000000000000042-0000000001.checkpoint"
                )
            self.output.snapshot_end(int(parts[1]), int(parts[2]))
        max_bytes = self.arguments.max_bytes
        with LogFile(path) as file:
            position, last_offset = 0, -1
            for batch in file.batches(end=max_bytes):
                self.output.batch(batch.header, position, batch.crc_is_valid())
                if self.arguments.is_deep:
                    last_offset = self._dump_records(path, batch, last_offset)
                position = batch.end
            trailing = min(file.size_bytes, max_bytes) - position
            if trailing > 0 and max_bytes == INT_MAX:
                self.output.trailing_bytes(trailing, name)

    def _dump_records(self, path: str, batch: FileBatch, last_offset: int) -> int:
        """Dump the records of a batch; return the offset of the last record of the file, -1 without
        one.
        """
        header = batch.header
        is_control = header.magic >= 2 and header.is_control
        for record in records_of(batch):
            if last_offset not in (-1, record.offset - 1):
                pairs = self.gaps.setdefault(dump_indexes.absolute(path), [])
                pairs.append((last_offset, record.offset))
            last_offset = record.offset
            shows = self.prints_data and not is_control
            self.output.record(
                header,
                record,
                control_of(record) if is_control else None,
                self.decoder(record) if shows else None,
                with_metadata=not self.arguments.without_metadata,
            )
        return last_offset
