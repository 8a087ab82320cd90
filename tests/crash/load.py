"""The load under which brokers are killed and lose power, and the checks afterwards.

There are two partitions: `t` is cut by retention and has transactions, committed and aborted; `c`
is keyed and compacted. Every record holds its own offset, so that a reader sees whether it is there
once, whole and in its place. The load also rolls, flushes, writes checkpoints and begins leader
epochs.

As a program it is a nursery: for each line `PATH SEED FLUSH` on stdin it forks a child that works
until it is killed. The child reports `TOPIC OFFSET` (everything below is written); the nursery
reports `gone`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from minibroker.broker.storage import log_reads, retention
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record, decode_records
from tests.support.compaction import compact
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    append_records,
    config,
    flush,
    marker_of,
    open_manager,
    sync,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from minibroker.broker.storage.files import Files
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.kafka.records.batch import BatchHeader

SMALL = {"segment_bytes": 4000, "index_interval_bytes": 300}
SETTINGS = {
    "t": config(**SMALL, cleanup_policy="delete", retention_bytes=30_000, retention_ms=-1),
    "c": config(**SMALL, cleanup_policy="compact"),
}
KEYS = 7
PLAIN, TRANSACTIONAL = 1, 2
CODECS = ("none", "none", "gzip", "zstd", "lz4", "snappy")


def value_at(offset: int) -> bytes:
    return b"%d," % offset * (offset % 37 + 1)


def key_at(offset: int) -> bytes:
    return b"key-%d" % (offset % KEYS)


def open_logs(path: str, files: Files | None = None) -> tuple[LogManager, dict[str, PartitionLog]]:
    options = {} if files is None else {"files": files}
    manager = open_manager(path, topic=SETTINGS["t"], clock=ManualClock(), **options)  # type: ignore[arg-type]
    logs = {}
    for topic, settings in SETTINGS.items():
        log = manager.create_log(topic, 0, TOPIC_ID, settings)
        log.update_config(settings, manager.rules_of(settings))
        logs[topic] = log
    return manager, logs


class Load:
    """Random work.

    A kill must not remove offsets below `written`, a power cut none below `durable`.

    With `flushes` every append is on the disk before it counts, as with flush.messages=1.
    """

    def __init__(
        self,
        manager: LogManager,
        logs: Mapping[str, PartitionLog],
        chance: random.Random,
        *,
        flushes: bool,
    ) -> None:
        self.manager = manager
        self.logs = logs
        self.chance = chance
        self.flushes = flushes
        self.ends = {topic: log.log_end_offset for topic, log in logs.items()}
        self.durable = dict(self.ends)
        self.epoch = max(log.epochs.history.latest_epoch for log in logs.values()) + 1
        self.sequences = {
            (topic, producer): _next_sequence(log, producer)
            for topic, log in logs.items()
            for producer in (PLAIN, TRANSACTIONAL)
        }
        open_since = logs["t"].producers.loaded().first_unstable_offset
        if open_since is not None:
            self._mark(logs["t"], is_commit=False)
        for log in logs.values():
            log.begin_leader_epoch(self.epoch)

    def turn(self, report: Callable[[str, int], None]) -> None:
        """Append a few batches to both partitions, then do some other work."""
        for topic, log in self.logs.items():
            for _ in range(self.chance.randrange(1, 5)):
                self._append(topic, log)
            log.write_staged()
            log.update_high_watermark(log.log_end_offset)
            self.ends[topic] = log.log_end_offset
            if self.flushes:
                flush(log)
                self.durable[topic] = self.ends[topic]
            report(topic, self.ends[topic])
        self._do_something()

    def _append(self, topic: str, log: PartitionLog) -> None:
        chance = self.chance
        is_transaction = topic == "t" and chance.random() < 0.2
        producer = TRANSACTIONAL if is_transaction else chance.choice([-1, PLAIN])
        count = chance.randrange(1, 6)
        first = log._tail.next_offset
        records = [
            Record(0, NOW_MS + offset, key_at(offset), value_at(offset))
            for offset in range(first, first + count)
        ]
        options = {}
        if producer >= 0:
            sequence = self.sequences[topic, producer]
            options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[topic, producer] += count
        batch = build_batch(
            records, codec=chance.choice(CODECS), is_transactional=is_transaction, **options
        )
        append_records(log, memoryview(batch), self.epoch, NOW_MS)
        if is_transaction:
            self._mark(log, is_commit=chance.random() < 0.5)

    def _mark(self, log: PartitionLog, *, is_commit: bool) -> None:
        marker = marker_of(TRANSACTIONAL, is_commit=is_commit)
        append_records(log, marker, self.epoch, NOW_MS, origin="coordinator")

    def _do_something(self) -> None:
        chance = self.chance.random()
        log = self.chance.choice(list(self.logs.values()))
        if chance < 0.1:
            flush(log)
            self.durable[log.topic] = self.ends[log.topic]
        elif chance < 0.2:
            self.manager.checkpoint_now()
        elif chance < 0.25:
            log.roll()
        elif chance < 0.35:
            retention.delete_old_segments(self.logs["t"], self.logs["t"].log_end_offset, NOW_MS)
        elif chance < 0.4 and len(self.logs["c"].segments) > 1:
            compact(self.logs["c"], NOW_MS)
        elif 0.4 <= chance < 0.55:
            sync(self.manager, log)
            self.durable[log.topic] = self.ends[log.topic]


def _next_sequence(log: PartitionLog, producer: int) -> int:
    entry = log.producers.loaded().producers.get(producer)
    return 0 if entry is None else entry.last_sequence + 1


def assert_all_there(
    logs: Mapping[str, PartitionLog],
    promised: Mapping[str, int],
    *,
    gaps: Mapping[str, set[int]] | None = None,
) -> None:
    """Check that promised records are there once and in order, and that all others are right.

    `gaps`: topic → offsets that earlier power cuts removed between two segments; those of the last
    cut are added. None if there was no power cut.
    """
    for topic, log in logs.items():
        start, end = log.log_start_offset, log.log_end_offset
        assert end >= promised[topic], f"{topic} ends at {end}, {promised[topic]} was promised"
        lost: set[int] = set()
        if gaps is not None:
            lost = gaps[topic]
            lost |= lost_between_segments(log, promised[topic])
            lost &= set(range(end))  # behind the end offsets are given out again
        offsets = [offset for offset in range(start, end) if offset not in lost]
        offsets_in_log, markers = _offsets_in(log)
        assert offsets_in_log == sorted(set(offsets_in_log))
        if topic == "t":
            assert sorted([*offsets_in_log, *markers]) == offsets
            assert start == 0 or log.size_bytes >= SETTINGS["t"].retention_bytes - 4000
        else:
            latest = {offset % KEYS: offset for offset in offsets}
            missing = set(latest.values()) - set(offsets_in_log)
            assert not missing, f"the latest of {missing} are gone from {topic}"


def lost_between_segments(log: PartitionLog, promised: int) -> set[int]:
    """Return the offsets from `promised` on that are missing at the end of a segment.

    As with Kafka, a power cut may remove the unsynced end of a closed segment while the next
    segment stays, and recovery goes on with it.
    """
    lost: set[int] = set()
    segments = list(log.segments)
    for segment, following in pairwise(segments):
        first = max(promised, segment.read_next_offset())
        lost.update(range(first, following.base_offset))
    return lost


def batches_of(log: PartitionLog) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Yield every batch in a consumer's order; check that its leader epoch is known."""
    entries = log.epochs.history.entries
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        content = log_reads.read(
            log, offset, 1 << 20, end_offset=log.log_end_offset, min_one_batch=True
        )
        if not content.records:
            break
        for position, header in iterate_headers(content.records):
            epochs = [epoch for epoch, start in entries if start <= header.last_offset]
            assert epochs[-1] == header.leader_epoch
            yield header, decode_records(content.records[position:])
            offset = header.last_offset + 1


