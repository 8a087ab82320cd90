"""One segment under `check-log`: its batches one by one, and both indexes along the way.

Each index is read at once (it is small) and compared while the batches are read, so that no part of
the `.log` is kept in memory. The rules:

| rule              | without it                                                         |
|-------------------|--------------------------------------------------------------------|
| batch, crc, count | consumers stop at it                                               |
| offsets, name     | records are found twice, or never                                  |
| index-…           | a fetch begins at a place that is no batch, or behind its offset    |
| timeindex-…       | a lookup by time skips records, retention keeps or takes wrong ones |

Source: Kafka LogSegment, OffsetIndex, TimeIndex.
"""

from typing import NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.segment import RELATIVE_OFFSET_MAX
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import NO_TIMESTAMP, RECORDS_AT, BatchHeader
from minibroker.kafka.records.compression import CODEC_NAMES, NONE
from minibroker.kafka.records.record import count_records
from minibroker.tools.check_indexes import OffsetEntries, SegmentEnd, TimeEntries
from minibroker.tools.check_producers import ProducerHistory, has_producer
from minibroker.tools.findings import Findings
from minibroker.tools.log_file import FileBatch, LogFile
from minibroker.tools.log_records import records_of


class EpochSpan(NamedTuple):
    """The batches of a leader epoch: the first offset of the first, the last offset of the last."""

    epoch: int
    first: int
    last: int


class SegmentCheck:
    """The check of one segment; `expected_offset` is the offset behind the segment before it."""

    def __init__(
        self,
        path: str,
        base_offset: int,
        *,
        expected_offset: int,
        end_offset: int | None,
        is_deep: bool,
        findings: Findings,
        producers: ProducerHistory,
        epochs: "list[EpochSpan]",
    ) -> None:
        """Take `end_offset`, the base offset of the next segment, None for the last one."""
        self.path = path
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.is_deep = is_deep
        self.findings = findings
        self.producers = producers
        self.epochs = epochs
        self._expected = max(base_offset, expected_offset)
        self._max_timestamp = NO_TIMESTAMP
        self._offsets = OffsetEntries(
            findings, self._beside(names.OFFSET_INDEX), base_offset, is_last=end_offset is None
        )
        self._times = TimeEntries(
            findings, self._beside(names.TIME_INDEX), base_offset, is_last=end_offset is None
        )

    def _beside(self, suffix: str) -> str:
        return self.path.removesuffix(names.LOG) + suffix

    def run(self, snapshots: dict[int, str]) -> SegmentEnd:
        """Walk the segment. Raises OSError.

        A snapshot in `snapshots` (offset → path) is compared and removed from it when the walk
        reaches its offset.
        """
        self.producers.begin_segment()
        with LogFile(self.path) as file:
            position, reason = 0, None
            try:
                for batch in file.batches():
                    self._take_snapshots(snapshots, batch.header)
                    reason = self._check_batch(batch)
                    if reason is not None:
                        break
                    position = batch.end
            except CorruptionError as error:
                reason = str(error)
            if reason is None and position < file.size_bytes:
                reason = "the file ends inside a batch"
            end = SegmentEnd(self._expected, position, file.size_bytes, reason)
        self._offsets.finish(end)
        self._times.finish(end, self._max_timestamp, is_last=self.end_offset is None)
        torn_at = None if end.reason is None else end.next_offset
        self.producers.check_txn_index(self._beside(names.TXN_INDEX), torn_at)
        return end

    def _take_snapshots(self, snapshots: dict[int, str], header: BatchHeader) -> None:
        if snapshots and min(snapshots) <= header.base_offset:
            for offset in [snapshot for snapshot in snapshots if snapshot <= header.base_offset]:
                self.producers.check_snapshot(snapshots.pop(offset), offset)

    def _check_batch(self, batch: FileBatch) -> str | None:
        """Check and count a batch; return a sentence if readers stop at it."""
        header = batch.header
        first, last = header.base_offset, header.last_offset
        if not 0 <= header.magic <= 2:
            return f"magic {header.magic}, expected 0, 1 or 2"
        if not batch.crc_is_valid():
            return f"the CRC is not {header.crc}, as the batch says (offset {first})"
        if first < self._expected:
            return f"offset {first} where {self._expected} or more was expected"
        if last < first or last - self.base_offset > RELATIVE_OFFSET_MAX:
            return f"last offset {last} in a batch that begins at {first}"
        if self.end_offset is not None and last >= self.end_offset:
            return f"offset {last}, but the next segment begins at {self.end_offset}"
        if header.codec >= len(CODEC_NAMES):
            return f"codec {header.codec}, expected 0 to {len(CODEC_NAMES) - 1}"
        self._check_content(batch)
        self._check_epoch(batch)
        if has_producer(header):
            self.producers.note(batch, self.path)
        self._offsets.pass_batch(batch)
        self._max_timestamp = max(self._max_timestamp, header.max_timestamp)
        self._times.pass_batch(batch, self._max_timestamp)
        self._expected = last + 1
        return None

    def _check_content(self, batch: FileBatch) -> None:
        header = batch.header
        if header.magic == 2 and not 0 <= header.count <= header.last_offset_delta + 1:
            self._broken("count", batch, f"{header.count} records up to {header.last_offset}")
            return
        try:
            if self.is_deep:
                self._check_records(batch)
            elif header.magic == 2 and header.codec == NONE:
                content = batch.content()
                count_records(content, RECORDS_AT, len(content), header.count)
        except CorruptionError as error:
            self._broken("records", batch, str(error))

    def _check_records(self, batch: FileBatch) -> None:
        header = batch.header
        previous = header.base_offset - 1 if header.magic == 2 else self._expected - 1
        latest = NO_TIMESTAMP
        for record in records_of(batch):
            if not previous < record.offset <= header.last_offset:
                self._broken(
                    "records",
                    batch,
                    f"record offset {record.offset} after {previous} in a batch that ends at "
                    f"{header.last_offset}",
                )
            if record.is_valid is False:
                self._broken("crc", batch, f"the CRC of message {record.offset} is wrong")
            previous = record.offset
            latest = max(latest, record.timestamp)
        if latest > header.max_timestamp:
            self._broken(
                "timestamp",
                batch,
                f"largest timestamp {header.max_timestamp} in the header, {latest} in a record",
            )

    def _check_epoch(self, batch: FileBatch) -> None:
        """Note the start of a leader epoch; messages of the old formats have none and end the
        history.
        """
        header = batch.header
        if header.magic < 2:
            self.epochs.clear()
            return
        epoch = header.leader_epoch
        last_span = self.epochs[-1] if self.epochs else EpochSpan(-1, -1, -1)
        if epoch < 0:
            return
        if epoch == last_span.epoch:
            self.epochs[-1] = EpochSpan(epoch, last_span.first, header.last_offset)
            return
        if epoch < last_span.epoch:
            self._broken("epoch", batch, f"leader epoch {epoch} after {last_span.epoch}")
        self.epochs.append(EpochSpan(epoch, header.base_offset, header.last_offset))

    def _broken(self, rule: str, batch: FileBatch, detail: str) -> None:
        self.findings.broken(rule, self.path, batch.position, detail)
