"""The next records of an archive, and the times when they are due."""

from __future__ import annotations

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.verbs.replay.index import Knot, ReplayIndex, Stretch, knot_ms

A, B = TopicPartition("t", 0), TopicPartition("t", 1)

STRETCHES = [
    Stretch("t", 0, 100, 199, 100),
    Stretch("t", 0, 0, 99, 100),
    Stretch("t", 1, 50, 1049, 100),  # compacted: a tenth is left
]
KNOTS = {A: [Knot(1000, 0), Knot(2000, 150), Knot(3000, 120)], B: [Knot(2500, 50)]}


def test_it_begins_and_ends_where_the_files_do() -> None:
    index = ReplayIndex(STRETCHES)
    assert index.partitions == [A, B]
    assert index.starts() == {A: 0, B: 50}
    assert index.ends() == {A: 200, B: 1050}
    assert index.started({A: 7}) == {A: 7, B: 50}


def test_a_batch_is_shared_out_by_the_records_that_are_left() -> None:
    index = ReplayIndex(STRETCHES)
    assert index.advance({}, 300) == {A: 200, B: 1050}
    assert index.advance({}, 30) == {A: 20, B: 50 + 100}
    assert index.advance({A: 150}, 15) == {A: 155, B: 50 + 100}
    assert index.advance({A: 200}, 50) == {A: 200, B: 550}


def test_a_batch_goes_over_the_end_of_a_file() -> None:
    index = ReplayIndex(STRETCHES[:2])
    assert index.advance({A: 90}, 50) == {A: 140}
    assert index.advance({A: 100}, 1) == {A: 101}


def test_every_batch_goes_on_until_all_is_done() -> None:
    index, places, batches = ReplayIndex(STRETCHES), {}, 0
    while places != index.ends():
        old_places, places = places, index.advance(places, 1)
        assert old_places != places
        batches += 1
    assert batches <= 1200


def test_a_record_is_due_when_all_before_it_are() -> None:
    index = ReplayIndex(STRETCHES, KNOTS)
    # 120 is of 3000, and so all behind it wait until then, whatever their own time says.
    assert index.due(999) == {A: 0, B: 50}
    assert index.due(1000) == {A: 120, B: 50}
    assert index.due(2000) == {A: 120, B: 50}
    assert index.due(2500) == {A: 120, B: 1050}
    assert index.due(3000) == index.ends()


def test_when_the_next_record_is_due() -> None:
    index = ReplayIndex(STRETCHES, KNOTS)
    assert index.next_due_ms({}) == 1000
    assert index.next_due_ms({A: 200}) == 2500
    assert index.next_due_ms({A: 130}) == 2500
    assert index.next_due_ms(index.ends()) is None
    assert ReplayIndex(STRETCHES).next_due_ms({}) is None


def test_it_survives_as_json() -> None:
    index = ReplayIndex.from_json(ReplayIndex(STRETCHES, KNOTS).to_json())
    assert index.to_json() == ReplayIndex(STRETCHES, KNOTS).to_json()
    assert index.due(1000) == {A: 120, B: 50}


def test_time_is_told_apart_as_finely_as_fits() -> None:
    assert knot_ms(0, 1000, 1.0, 1) == 100
    assert knot_ms(0, 1000, 60.0, 1) == 6000
    assert knot_ms(0, 1000, 0.001, 1) == 1
    assert knot_ms(0, 10**10, 1.0, 1) == 200_000


def test_times_of_many_partitions_are_coarser() -> None:
    assert knot_ms(0, 10**10, 1.0, 20) == 200_000
    assert knot_ms(0, 10**10, 1.0, 10_000) == 10**8
