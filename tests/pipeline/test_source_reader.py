"""The task's half of the source, without Spark: ranges end exactly, with any records there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client import client as client_module
from minibroker.client.connection import BlockingConnection
from minibroker.kafka.protocol.messages.fetch import FetchRequest
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options, preflight
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.source import range_reader as wire_reader
from minibroker.pipeline.kafka.source import reader
from minibroker.pipeline.kafka.source.batch import plan
from minibroker.pipeline.kafka.source.reader import read_range
from minibroker.pipeline.offsets import OffsetRange
from minibroker.testing import Cluster
from tests.pipeline import topics

if TYPE_CHECKING:
    from minibroker.client.settings import ClientSettings

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


@pytest.fixture
def soon_suspicious(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the broker after 0.1, 0.2 and 0.4 s of silence, not after 1, 2 and 4."""
    monkeypatch.setattr(wire_reader, "UNKNOWN_PAUSES_S", (0.1, 0.2, 0.4))


def options_of(address: str, topic: str, **more: str) -> options.SourceOptions:
    settings = {"kafka.bootstrap.servers": address, "subscribe": topic}
    more = {name.replace("_", "."): value for name, value in more.items()}
    return options.parse(settings | more, streaming=False)


def offsets_read(source_options: options.SourceOptions, span: OffsetRange) -> list[int]:
    return [
        offset
        for batch in read_range(source_options, span)
        for offset in batch.column("offset").to_pylist()
    ]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_range_ends_exactly_between_markers_and_aborted_records(
    address: str, topic: str, isolation: str
) -> None:
    """Every start with every third end of a topic of 30 offsets, six markers among them."""
    topics.fill_transactional(address, topic)
    source_options = options_of(address, topic, kafka_isolation_level=isolation)
    [whole] = plan(source_options)
    offsets = [offset for offset, _, _ in topics.read_all(address, topic, isolation=isolation)]
    assert whole.end == 30
    assert len(offsets) == (15 if isolation == "read_committed" else 24)

    for start in range(0, 30, 4):
        for end in range(start + 1, 31, 3):
            offsets_in_range = offsets_read(source_options, whole._replace(start=start, end=end))
            assert offsets_in_range == [offset for offset in offsets if start <= offset < end], (
                start,
                end,
            )


def test_nothing_but_an_aborted_transaction_is_an_empty_range(address: str, topic: str) -> None:
    topics.fill_aborted_at_the_end(address, topic)
    more = {"kafka.isolation.level": "read_committed"}
    source_options = options_of(address, topic, **more)
    [whole] = plan(source_options)

    assert whole == OffsetRange(topic, 0, 0, 3)
    assert offsets_read(source_options, whole) == [0]
    assert offsets_read(source_options, whole._replace(start=1)) == []


def test_a_committed_reader_ends_where_a_transaction_is_open(address: str, topic: str) -> None:
    topics.create(address, topic)
    topics.send(address, topic, 2)
    client = topics.producer(address, transactional_id=f"open-{topic}")
    client.init_transactions(topics.SECONDS)
    client.begin_transaction()
    client.produce(topic, b"not yet", partition=0)
    assert client.flush(topics.SECONDS) == 0

    committed = plan(options_of(address, topic, kafka_isolation_level="read_committed"))
    uncommitted = plan(options_of(address, topic))
    client.abort_transaction(topics.SECONDS)

    assert committed == [OffsetRange(topic, 0, 0, 2)]
    assert uncommitted == [OffsetRange(topic, 0, 0, 3)]


def test_a_range_ends_exactly_in_the_gaps_of_compaction(address: str, topic: str) -> None:
    topics.fill_compacted(address, topic)
    source_options = options_of(address, topic)
    [whole] = plan(source_options)
    assert whole.end == 400
    offsets = [offset for offset, _, _ in topics.read_all(address, topic)]

    for start, end in ((0, 400), (0, 1), (0, 200), (3, 5), (150, 391), (200, 390), (399, 400)):
        offsets_in_range = offsets_read(source_options, whole._replace(start=start, end=end))
        assert offsets_in_range == [offset for offset in offsets if start <= offset < end]


def delete_before(address: str, topic: str, offset: int) -> None:
    """Send DeleteRecords: the log starts at `offset` from now on."""
    client = topics.AdminClient({"bootstrap.servers": address})
    place = topics.TopicPartition(topic, 0, offset)
    for answer in client.delete_records([place]).values():
        answer.result(topics.SECONDS)


def test_deleted_records_are_data_loss_or_left_out(address: str, topic: str) -> None:
    topics.create(address, topic)
    topics.send(address, topic, 10)
    delete_before(address, topic, 6)

    with pytest.raises(PipelineError, match=r"from offset 2 to before offset 10 are gone .*failOn"):
        offsets_read(options_of(address, topic), OffsetRange(topic, 0, 2, 10))

    tolerant = options_of(address, topic, failOnDataLoss="false")
    assert offsets_read(tolerant, OffsetRange(topic, 0, 2, 9)) == [6, 7, 8]
    assert offsets_read(tolerant, OffsetRange(topic, 0, 2, 5)) == []
    assert offsets_read(tolerant, OffsetRange(topic, 0, 20, 25)) == []


@pytest.mark.usefixtures("soon_suspicious")
def test_a_topic_that_is_gone_is_data_loss_or_left_out(address: str, topic: str) -> None:
    span = OffsetRange(f"{topic}-never", 0, 0, 5)

    with pytest.raises(PipelineError, match="are gone"):
        offsets_read(options_of(address, span.topic), span)
    tolerant = options_of(address, span.topic, failOnDataLoss="false")
    assert offsets_read(tolerant, span) == []


