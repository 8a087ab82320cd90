"""The segments that retention removes, and the changes that follow."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker.config.topic import TopicConfig
from minibroker.broker.storage import log_reads, retention
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.indexes import IndexRule
from minibroker.broker.storage.log_reads import survey
from minibroker.broker.storage.segment import Segment
from minibroker.kafka.errors import KafkaError
from tests.support.logs import (
    DEFAULTS,
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    NewLog,
    append,
    batch,
    config,
    open_manager,
    values_of,
)

if TYPE_CHECKING:
    from minibroker.broker.storage.partition_log import PartitionLog

MB = 1_000_000
HOUR_MS = 3_600_000


class OneSegment(NamedTuple):
    """Facts of a segment that retention asks for."""

    base_offset: int
    size_bytes: int
    max_timestamp: int = NOW_MS
    modified_ms: int = 0

    def segment(self) -> Segment:
        """Return a segment with these facts. It has no file: `created_ms` is its time."""
        disk = SimpleNamespace(files=Files())
        segment = Segment(disk, "no/such/directory", self.base_offset, created_ms=self.modified_ms)  # type: ignore[arg-type]
        segment.note_survey(self.size_bytes, -1, self.base_offset)
        segment.index_rule = IndexRule(self.base_offset, self.max_timestamp)
        return segment


def count_of(
    *segments: OneSegment,
    end: int,
    start: int = 0,
    high_watermark: int | None = None,
    now_ms: int = NOW_MS,
    **overrides: object,
) -> int:
    return retention.expired(
        [facts.segment() for facts in segments],
        config(**overrides) if overrides else DEFAULTS,
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=end if high_watermark is None else high_watermark,
        now_ms=now_ms,
    ).segment_count


def test_by_size_the_oldest_go_while_the_rest_is_at_least_the_limit() -> None:
    log = [OneSegment(0, 700 * MB), OneSegment(10, 700 * MB), OneSegment(20, 700 * MB)]
    log.append(OneSegment(30, 1234))
    assert count_of(*log, end=40, retention_bytes=2_000 * MB) == 0
    assert count_of(*log, end=40, retention_bytes=1_400 * MB) == 1
    assert count_of(*log, end=40, retention_bytes=1_400 * MB + 1234) == 1
    assert count_of(*log, end=40, retention_bytes=1_400 * MB + 1235) == 0
    assert count_of(*log, end=40, retention_bytes=-1) == 0


def test_a_size_over_the_limit_never_touches_the_active_segment() -> None:
    log = [OneSegment(0, 700), OneSegment(10, 700), OneSegment(20, 700)]
    assert count_of(*log, end=30, retention_bytes=1) == 2
    assert count_of(OneSegment(0, 700), end=30, retention_bytes=1) == 0


def test_by_time_the_largest_timestamp_counts() -> None:
    old, young = NOW_MS - HOUR_MS, NOW_MS
    log = [OneSegment(0, 1, old), OneSegment(10, 1, young), OneSegment(20, 1, old)]
    assert count_of(*log, end=30, retention_ms=HOUR_MS) == 0
    assert count_of(*log, end=30, retention_ms=HOUR_MS, now_ms=NOW_MS + 1) == 1
    assert count_of(*log, end=30, retention_ms=-1, now_ms=NOW_MS * 2) == 0


def test_where_no_record_has_a_time_the_files_own_counts() -> None:
    log = [OneSegment(0, 1, -1, modified_ms=NOW_MS), OneSegment(10, 1)]
    assert count_of(*log, end=20, retention_ms=1000, now_ms=NOW_MS + 1000) == 0
    assert count_of(*log, end=20, retention_ms=1000, now_ms=NOW_MS + 1001) == 2


def test_by_log_start_offset_a_segment_goes_when_the_next_begins_at_or_below_it() -> None:
    log = [OneSegment(base, 1) for base in range(0, 50_000, 10_000)]
    for start, count in ((0, 0), (9_999, 0), (10_000, 1), (39_999, 3), (40_000, 4), (45_000, 4)):
        assert count_of(*log, end=45_000, start=start) == count


def test_a_compacted_log_loses_only_what_is_below_its_start() -> None:
    log = [OneSegment(0, 700, 1), OneSegment(10, 700, 1), OneSegment(20, 700, 1)]
    limits = {"retention_bytes": 1, "retention_ms": 1, "start": 10}
    assert count_of(*log, end=30, cleanup_policy="compact", **limits) == 1  # type: ignore[arg-type]
    assert count_of(*log, end=30, cleanup_policy="compact,delete", **limits) == 3  # type: ignore[arg-type]


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    log = [OneSegment(0, 1, 1), OneSegment(10, 1, 1), OneSegment(20, 1, 1)]
    for high_watermark, count in ((0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (29, 2), (30, 3)):
        deletable = count_of(*log, end=30, high_watermark=high_watermark, retention_ms=1)
        assert deletable == count


def test_an_empty_active_segment_stays() -> None:
    log = [OneSegment(0, 1, 1), OneSegment(10, 0, -1)]
    assert count_of(*log, end=10, retention_ms=1) == 1
    assert count_of(log[1], end=10, retention_ms=1) == 0


# On real logs.


def _names(log: PartitionLog, pattern: str) -> list[str]:
    return sorted(path.name for path in Path(log.directory).glob(pattern))


def test_an_expired_active_segment_is_rolled_and_goes(new_log: NewLog) -> None:
    log = new_log(retention_ms=HOUR_MS)
    append(log, b"a", b"b", leader_epoch=3)
    assert retention.delete_old_segments(log, 2, NOW_MS + HOUR_MS) == 0
    assert retention.delete_old_segments(log, 2, NOW_MS + HOUR_MS + 1) == 1
    assert log.segments.base_offsets == [2]
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (2, 2, 2)
    assert _names(log, "*.log") == [f"{2:020d}.log"]
    assert log.epochs.history.entries == [(3, 2)]
    assert retention.delete_old_segments(log, 2, NOW_MS * 2) == 0
    assert append(log, b"c", leader_epoch=3) == 2
    assert values_of(log) == [b"c"]


def test_delete_records_then_retention_removes_the_files(new_log: NewLog) -> None:
    log = new_log()
    for number in range(5):
        append(log, b"%d" % number, producer_id=7, producer_epoch=0, sequence=number)
        if number < 4:
            log.roll()
    log.advance_log_start(4)
    assert (log.log_start_offset, len(log.segments)) == (4, 5)
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log_reads.read(log, 3, 100, end_offset=5, min_one_batch=True)
    assert retention.delete_old_segments(log, 5, NOW_MS) == 4
    assert _names(log, "*.log") == [f"{4:020d}.log"]
    # Snapshots go with their segments; the newest stays, and so does what is known of producers.
    assert _names(log, "*.snapshot") == [f"{4:020d}.snapshot"]
    assert list(log.producers.loaded().producers) == [7]
    with pytest.raises(KafkaError, match="beyond its high watermark 5"):
        log.advance_log_start(6)


def test_many_segments_go_in_several_steps(new_log: NewLog) -> None:
    log = new_log(retention_bytes=len(batch(b"0")))
    for number in range(8):
        append(log, b"%d" % number)
        log.roll()
    steps = []
    while deleted_count := retention.delete_old_segments(log, 8, NOW_MS, limit=3):
        steps.append((deleted_count, log.log_start_offset))
    assert steps == [(3, 3), (3, 6), (1, 7)]
    assert values_of(log) == [b"7"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_limit_of_nothing_takes_everything_and_the_log_goes_on(
    new_log: NewLog, count: int
) -> None:
    log = new_log(retention_bytes=0)
    for number in range(count):
        if number:
            log.roll()
        append(log, b"%d" % number)
    assert retention.delete_old_segments(log, count, NOW_MS) == count
    assert log.segments.base_offsets == [count]
    assert append(log, b"next") == count


def test_the_log_start_outlives_a_restart(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a", b"b", b"c")
    log.advance_log_start(2)
    manager.close()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    again = open_manager(str(tmp_path))
    assert again.logs["t", 0].log_start_offset == 2  # type: ignore[index]
    again.close()


def _reopened(tmp_path: Path, clock: ManualClock, settings: TopicConfig) -> PartitionLog:
    """Four segments of one record each, an hour apart, nothing of them in memory."""
    manager = open_manager(str(tmp_path), clock=clock, topic=settings)
    log = manager.create_log("t", 0, TOPIC_ID, settings)
    for number in range(4):
        append(log, b"%d" % number, timestamp_ms=NOW_MS + number * HOUR_MS)
        if number < 3:
            log.roll()
    manager.close()
    again = open_manager(str(tmp_path), clock=clock, topic=settings)
    return again.logs["t", 0]  # type: ignore[index]


def test_a_survey_reads_what_the_decision_needs(tmp_path: Path, clock: ManualClock) -> None:
    settings = config(retention_ms=HOUR_MS)
    log = _reopened(tmp_path, clock, settings)
    segments = list(log.segments)
    assert retention.unsurveyed(segments, settings) == segments
    candidates = survey(log.files, segments, NOW_MS + HOUR_MS + 1)
    assert [candidate.max_timestamp for candidate in candidates] == [
        NOW_MS, NOW_MS + HOUR_MS, NOW_MS + 2 * HOUR_MS, -1,
    ]  # fmt: skip
    for candidate in candidates:
        candidate.segment.note_survey(
            candidate.size_bytes, candidate.max_timestamp, candidate.offset
        )
    assert retention.unsurveyed(segments, settings) == segments[3:]
    assert [segment.size_bytes for segment in segments] == [len(batch(b"0"))] * 4
    assert segments[2].offset_of_max_timestamp == 2
    assert retention.unsurveyed(segments, config(cleanup_policy="compact")) == []


def test_a_survey_passes_by_what_is_not_there_or_cannot_be(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = _reopened(tmp_path, clock, config())
    first, second, third, _ = segments = list(log.segments)
    Path(first.log_path).unlink()
    # What a JVM that was killed leaves of a preallocated index: zeros behind the entries.
    with Path(second.path(".timeindex")).open("ab") as file:
        file.write(bytes(24))
    Path(third.path(".timeindex")).write_bytes(b"odd")
    candidates = survey(log.files, segments, NOW_MS * 2)
    assert [(candidate.segment, candidate.max_timestamp) for candidate in candidates[:2]] == [
        (second, -1),
        (third, -1),
    ]


def test_known_values_are_not_replaced(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    active: Segment = log.active_segment
    active.note_survey(1, 1, 1)
    assert (active.size_bytes, active.max_timestamp) == (len(batch(b"a")), NOW_MS)


def test_a_log_may_expire_if_it_has_records_and_a_limit_of_time(new_log: NewLog) -> None:
    log = new_log(retention_ms=HOUR_MS)
    assert not retention.may_expire(log)
    append(log, b"a")
    assert retention.may_expire(log)
    for_ever = new_log("u", retention_ms=-1)
    append(for_ever, b"a")
    assert not retention.may_expire(for_ever)
    for_ever.roll()
    for_ever.advance_log_start(1)
    assert retention.may_expire(for_ever)
