"""`dump-log` for the files beside a `.log`: both indexes, transaction index, producer snapshot.

An index is compared with the `.log` beside it, entry by entry. Its entries are counted as Kafka
counts them: the zeros that a killed Kafka leaves behind the last entry end the walk.

Source: Kafka DumpLogSegments, AbstractIndex, TransactionIndex, ProducerStateManager.
"""

import os.path
from struct import Struct
from typing import Final

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.producer_state import parse_snapshot
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import NO_TIMESTAMP
from minibroker.tools.dump_output import Output, Pair, Report
from minibroker.tools.dump_plan import INT_MAX, DumpPlan
from minibroker.tools.log_file import LogFile
from minibroker.tools.log_records import records_of

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
TXN_ENTRY: Final = Struct(">hqqqq")

_WARM_BYTES: Final = 8192
"""Bytes at the end of an index that Kafka searches first."""


_WRONG_OFFSET: Final = Report(
    "wrong_offset",
    "index_offset",
    "log_offset",
    "Mismatches in :",
    "  Index offset: {}, log offset: {}",
)
_WRONG_TIME: Final = Report(
    "wrong_timestamp",
    "index_timestamp",
    "log_timestamp",
    "Found timestamp mismatch in :",
    "  Index timestamp: {}, log timestamp: {}",
)
_UNORDERED_TIME: Final = Report(
    "unordered_timestamp",
    "index_timestamp",
    "previous_timestamp",
    "Found out of order timestamp in :",
    "  Index timestamp: {}, Previously indexed timestamp: {}",
)
_ABSENT_OFFSET: Final = Report(
    "absent_offset",
    "index_offset",
    "log_offset",
    "The following indexed offsets are not found in the log.",
    "Indexed offset: {}, found log offset: {}",
    names_file=False,
)


class IndexMismatches:
    """Mismatches between indexes and logs, by kind and file."""

    __slots__ = ("_mismatches",)

    def __init__(self) -> None:
        self._mismatches: dict[Report, dict[str, list[Pair]]] = {
            report: {} for report in (_WRONG_OFFSET, _WRONG_TIME, _UNORDERED_TIME, _ABSENT_OFFSET)
        }

    def add(self, report: Report, path: str, first: int, second: int) -> None:
        """Add one pair."""
        self._mismatches[report].setdefault(absolute(path), []).append((first, second))

    def report(self, output: Output) -> None:
        """Print the mismatches. Kafka's tool lists wrong offsets backwards, the others in order."""
        for kind, files in self._mismatches.items():
            for path, pairs in files.items():
                output.mismatches(kind, path, pairs[::-1] if kind is _WRONG_OFFSET else pairs)


def absolute(path: str) -> str:
    """Return an absolute path like Java's File.getAbsolutePath, without resolving links."""
    return path if path.startswith("/") else f"{os.path.abspath('.')}/{path}"  # noqa: PTH100


def base_offset_in(path: str) -> int:
    """Return the number before the first dot of the name. Raises CorruptionError without one."""
    digits = path.rpartition("/")[2].partition(".")[0]
    if not (digits.isascii() and digits.isdigit()):
        raise CorruptionError(
            f"{path}: expected a name of 20 digits and a suffix, for instance "
            f"{names.segment_file(42, names.LOG)}"
        )
    return int(digits)


class IndexEntries:
    """The whole entries of an index file, as (first number, second number)."""

    __slots__ = ("_content", "_layout", "count", "path")

    def __init__(self, path: str, layout: Struct) -> None:
        """Read an index as a whole: it is small (10 MiB by Kafka's default). Raises OSError."""
        self.path = path
        self._layout = layout
        self._content = REAL_FILES.read_all(path)
        self.count = len(self._content) // layout.size

    @property
    def odd_bytes(self) -> int:
        """Return the number of bytes behind the last whole entry."""
        return len(self._content) % self._layout.size

    def entry(self, index: int) -> tuple[int, int]:
        """Return one entry."""
        first, second = self._layout.unpack_from(self._content, index * self._layout.size)
        return first, second

    def position_below(self, relative_offset: int) -> int:
        """Return the position of the greatest entry of an offset index ≤ the target, 0 without one.

        The search takes the same steps as Kafka's, so that both give the same result for an
        unsorted index.
        """
        if not self.count:
            return 0
        warm = max(0, self.count - 1 - _WARM_BYTES // self._layout.size)
        if self.entry(warm)[0] < relative_offset:
            low, high = warm, self.count - 1
        elif self.entry(0)[0] > relative_offset:
            return 0
        else:
            low, high = 0, warm
        while low < high:
            middle = (low + high + 1) // 2
            value = self.entry(middle)[0]
            if value == relative_offset:
                return self.entry(middle)[1]
            if value > relative_offset:
                high = middle - 1
            else:
                low = middle
        return self.entry(low)[1]


def _beside(path: str, suffix: str) -> str:
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}{name.partition('.')[0]}{suffix}"


