"""Sizes of records by a look at a broker in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.source.sizes import PARTITIONS_MAX, UNKNOWN_BYTES, RecordSizes
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL, LARGE, EMPTY = TopicPartition("small", 0), TopicPartition("large", 0), TopicPartition("e", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def sizes(address: str) -> RecordSizes:
    settings = {"kafka.bootstrap.servers": address, "subscribePattern": ".*"}
    return RecordSizes(options.parse(settings, streaming=True))


def test_each_topic_has_its_own_size_and_an_unknown_one_the_mean(broker: Broker) -> None:
    broker.produce("small", [b"x" * 100] * 300)
    broker.produce("large", [b"x" * 3_000] * 300)
    looked = sizes(broker.bootstrap)
    assert looked.of("small") == UNKNOWN_BYTES

    looked.measure({SMALL: 0, LARGE: 0}, {SMALL: 300, LARGE: 300}, {})

    assert (looked.of("small"), looked.of("large")) == (100, 3_000)
    assert looked.of("never-seen") == 1_550


def test_a_size_follows_the_records_that_come_next(broker: Broker) -> None:
    broker.produce("small", [b"x" * 100] * 5 + [b"y" * 900] * 300)
    looked = sizes(broker.bootstrap)

    looked.measure({SMALL: 0}, {SMALL: 5}, {})
    first_size = looked.of("small")
    looked.measure({SMALL: 5}, {SMALL: 305}, {})

    assert first_size < looked.of("small") <= 900


def test_a_partition_with_large_batches_does_not_keep_the_others_waiting(broker: Broker) -> None:
    # An answer of 64 KiB has room for one of these records, whichever partition comes first.
    broker.produce("large", [bytes(100_000)] * 500)
    broker.produce("small", [b"x" * 100] * 150)
    looked = sizes(broker.bootstrap)
    looked.measure({LARGE: 0, SMALL: 0}, {LARGE: 500, SMALL: 150}, {})
    assert (looked.of("large"), looked.of("small")) == (100_000, 100)


def test_without_records_nobody_is_asked() -> None:
    looked = sizes("127.0.0.1:1")

    looked.measure({EMPTY: 7}, {EMPTY: 7}, {})

    assert looked.of("e") == UNKNOWN_BYTES


def test_of_many_partitions_some_are_looked_at_new_topics_first() -> None:
    partitions = [TopicPartition("known", number) for number in range(1_000)]
    looked = sizes("127.0.0.1:1")
    looked._means["known"] = 10
    ends = {name: 100 + name.partition for name in partitions} | {LARGE: 5, EMPTY: 0}
    waited = {name: 1 for name in partitions if name.partition != 7}

    chosen = looked._chosen(dict.fromkeys(ends, 0), ends, waited)

    assert len(chosen) == PARTITIONS_MAX
    assert chosen[0] == LARGE
    assert chosen[1] == TopicPartition("known", 7)
    assert EMPTY not in chosen
