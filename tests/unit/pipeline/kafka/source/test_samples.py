"""The first records of ranges, of a broker in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.client.client import Client
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.kafka.source.samples import sample
from minibroker.pipeline.offsets import OffsetRange
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def sampled(
    broker: Broker, spans: Sequence[OffsetRange], records_max: int = 2, **more: str
) -> dict[tuple[str, int], list[int]]:
    """Return start of a range → the offsets of its first records."""
    all_settings = {"kafka.bootstrap.servers": broker.bootstrap, "subscribePattern": ".*", **more}
    source_options = options.parse(all_settings, streaming=True)
    settings = connection_settings(source_options.settings)
    samples = sample(source_options, settings, Client(settings), spans, records_max)
    return {(span.topic, span.start): [record.offset for record in some] for span, some in samples}


def test_a_range_has_its_first_records_wherever_batches_begin(broker: Broker) -> None:
    broker.produce("a", [b"x"] * 10)
    broker.produce("a", [b"y"] * 10)
    broker.produce("b", [b"z"])
    spans = [OffsetRange("a", 0, 7, 20), OffsetRange("b", 0, 0, 1)]
    assert sampled(broker, spans, 4) == {("a", 7): [7, 8, 9, 10], ("b", 0): [0]}
    assert sampled(broker, [OffsetRange("a", 0, 7, 8)]) == {("a", 7): [7]}
    assert sampled(broker, [OffsetRange("a", 0, 7, 7)]) == {}


def test_partitions_with_errors_have_no_records_and_the_others_have(broker: Broker) -> None:
    broker.produce("here", [b"x"] * 3)
    spans = [
        OffsetRange("missing", 0, 0, 3),
        OffsetRange("here", 0, 1, 3),
        OffsetRange("here", 5, 0, 3),
    ]
    assert sampled(broker, spans) == {("here", 1): [1, 2]}
    assert sampled(broker, [OffsetRange("here", 0, 50, 60)]) == {}


def test_aborted_records_are_skipped_for_a_committed_reader(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
    producer.init_transactions()
    for ends in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce("ended", b"x", partition=0)
        producer.flush()
        ends()
    span = OffsetRange("ended", 0, 0, 4)
    committed = sampled(broker, [span], **{"kafka.isolation.level": "read_committed"})
    assert list(committed.values()) == [[2]]
    assert list(sampled(broker, [span]).values()) == [[0, 2]]
