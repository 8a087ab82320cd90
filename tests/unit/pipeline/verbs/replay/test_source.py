"""The replay's source: ranges that are due, the same ones again after a restart."""

from __future__ import annotations

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.verbs.replay.index import Knot, ReplayIndex, Stretch
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from minibroker.pipeline.verbs.replay.source import ReplayReader, ReplaySource
from tests.support.in_process import ManualClock

STRETCHES = [Stretch("t", 0, 0, 99, 100), Stretch("t", 1, 0, 99, 100)]
A, B = TopicPartition("t", 0), TopicPartition("t", 1)
KNOTS = {A: [Knot(1000, 0), Knot(2000, 50)], B: [Knot(61_000, 0)]}
START = {"t": {"0": 0, "1": 0}}


def reader(*, speed: float | None = None, rows: int = 1000) -> tuple[ReplayReader, ManualClock]:
    clock = ManualClock()
    return ReplayReader(ReplayIndex(STRETCHES, KNOTS), rows=rows, speed=speed, clock=clock), clock


def test_as_fast_as_it_goes_a_batch_has_what_fits() -> None:
    source, _ = reader(rows=50)
    assert source.initialOffset() == START
    first = source.latestOffset(START, source.getDefaultReadLimit())
    assert first == {"t": {"0": 25, "1": 25}}
    assert source.latestOffset(START, ReadAllAvailable()) == source.reportLatestOffset()
    (ranges,) = source.partitions(START, first)
    assert list(source.read(ranges)) == [("t", 0, 0, 25), ("t", 1, 0, 25)]
    assert source.partitions(first, first) == []


@pytest.mark.parametrize("speed", [0.5, 1.0, 60.0])
def test_at_a_speed_time_goes_so_much_faster(speed: float) -> None:
    source, clock = reader(speed=speed)
    limit = ReadMaxRows(1000)
    now = source.latestOffset(START, limit)
    assert now == {"t": {"0": 50, "1": 0}}
    clock.advance(round(999 / speed))
    if speed <= 1:
        assert source.latestOffset(now, limit) == now
    clock.advance(max(1, round(2 / speed)))
    now = source.latestOffset(now, limit)
    assert now == {"t": {"0": 100, "1": 0}}
    clock.advance(round(59_100 / speed))
    assert source.latestOffset(now, limit) == source.reportLatestOffset()


def test_after_a_restart_it_goes_on_at_once_with_what_is_due_next() -> None:
    source, _ = reader(speed=1.0)
    positions = {"t": {"0": 100, "1": 0}}
    assert source.latestOffset(positions, ReadMaxRows(1000)) == {"t": {"0": 100, "1": 100}}


def test_a_partition_that_came_later_begins_at_its_first_record() -> None:
    source, _ = reader()
    positions = {"t": {"0": 100}}
    end = source.latestOffset(positions, ReadMaxRows(1000))
    assert end == {"t": {"0": 100, "1": 100}}
    assert list(source.read(source.partitions(positions, end)[0])) == [("t", 1, 0, 100)]


def test_it_is_made_of_a_file_with_the_index(tmp_path: object) -> None:
    from pathlib import Path  # noqa: PLC0415

    path = Path(str(tmp_path)) / "index.json"
    path.write_text(ReplayIndex(STRETCHES, KNOTS).to_json())
    source = ReplaySource({"index": str(path), "rows": "10", "speed": ""})
    assert source.streamReader(source.schema()).initialOffset() == START


def test_its_progress_is_beside_the_archive_for_each_topic() -> None:
    assert ReplayPlan(Kafka(), "d", "t").checkpoint == "d/_minibroker/replays/t"
    assert ReplayPlan(Kafka(), "d", "t", checkpoint_directory="c").checkpoint == "c"
