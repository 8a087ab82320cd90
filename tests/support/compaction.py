"""Compaction for tests: keyed batches, one round at once, the records of a reader afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage.compaction.cleaner import plan_round
from minibroker.broker.storage.compaction.cleaning import Cleaning
from minibroker.broker.storage.compaction.selection import LogFacts, candidate_of
from minibroker.broker.storage.compaction.survivors import OffsetMap
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.logs import NOW_MS, append_records, marker_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.compaction.selection import Candidate
    from minibroker.broker.storage.partition_log import PartitionLog

Pair = tuple[bytes | None, bytes | None]
DAY_MS = 86_400_000


class NoHurry:
    """A pace without rests. `on_chunk` is called after every chunk."""

    def __init__(self, on_chunk: Callable[[], None] | None = None) -> None:
        self._on_chunk = on_chunk
        self.bytes = 0

    def breathe(self) -> None:
        """Do nothing: no other thread needs the interpreter."""

    def spent(self, size_bytes: int) -> None:
        self.bytes += size_bytes
        if self._on_chunk is not None:
            self._on_chunk()


def keyed(
    *pairs: Pair,
    timestamp_ms: int = NOW_MS,
    codec: str = "none",
    producer_id: int = -1,
    sequence: int = -1,
    epoch: int = 0,
    is_transactional: bool = False,
) -> memoryview:
    """Return one batch of these keys and values as a producer sends it, writable; 1 ms apart."""
    records = [
        Record(0, timestamp_ms + place, key, value) for place, (key, value) in enumerate(pairs)
    ]
    return memoryview(
        build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
    )


def put(log: PartitionLog, *pairs: Pair, **fields: object) -> int:
    """Append and write one batch; return its first offset."""
    info = append_records(log, keyed(*pairs, **fields), 0, NOW_MS)  # type: ignore[arg-type]
    log.write_staged()
    return info.first_offset


def end_transaction(
    log: PartitionLog,
    producer_id: int,
    *,
    is_commit: bool,
    epoch: int = 0,
    timestamp_ms: int = NOW_MS,
) -> int:
    """Append the marker that ends a producer's transaction; return its offset."""
    marker = marker_of(producer_id, is_commit=is_commit, epoch=epoch, timestamp_ms=timestamp_ms)
    info = append_records(log, marker, 0, NOW_MS, origin="coordinator")
    log.update_high_watermark(log.log_end_offset)
    return info.first_offset


def facts_of(log: PartitionLog) -> LogFacts:
    return LogFacts(
        list(log.segments),
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        log.clean_offset,
        log.config.min_compaction_lag_ms,
        log.config.max_compaction_lag_ms,
        log.config.min_cleanable_dirty_ratio,
    )


def compact(
    log: PartitionLog,
    now_ms: int = NOW_MS,
    *,
    keys_max: int = 100_000,
    chunk_bytes: int = 1 << 16,
    pace: NoHurry | None = None,
) -> Candidate:
    """Run one round over everything that is closed, at any ratio; return its candidate."""
    candidate = candidate_of(facts_of(log), now_ms)
    offsets = OffsetMap(keys_max * 160, 1.0)
    work = plan_round(log, candidate, now_ms)
    cleaning = Cleaning(
        work, offsets, pace or NoHurry(), log.files, chunk_bytes, work.replace_segments
    )
    log.clean_offset = cleaning.run()
    return candidate


def roll_and_compact(log: PartitionLog, now_ms: int = NOW_MS, **options: int) -> Candidate:
    """Close the active segment, then run a round."""
    log.roll()
    return compact(log, now_ms, **options)  # type: ignore[arg-type]
