"""Records written to a broker in this process: where they go, what is stored, what is repeated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client.client import Client
from minibroker.client.produce import OutgoingBatch, parts_of
from minibroker.client.settings import client_settings
from minibroker.client.write import TopicWriter, WriteOptions
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import SEQUENCE_MAX, crc_is_valid, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.partitioner import partition_of
from minibroker.kafka.records.record import Record, decode_records
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as node:
        yield node


@pytest.fixture
def open_writer() -> Iterator[Callable[..., TopicWriter]]:
    """Return a function that opens writers, which are closed at the end."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(TopicWriter.open(*arguments))


Open = Callable[..., TopicWriter]


def client_of(broker: Broker, *, creates_topics: bool = True) -> Client:
    settings = client_settings({"bootstrap.servers": broker.bootstrap})
    return Client(settings, creates_topics=creates_topics)


def test_lines_fill_one_partition_after_the_other(broker: Broker, open_writer: Open) -> None:
    broker.create_topic("lines", partitions=3)
    reports: list[tuple[TopicPartition, int, int]] = []
    options = WriteOptions(batch_bytes=1000)
    writer = open_writer(
        client_of(broker), "lines", options, lambda *report: reports.append(report)
    )
    values = [b"%03d" % number + b"x" * 80 for number in range(60)]
    writer.add_values(values[:30])
    writer.add_values(values[30:])
    writer.flush()
    assert writer.written == 60
    assert sum(count for _, _, count in reports) == 60
    assert len({place for place, _, _ in reports}) == 3
    for place, first, count in reports:
        stored = [record.value for record in broker.records(*place)][first : first + count]
        assert stored == sorted(stored)
    assert sorted(record.value for record in broker.records("lines")) == values


def test_a_key_goes_where_java_puts_it_and_null_is_null(broker: Broker, open_writer: Open) -> None:
    broker.create_topic("keyed", partitions=4)
    writer = open_writer(client_of(broker), "keyed", WriteOptions())
    for number in range(20):
        writer.add_pair(b"k%d" % number, b"v")
    writer.add_pair(b"gone", None)
    writer.add(Record(0, 5, b"whole", b"", (("h", b"1"), ("h", None))), partition=2)
    writer.flush()
    for record in broker.records("keyed"):
        if record.key == b"whole":
            assert (record.partition, record.timestamp, record.value) == (2, 5, b"")
            assert record.headers == (("h", b"1"), ("h", None))
        else:
            assert record.partition == partition_of(record.key, 4)
            assert record.value == (None if record.key == b"gone" else b"v")
    with pytest.raises(KafkaError, match="partitions 0 to 3, not 4"):
        writer.add(Record(0, 5, b"k", b"v"), partition=4)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", [-1, 1, 0])
def test_codecs_and_acks(broker: Broker, codec: str, acks: int, open_writer: Open) -> None:
    topic = f"{codec}.{acks}"
    broker.create_topic(topic)
    writer = open_writer(client_of(broker), topic, WriteOptions(acks=acks, codec=codec))
    writer.add_values([b"a" * 100] * 50)
    writer.flush()
    assert writer.written == 50
    broker.wait_for(topic, 50)
    assert [record.value for record in broker.records(topic)] == [b"a" * 100] * 50


@pytest.mark.parametrize("release", ["0.8.2", "0.10.0", "0.11", "2.8", "4.4"])
def test_any_release_stores_them(release: str, open_writer: Open) -> None:
    with Broker(config={"minibroker.advertised.kafka.version": release}) as broker:
        writer = open_writer(client_of(broker), "t", WriteOptions(codec="gzip"))
        writer.add_values([b"1", None])
        writer.add_pair(b"k", b"3")
        writer.flush()
        records = [(record.key, record.value) for record in broker.records("t")]
        assert records == [(None, b"1"), (None, None), (b"k", b"3")]
        if release < "0.11":
            with pytest.raises(KafkaError, match=r"headers need a broker from Kafka 0.11"):
                writer.add(Record(0, 5, None, b"v", (("h", b""),)))


def test_a_topic_is_made_only_if_brokers_may(broker: Broker, open_writer: Open) -> None:
    with pytest.raises(KafkaError) as refused:
        open_writer(client_of(broker, creates_topics=False), "nobody", WriteOptions())
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    open_writer(client_of(broker), "nobody", WriteOptions())


def test_a_batch_without_an_answer_is_stored_once(broker: Broker, open_writer: Open) -> None:
    """The broker stores it and closes the connection; it is sent again with the same numbers."""
    broker.create_topic("once")
    writer = open_writer(client_of(broker), "once", WriteOptions())
    lost: Any = broker.faults.add("Produce", drop="after", times=1)
    writer.add_values([b"x"] * 10)
    writer.flush()
    assert lost.hits == 1
    assert len(list(broker.records("once"))) == 10


def test_a_record_that_is_too_large_is_refused_by_name(broker: Broker, open_writer: Open) -> None:
    broker.create_topic("small", config={"max.message.bytes": "1000"})
    writer = open_writer(client_of(broker), "small", WriteOptions())
    writer.add_values([b"x" * 300] * 9)
    writer.flush()
    assert len(list(broker.records("small"))) == 9, "a batch that is too large goes in parts"
    writer.add_values([b"x" * 3000])
    with pytest.raises(KafkaError) as refused:
        writer.flush()
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


PLACE = TopicPartition("t", 3)


def batch_of(count: int, *, codec: str = "none", sequence: int = 0) -> OutgoingBatch:
    records = [
        Record(index, 1000 - index, b"k", b"%0100d" % index, (("h", None),))
        for index in range(count)
    ]
    batch = build_batch(
        records,
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=sequence,
        is_transactional=True,
    )
    return OutgoingBatch(PLACE, batch, count)


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_the_parts_have_the_records_and_their_numbers(codec: str) -> None:
    whole = batch_of(10, codec=codec, sequence=SEQUENCE_MAX - 1)
    parts = parts_of(whole, len(whole.records) // 3)

    assert len(parts) > 2
    records_of_parts = [record for part in parts for record in decode_records(part.records)]
    assert [record._replace(offset=0) for record in records_of_parts] == [
        record._replace(offset=0) for record in decode_records(whole.records)
    ]
    next_sequence = SEQUENCE_MAX - 1
    for place, records, rows in parts:
        header = read_header(records)
        assert place == PLACE
        assert crc_is_valid(records, 0, len(records))
        assert header.codec == read_header(whole.records).codec
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch) == (7, 2)
        assert (header.base_sequence, header.count) == (next_sequence, rows)
        next_sequence = (next_sequence + rows) % (SEQUENCE_MAX + 1)


@pytest.mark.parametrize("size_bytes_max", [1, 10**9])
def test_a_batch_has_two_parts_at_least_and_one_for_each_record_at_most(
    size_bytes_max: int,
) -> None:
    parts = parts_of(batch_of(4), size_bytes_max)
    assert [part.rows for part in parts] == ([1] * 4 if size_bytes_max == 1 else [2, 2])
