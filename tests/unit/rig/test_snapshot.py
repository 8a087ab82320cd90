"""A snapshot: what it has of brokers in every state, and its bounds."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.rig import snapshot as module
from minibroker.rig.faults import Fault
from minibroker.rig.snapshot import FaultSnapshot
from minibroker.testing import Broker, Cluster


def test_the_last_records_of_a_topic_are_there_and_long_ones_are_cut() -> None:
    with Broker(topics=["t:2", "compacted:1:cleanup.policy=compact", "many:40"]) as broker:
        broker.produce("t", [f"value {number}" for number in range(70)], partition=0)
        broker.produce("t", b"x" * 9_000, partition=1, headers={"h": b"y" * 5_000})
        broker.produce("many", [str(number) for number in range(9)], partition=39)
        topics = {topic.name: topic for topic in broker.snapshot().topics}
    assert list(topics) == ["compacted", "many", "t"]
    assert topics["compacted"].configs == {"cleanup.policy": "compact"}
    records = topics["t"].records
    assert [item.record.offset for item in records] == [*range(20, 70), 0]
    long = records[-1]
    assert (len(long.record.value or b""), long.sizes) == (4096, (0, 9_000))
    assert [len(data or b"") for _, data in long.record.headers] == [4096]
    assert long.header_sizes == (5_000,)
    assert [item.record.text for item in topics["many"].records] == ["4", "5", "6", "7", "8"]
    first, second = topics["t"].partitions
    assert (first.number, first.leader, first.replicas, first.in_sync) == (0, 0, (0,), (0,))
    assert (first.start_offset, first.end_offset, second.end_offset) == (0, 70, 1)


def test_an_open_transaction_is_told_with_its_partitions() -> None:
    with Broker(topics=["t"]) as broker:
        settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        producer = Producer({**settings, "transactional.id": "mover"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("t", b"v")
        assert producer.flush(60) == 0
        snapshot = broker.snapshot()
        producer.abort_transaction(60)
    (transaction,) = snapshot.transactions
    assert transaction.transactional_id == "mover"
    assert (transaction.state, transaction.partitions) == ("Ongoing", [("t", 0)])
    (topic,) = [topic for topic in snapshot.topics if not topic.is_internal]
    (partition,) = topic.partitions
    assert (partition.open_offset, partition.end_offset) == (0, 1)
    assert [topic.records for topic in snapshot.topics if topic.is_internal] == [[]]


def test_a_killed_broker_shows_its_state_and_its_requests() -> None:
    with Cluster(2, topics=["t:2"]) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        producer.produce("t", b"v", partition=0)
        producer.produce("t", b"v", partition=1)
        assert producer.flush(60) == 0
        cluster.kill(1)
        snapshot = cluster.snapshot()
    assert [broker.state for broker in snapshot.brokers] == ["running", "killed"]
    assert {exchange.broker for exchange in snapshot.exchanges} == {"broker 0", "broker 1"}
    (topic,) = snapshot.topics
    assert {partition.leader for partition in topic.partitions} <= {0, 1, -1}


def test_of_brokers_that_are_all_killed_the_requests_remain() -> None:
    with Broker(topics=["t"]) as broker, broker.faults.add(broker="killed"):
        snapshot = broker.snapshot()
    assert [item.state for item in snapshot.brokers] == ["killed"]
    assert (snapshot.topics, snapshot.groups, snapshot.transactions) == ([], [], [])
    assert snapshot.notes == ["Every broker was killed: only its requests are here."]
    assert [fault.effect for fault in snapshot.faults] == ["killed"]


def test_settings_are_those_that_are_no_defaults_without_secrets() -> None:
    with Broker(config={"message.max.bytes": 7_000}, users={"alice": "pass-of-alice"}) as broker:
        settings = dict(broker.snapshot().settings)
        assert broker.secrets() == {"pass-of-alice"}
    assert settings["message.max.bytes"] == "7000"
    assert "(hidden)" in settings.values()
    assert "pass-of-alice" not in str(settings)


def test_requests_before_a_time_and_beyond_a_number_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REQUESTS_MAX", 2)
    with Broker(topics=["t"]) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce("t", b"v")
        assert producer.flush(60) == 0
        count = len(broker.requests)
        snapshot = broker.snapshot()
        last_ms = snapshot.exchanges[-1].at_ms
        later = broker.snapshot(since_ms=last_ms + 1)
    assert [exchange.number for exchange in snapshot.exchanges] == [1, 2]
    assert snapshot.exchanges[-1].api == "Produce"
    assert snapshot.notes == [f"Left out: {count - 2} earlier requests."]
    assert (later.exchanges, later.notes) == ([], [])


def test_topics_beyond_a_number_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOPICS_MAX", 1)
    monkeypatch.setattr(module, "PARTITIONS_MAX", 2)
    with Broker(topics=["a:3", "b"]) as broker:
        snapshot = broker.snapshot()
    (topic,) = snapshot.topics
    assert (topic.name, len(topic.partitions)) == ("a", 2)
    assert snapshot.notes == ["Left out: 1 topic.", "Left out: 1 partition of a."]


@pytest.mark.parametrize(
    ("fault", "rule", "effect"),
    [
        (
            Fault(delay_ms=5, partition=0, version=0),
            "any request, partition=0, version=0",
            "delay 5 ms",
        ),
        (Fault("Produce", drop="after", skip=2), "Produce, skip=2", "dropped after it was handled"),
        (Fault(login="sasl_slow", delay_ms=9), "sasl_slow", "sasl slow, delay 9 ms"),
        (Fault(broker="cut_off", peer=1), "broker, peer=1", "cut off"),
    ],
)
def test_a_rule_is_told_by_what_it_meets(fault: Fault, rule: str, effect: str) -> None:
    assert FaultSnapshot.of(fault) == (rule, effect, 0, False)


def test_records_and_offsets_beyond_a_number_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORDS_OF_ALL_MAX", 3)
    monkeypatch.setattr(module, "OFFSETS_MAX", 1)
    with Broker(topics=["a", "b:2", "c"]) as broker:
        for topic in ("a", "b", "c"):
            broker.produce(topic, ["1", "2"])
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        places = [TopicPartition("a", 0, 1), TopicPartition("b", 0, 1)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()
        snapshot = broker.snapshot()
    counts = {topic.name: len(topic.records) for topic in snapshot.topics if not topic.is_internal}
    assert counts == {"a": 2, "b": 2, "c": 0}
    (group,) = snapshot.groups
    assert len(group.offsets) == 1
    assert snapshot.notes == [
        "Left out: records of topics behind b.",
        "Left out: offsets of g beyond 1.",
    ]


def test_records_that_cannot_be_read_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is away")

    monkeypatch.setattr(module, "decoded", refuse)
    with Broker(topics=["a"]) as broker:
        broker.produce("a", "v")
        snapshot = broker.snapshot()
    assert snapshot.notes == ["Records of a-0: KAFKA_STORAGE_ERROR: the disk is away."]