def test_a_topic_made_anew_while_it_is_read_is_data_loss(
    minibroker_address: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records have the offsets of the old ones: only its id tells."""
    monkeypatch.setattr(wire_reader, "CHUNK_RECORDS", 1)
    topics.create(minibroker_address, topic)
    for _ in range(5):
        topics.send(minibroker_address, topic, 2)
    ids = json.dumps(preflight.topic_ids(Kafka(minibroker_address), [topic]))
    small = {"kafka.max.partition.fetch.bytes": "100", "topicIds": ids}
    source_options = options_of(minibroker_address, topic, **small)
    [whole] = plan(source_options)
    batches = read_range(source_options, whole)
    assert next(batches).num_rows == 2
    topics.delete(minibroker_address, topic)
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 20)
    with pytest.raises(
        PipelineError,
        match=r"from offset \d+ to before offset 10 are gone: the topic was made anew",
    ):
        list(batches)


def test_an_end_that_does_not_come_is_not_waited_for_longer_than_told(
    minibroker_address: str, topic: str
) -> None:
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 3)
    source_options = options_of(minibroker_address, topic, **{"kafkaConsumer.pollTimeoutMs": "300"})

    with pytest.raises(PipelineError, match=r"nothing came for .* offset 3 to before offset 7"):
        offsets_read(source_options, OffsetRange(topic, 0, 0, 7))


@pytest.mark.usefixtures("soon_suspicious")
def test_the_tasks_ask_for_no_topic_to_be_made(minibroker_address: str, topic: str) -> None:
    name = f"{topic}-not-there"
    source_options = options_of(minibroker_address, name, failOnDataLoss="false")

    assert offsets_read(source_options, OffsetRange(name, 0, 0, 5)) == []
    client = topics.AdminClient({"bootstrap.servers": minibroker_address})
    assert name not in client.list_topics(timeout=topics.SECONDS).topics


def test_large_records_make_small_batches(minibroker_address: str, topic: str) -> None:
    """60 records of 200 KB: no batch takes more than 4 MB and one record."""
    topics.create(minibroker_address, topic)
    client = topics.producer(minibroker_address)
    for _ in range(60):
        client.produce(topic, b"x" * 200_000, partition=0)
    assert client.flush(topics.SECONDS) == 0
    source_options = options_of(minibroker_address, topic)

    sizes = [batch.nbytes for batch in read_range(source_options, OffsetRange(topic, 0, 0, 60))]

    assert len(sizes) >= 3
    assert sum(sizes) > 60 * 200_000


def test_a_worker_connects_once_for_all_its_ranges(
    minibroker_address: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections wait for the next task, and are closed when nobody takes them."""
    connections: list[BlockingConnection] = []
    really_open = BlockingConnection.open

    def noting_open(settings: ClientSettings, address: tuple[str, int]) -> BlockingConnection:
        connections.append(really_open(settings, address))
        return connections[-1]

    monkeypatch.setattr(BlockingConnection, "open", noting_open)
    topics.create(minibroker_address, topic, 3)
    for partition in range(3):
        topics.send(minibroker_address, topic, 10, partition=partition)
    source_options = options_of(minibroker_address, topic, **{"kafka.client.id": topic})
    ranges = [OffsetRange(topic, partition, 0, 10) for partition in range(3)]

    for _ in range(2):
        assert sum(batch.num_rows for batch in reader.read_ranges(source_options, ranges)) == 30
    assert len({connection.address for connection in connections}) == len(connections)
    old_count = len(connections)
    monkeypatch.setattr(client_module, "IDLE_S", 0.0)
    assert sum(batch.num_rows for batch in reader.read_ranges(source_options, ranges[:1])) == 10
    assert len(connections) > old_count
    client_module.close_idle()
    assert {connection.is_closed for connection in connections} == {True}


def test_another_client_is_refused(minibroker_address: str) -> None:
    for client in ("auto", "wire"):
        options_of(minibroker_address, "t", fetchWith=client)
    with pytest.raises(PipelineError, match="fetchWith=librdkafka: it does not read any more"):
        options_of(minibroker_address, "t", fetchWith="librdkafka")


@pytest.mark.parametrize("rack", ["b", "elsewhere"])
def test_a_reader_reads_from_the_follower_in_its_rack(
    topic: str, rack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader serves it where it has none (KIP-392)."""
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "replica.fetch.wait.max.ms": 50,
        "default.replication.factor": 2,
    }
    brokers: list[int] = []
    with Cluster(2, config=settings, racks=["a", "b"], topics=[topic]) as cluster:
        ports = {cluster.node(number).app.ports["PLAINTEXT"]: number for number in (0, 1)}
        send = BlockingConnection.send

        def noting_send(
            self: BlockingConnection, request: Any, response: Any, version: int
        ) -> None:
            if request.API_KEY == FetchRequest.API_KEY:
                brokers.append(ports[self.address[1]])
            send(self, request, response, version)

        monkeypatch.setattr(BlockingConnection, "send", noting_send)
        topics.send(cluster.bootstrap, topic, 10)
        cluster.wait_until_in_sync()
        small = {"kafka.client.rack": rack, "kafka.max.partition.fetch.bytes": "1"}
        source_options = options_of(cluster.bootstrap, topic, **small)
        monkeypatch.setattr(wire_reader, "CHUNK_RECORDS", 1)
        leader = cluster.leader(topic)
        nearest = 1 if rack == "b" else leader
        assert offsets_read(source_options, OffsetRange(topic, 0, 0, 10)) == list(range(10))
        assert brokers[0] == leader
        assert set(brokers[1:]) <= {nearest}
