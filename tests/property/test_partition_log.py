"""The log against a list: append, roll, flush, truncate, delete, compact, reopen, kill, power cut.

The model is a plain list of records with their offsets, and the offset up to which a power cut must
leave them. After every step the log answers every offset, the ends and a lookup by time as the list
does, and `check-log` has nothing to say about the directory.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from minibroker.broker.storage import log_reads, retention
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record, decode_records
from tests.support.check import broken_things
from tests.support.compaction import compact
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    append_records,
    config,
    flush,
    marker_of,
    open_manager,
)

SETTINGS = config(
    segment_bytes=1200,
    index_interval_bytes=200,
    retention_bytes=6000,
    retention_ms=-1,
    cleanup_policy="compact,delete",
)
CODECS = st.sampled_from(["none", "gzip", "zstd"])
KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.none() | st.binary(max_size=150)
IDEMPOTENT, TRANSACTIONAL = 1, 2


class Entry(NamedTuple):
    """An appended record that still exists."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    is_aborted: bool


def assert_sound(path: str, *, is_strict: bool = True) -> None:
    problems = broken_things(path, is_strict=is_strict)
    assert not problems, "\n".join(problems)


class LogMachine(RuleBasedStateMachine):
    """One partition; `entries` is what it must hold, `end` its end offset, `start` its start."""

    @initialize()
    def begin(self) -> None:
        self.path = tempfile.mkdtemp()
        self.files = FaultyFiles(self.path)
        self.entries: list[Entry] = []
        self.start = self.end = self.durable = 0
        self.sequences = {IDEMPOTENT: 0, TRANSACTIONAL: 0}
        self.last_written = {IDEMPOTENT: -1, TRANSACTIONAL: -1}
        self.epoch = 0
        self._open()

    def _open(self) -> None:
        self.manager = open_manager(
            self.path, files=self.files, topic=SETTINGS, clock=ManualClock()
        )
        self.log = self.manager.create_log("t", 0, TOPIC_ID, SETTINGS)

    def _append(
        self, pairs: list[tuple[bytes, bytes | None]], delay: int, codec: str, producer: int
    ) -> None:
        """Append one batch; `producer` -1 has no id."""
        times = [NOW_MS + 100 * self.end + delay - part for part in range(len(pairs))]
        records = [
            Record(0, time, key, value) for time, (key, value) in zip(times, pairs, strict=True)
        ]
        options = {}
        if producer >= 0:
            sequence = self.sequences[producer]
            options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[producer] += len(pairs)
            self.last_written[producer] = self.end + len(pairs) - 1
        one_batch = build_batch(
            records, codec=codec, is_transactional=producer == TRANSACTIONAL, **options
        )
        info = append_records(self.log, memoryview(one_batch), self.epoch, NOW_MS)
        assert info.first_offset == self.end
        assert not info.duplicate
        for time, (key, value) in zip(times, pairs, strict=True):
            self.entries.append(Entry(self.end, time, key, value, False))
            self.end += 1

    @rule(
        pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4),
        delay=st.integers(-500, 500),
        codec=CODECS,
        producer=st.sampled_from([-1, IDEMPOTENT]),
        written=st.booleans(),
    )
    def append(
        self,
        pairs: list[tuple[bytes, bytes | None]],
        delay: int,
        codec: str,
        producer: int,
        written: bool,
    ) -> None:
        self._append(pairs, delay, codec, producer)
        if written:
            self.log.write_staged()

    @rule(pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3), is_commit=st.booleans())
    def transact(self, pairs: list[tuple[bytes, bytes | None]], is_commit: bool) -> None:
        first = self.end
        self._append(pairs, 0, "none", TRANSACTIONAL)
        self._end_transaction(first, is_commit=is_commit)

    @rule()
    def begin_epoch(self) -> None:
        # The controller counts epochs; a log without records of one forgets it at the next start.
        self.epoch = max(self.epoch, self.log.epochs.history.latest_epoch) + 1
        self.log.begin_leader_epoch(self.epoch)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        flush(self.log)
        self.durable = self.end

    @rule()
    def checkpoint(self) -> None:
        self.manager.checkpoint_now()

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def delete_from_the_start(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start(self.start)
        self.manager.checkpoint_now()

    @rule()
    def delete_old_segments(self) -> None:
        """Delete segments below the log's start, and those above `retention.bytes`."""
        while retention.delete_old_segments(self.log, self.end, NOW_MS):
            pass
        assert self.log.log_start_offset >= self.start
        if self.log.log_start_offset > self.start:
            assert self.log.size_bytes >= SETTINGS.retention_bytes
        self.start = self.log.log_start_offset
        flush(self.log)  # else a power cut brings the files back, as in Kafka
        self.durable = self.end
        self.manager.checkpoint_now()

    @rule()
    def compact(self) -> None:
        """Compact: below the active segment the last record of each key stays, aborted ones go."""
        self.log.roll()
        self.log.update_high_watermark(self.end)
        begin = compact(self.log, NOW_MS).end_offset
        latest = {
            entry.key: entry.offset
            for entry in self.entries
            if entry.offset < begin and not entry.is_aborted and entry.offset >= self.start
        }
        self.entries = [
            entry
            for entry in self.entries
            if entry.offset >= begin
            or (not entry.is_aborted and latest.get(entry.key, entry.offset) <= entry.offset)
        ]
        self.manager.checkpoint_now()

    @precondition(lambda self: self._batch_starts())
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Truncate at the start of a batch, as replicas are truncated; producers begin again."""
        base = data.draw(st.sampled_from(self._batch_starts()))
        self.manager.truncate("t", 0, base)
        assert self.log.log_end_offset == base
        flush(self.log)
        self._ended_at(base)
        self.durable = base

    def _batch_starts(self) -> list[int]:
        """Return the offsets where the log may be cut.

        They are not between a transaction and its marker, and not behind a gap of compaction: a log
        that ends in a gap ends before it at the next start.
        """
        self.log.write_staged()
        values = []
        expected = self.log.segments.first.base_offset
        for segment in self.log.segments:
            for _, header in segment.headers():
                is_behind = header.base_offset == expected and header.base_offset >= self.start
                if is_behind and not header.is_control:
                    values.append(header.base_offset)
                expected = header.last_offset + 1
        return values

    def _ended_at(self, end: int) -> None:
        self.end = end
        self.entries = [entry for entry in self.entries if entry.offset < end]
        for producer in self.sequences:
            entry = self.log.producers.loaded().producers.get(producer)
            has_batches = entry is not None and entry.batches
            self.sequences[producer] = entry.last_sequence + 1 if entry and has_batches else 0
            self.last_written[producer] = (
                entry.batches[-1].last_offset if entry and has_batches else -1
            )

    @rule()
    def make_again(self) -> None:
        """Delete the log and make one of its name, which must know nothing of the old one."""
        task = self.manager.delete("t", 0, MARKED)
        assert task is not None
        task()
        self.log = self.manager.create_log("t", 0, TOPIC_ID, SETTINGS)
        flush(self.log)  # else a power cut brings the old one back, as in Kafka
        self.start = self.end = self.durable = 0
        self._ended_at(0)

    @rule()
    def stop_and_start(self) -> None:
        self.manager.close()
        self.durable = self.end
        assert_sound(self.path)
        self._open()
        self._producers_are_known()

    @rule()
    def kill(self) -> None:
        self.log.write_staged()
        abandon(self.manager)
        assert_sound(self.path, is_strict=False)
        self._open()
        self._producers_are_known()

    def _producers_are_known(self) -> None:
        """Check the known producers.

        As in Kafka, a producer whose records are all deleted is unknown, or known by its marker
        alone, and begins again. A later start may know it by a snapshot that this one did not read.
        """
        for producer, next_sequence in self.sequences.items():
            entry = self.log.producers.loaded().producers.get(producer)
            if entry is None or not entry.batches:
                assert self.last_written[producer] < self.start
                self.sequences[producer] = 0
            elif next_sequence == 0 and entry.batches[-1].last_offset < self.start:
                self.sequences[producer] = entry.last_sequence + 1
            else:
                assert entry.last_sequence + 1 == next_sequence

    @rule(share=st.floats(0, 1), kept_names=st.floats(0, 1))
    def cut_the_power(self, share: float, kept_names: float) -> None:
        self.log.write_staged()
        abandon(self.manager)
        self.files.power_cut(
            lambda unsynced: int(unsynced * share), lambda unsynced: int(unsynced * kept_names)
        )
        assert_sound(self.path, is_strict=False)
        self._open()
        assert self.durable <= self.log.log_end_offset <= self.end
        self._ended_at(self.log.log_end_offset)
        self._close_open_transaction()
        flush(self.log)
        self.manager.checkpoint_now()
        self.durable = self.end

    def _close_open_transaction(self) -> None:
        """Write the marker again, like the coordinator, if the cut removed it."""
        entry = self.log.producers.loaded().producers.get(TRANSACTIONAL)
        if entry is None or entry.transaction_start < 0:
            return
        self._end_transaction(entry.transaction_start, is_commit=False)

    def _end_transaction(self, first: int, *, is_commit: bool) -> None:
        marker = marker_of(TRANSACTIONAL, is_commit=is_commit)
        append_records(self.log, marker, self.epoch, NOW_MS, origin="coordinator")
        self.end += 1
        if not is_commit:
            self.entries = [
                entry._replace(is_aborted=True) if entry.offset >= first else entry
                for entry in self.entries
            ]

    @invariant()
    def the_log_is_the_list(self) -> None:
        log = self.log
        log.write_staged()
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.log_start_offset <= log.recovery_point or log.log_end_offset == self.start
        expected = [entry for entry in self.entries if entry.offset >= self.start]
        assert self._read() == [entry[:4] for entry in expected]
        target = NOW_MS + 50 * self.end
        first = next((entry.offset for entry in expected if entry.timestamp >= target), None)
        hit = log_reads.offset_for_timestamp(log, target)
        assert (None if hit is None else hit.offset) == first
        log.update_high_watermark(self.end)
        for aborted in [entry.offset for entry in expected if entry.is_aborted]:
            transactions = log_reads.aborted_transactions(log, aborted, aborted + 1)
            assert any(
                transaction.first_offset <= aborted <= transaction.last_offset
                for transaction in transactions
            )

    def _read(self) -> list[tuple[int, int, bytes, bytes | None]]:
        """Return every record as a consumer reads it, without markers."""
        records = []
        offset = self.start
        while offset < self.end:
            piece = log_reads.read(
                self.log, offset, 1 << 20, end_offset=self.end, min_one_batch=True
            )
            if not piece.records:
                break
            for position, header in iterate_headers(piece.records):
                if not header.is_control:
                    records += [
                        (record.offset, record.timestamp, record.key, record.value)
                        for record in decode_records(piece.records[position:])
                        if record.offset >= offset
                    ]
                offset = header.last_offset + 1
        return records

    @invariant()
    def nothing_is_broken(self) -> None:
        self.log.write_staged()
        assert_sound(self.path)

    def teardown(self) -> None:
        if hasattr(self, "manager"):
            abandon(self.manager)
            LogDirectory.locked_paths.discard(self.path)
            self.files.forget_pins()
            shutil.rmtree(self.path, ignore_errors=True)


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestLog = LogMachine.TestCase