def dump_offset_index(
    path: str, arguments: DumpPlan, output: Output, mismatches: IndexMismatches
) -> None:
    """Print the entries of a `.index`. Raises CorruptionError, OSError."""
    base_offset = base_offset_in(path)
    with LogFile(_beside(path, names.LOG)) as log:
        index = IndexEntries(path, OFFSET_ENTRY)
        if not index.count:
            output.index_is_empty(path)
            return
        if arguments.sanity_only:
            _check_sane(index, index.entry(index.count - 1)[0])
            output.index_is_sane(path)
            return
        for number in range(index.count):
            relative, position = index.entry(number)
            if relative == 0 and number:
                return
            offset = base_offset + relative
            _check_position(path, position, log)
            batch = next(log.batches(position, position + arguments.max_message_size), None)
            if batch is None:
                raise CorruptionError(
                    f"{path}: offset {offset} is said to be at position {position}, where no batch "
                    f"of up to {arguments.max_message_size} bytes stands"
                )
            if batch.header.last_offset != offset:
                mismatches.add(_WRONG_OFFSET, path, offset, batch.header.last_offset)
            if not arguments.verify_only:
                output.offset_entry(offset, position)


def dump_time_index(
    path: str, arguments: DumpPlan, output: Output, mismatches: IndexMismatches
) -> None:
    """Print the entries of a `.timeindex`. Raises CorruptionError, OSError."""
    base_offset = base_offset_in(path)
    with LogFile(_beside(path, names.LOG)) as log:
        positions = IndexEntries(_beside(path, names.OFFSET_INDEX), OFFSET_ENTRY)
        index = IndexEntries(path, TIME_ENTRY)
        if arguments.sanity_only:
            if index.count:
                last, relative = index.entry(index.count - 1)
                _check_sane(index, relative)
                if last < index.entry(0)[0]:
                    raise CorruptionError(f"{path}: the last timestamp is {last}, below the first")
            elif index.odd_bytes:
                _check_sane(index, 0)
            output.index_is_sane(path)
            return
        previous = NO_TIMESTAMP
        for number in range(index.count):
            timestamp, relative = index.entry(number)
            if relative == 0 and number:
                return
            offset = base_offset + relative
            position = positions.position_below(relative)
            _check_position(path, position, log)
            last_offset, largest = _largest_timestamp(log, position, offset)
            if last_offset != offset:
                mismatches.add(_ABSENT_OFFSET, path, offset, last_offset)
            else:
                if largest != timestamp:
                    mismatches.add(_WRONG_TIME, path, timestamp, largest)
                if previous >= timestamp:
                    mismatches.add(_UNORDERED_TIME, path, timestamp, previous)
            if not arguments.verify_only:
                output.time_entry(timestamp, offset)
            previous = timestamp


def _largest_timestamp(log: LogFile, position: int, offset: int) -> tuple[int, int]:
    """Return (last offset, largest timestamp) of the first batch that reaches `offset`.

    Return (-1, -1) if no batch does.
    """
    for batch in log.batches(position, position + INT_MAX):
        if batch.header.last_offset >= offset:
            largest = max((record.timestamp for record in records_of(batch)), default=NO_TIMESTAMP)
            return batch.header.last_offset, max(largest, NO_TIMESTAMP)
    return -1, NO_TIMESTAMP


def _check_position(path: str, position: int, log: LogFile) -> None:
    if not 0 <= position <= log.size_bytes:
        raise CorruptionError(
            f"{path}: an entry points to position {position}, {log.path} has {log.size_bytes} bytes"
        )


def _check_sane(index: IndexEntries, last_relative: int) -> None:
    if last_relative < 0:
        raise CorruptionError(f"{index.path}: the last entry's offset is below the base offset")
    if index.odd_bytes:
        raise CorruptionError(f"{index.path}: {index.odd_bytes} bytes behind the last whole entry")


def dump_txn_index(path: str, output: Output) -> None:
    """Print the entries of a `.txnindex`. Raises CorruptionError, OSError."""
    base_offset_in(path)
    content = REAL_FILES.read_all(path)
    whole = len(content) - len(content) % TXN_ENTRY.size
    entries = list(TXN_ENTRY.iter_unpack(content[:whole]))
    for version, *_ in entries:
        if version >> 8 > 0:
            raise CorruptionError(f"{path}: an entry of version {version}, expected 0")
    for version, *fields in entries:
        output.aborted_transaction(version >> 8, fields)  # of the two bytes Kafka reads the first


def dump_snapshot(path: str, output: Output) -> None:
    """Print the producers in a `.snapshot`, or the reason why it is damaged. Raises OSError."""
    content = REAL_FILES.read_all(path)
    try:
        producers = parse_snapshot(content)
    except CorruptionError as error:
        output.damaged_snapshot(f"{path}: {error}")
        return
    for producer_id, entry in producers.items():
        output.producer(producer_id, entry)