def _offsets_in(log: PartitionLog) -> tuple[list[int], list[int]]:
    """Return offsets of records and of markers, in a consumer's order."""
    offsets: list[int] = []
    markers: list[int] = []
    for header, records in batches_of(log):
        for record in records:
            if header.is_control:
                markers.append(record.offset)
                continue
            assert record.value == value_at(record.offset)
            assert record.key == key_at(record.offset)
            if record.offset >= log.log_start_offset:
                offsets.append(record.offset)
    return offsets, [offset for offset in markers if offset >= log.log_start_offset]


def _work(path: str, seed: int, flushes: bool) -> None:
    """Work in a child until it is killed."""

    def report(topic: str, offset: int) -> None:
        os.write(1, b"%s %d\n" % (topic.encode(), offset))

    load = Load(*open_logs(path), random.Random(seed), flushes=flushes)
    while True:
        load.turn(report)


def _nursery() -> None:
    """Fork a child for every line; report its number first and its end last."""
    for line in sys.stdin:
        path, seed, flushes = line.split()
        child = os.fork()
        if child == 0:
            try:
                _work(path, int(seed), flushes == "1")
            finally:
                os._exit(1)
        os.write(1, b"child %d\n" % child)
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        os.write(1, b"gone %d\n" % was_killed)


if __name__ == "__main__":
    _nursery()
