"""The counter's tests: the windows pass as the test moves the broker's clock."""

import json

import pytest
from windowed_counter import CHANGELOG, COUNTS, GRACE_MS, WINDOW_MS, WORDS, WindowedCounter


@pytest.fixture
def start(kafka):
    """Yield a function that starts counters, at the beginning of a window."""
    started = []
    kafka.clock.advance(milliseconds=WINDOW_MS - kafka.clock.now_ms() % WINDOW_MS)

    def begin():
        started.append(WindowedCounter(kafka.bootstrap))
        return started[-1]

    yield begin
    for counter in started:
        counter.close()


def feed(kafka, counter, *words):
    for word in words:
        kafka.produce(WORDS, word)
    count = len(words)
    while count:
        count -= counter.poll()


def counts(kafka):
    values = [json.loads(record.value) for record in kafka.records(COUNTS)]
    return [(value["word"], value["count"]) for value in values]


def test_the_count_of_a_window_is_written_when_its_grace_is_over(kafka, start):
    counter = start()
    feed(kafka, counter, b"a", b"b", b"a")
    kafka.clock.advance(milliseconds=WINDOW_MS)
    feed(kafka, counter, b"a")
    assert counts(kafka) == []
    kafka.clock.advance(milliseconds=GRACE_MS)
    feed(kafka, counter, b"c")
    assert counts(kafka) == [("a", 2), ("b", 1)]


def test_a_counter_that_is_replaced_loses_no_count(kafka, start):
    feed(kafka, start(), b"a", b"a", b"b")
    second = start()
    assert sorted(second.table.values()) == [1, 2]
    kafka.clock.advance(minutes=2)
    feed(kafka, second, b"end")
    assert counts(kafka) == [("a", 2), ("b", 1)]
    assert [record.value for record in kafka.records(CHANGELOG)].count(None) == 2


def test_a_leader_that_moves_is_not_counted_twice(kafka, start):
    counter = start()
    with kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", topic=CHANGELOG, times=2):
        feed(kafka, counter, b"a")
    kafka.clock.advance(minutes=2)
    feed(kafka, counter, b"end")
    assert counts(kafka) == [("a", 1)]
