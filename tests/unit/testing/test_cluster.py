"""Several brokers in the test's process."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.testing import Cluster
from tests.support.in_process import TIMEOUT_S
from tests.support.late_news import late_news, result_after_news
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from confluent_kafka import KafkaError as ClientError
    from confluent_kafka import Message

    from minibroker.testing.cluster import ClusterBroker


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three brokers and a topic with three partitions."""
    with Cluster(3, topics=["t:3"]) as started:
        yield started


def produce(cluster: Cluster, values: list[str]) -> list[str]:
    """Produce with acks=all; return the errors."""
    errors: list[str] = []

    def note(error: ClientError | None, _message: Message) -> None:
        if error is not None:
            errors.append(str(error))

    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 1}
    )
    for value in values:
        producer.produce("t", value, on_delivery=note)
    assert producer.flush(TIMEOUT_S) == 0
    return errors


def consume(cluster: Cluster, count: int) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition("t", partition, 0) for partition in range(3)])
    values: list[str] = []

    def has_all() -> bool:
        values.extend(message.value().decode() for message in consumer.consume(1000, 0.1))
        return len(values) >= count

    wait_until(has_all, f"{count} records")
    consumer.close()
    return values


def test_three_brokers_share_the_partitions(cluster: Cluster) -> None:
    assert {cluster.leader("t", partition) for partition in range(3)} == {0, 1, 2}
    assert cluster.in_sync("t") == [0, 1, 2]
    assert cluster.controller == 0
    assert len(cluster.bootstrap.split(",")) == 3


def test_records_survive_the_leader_and_the_controller(cluster: Cluster) -> None:
    first_values = [f"before-{n}" for n in range(300)]
    after = [f"after-{n}" for n in range(300)]
    assert produce(cluster, first_values) == []
    cluster.kill(0)
    assert produce(cluster, after) == []
    assert sorted(consume(cluster, 600)) == sorted(first_values + after)
    assert cluster.controller in {1, 2}
    cluster.restart(0)
    cluster.wait_until_in_sync()
    assert cluster.in_sync("t") == [0, 1, 2]


def test_committed_offsets_survive_their_coordinator(cluster: Cluster) -> None:
    """A commit is answered when the replicas of its record have it."""
    produce(cluster, [str(n) for n in range(30)])
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["t"])
    results: list[object] = []

    def has_all() -> bool:
        results.extend(consumer.consume(100, 0.1))
        return len(results) >= 30

    wait_until(has_all, "30 records")
    committed = {
        place.partition: place.offset
        for place in consumer.commit(asynchronous=False)
        if place.offset >= 0  # nothing was read from the others
    }
    assert sum(committed.values()) == 30
    cluster.kill(cluster.leader("__consumer_offsets"))
    places = [TopicPartition("t", partition) for partition in committed]
    offsets = consumer.committed(places, TIMEOUT_S)
    assert {place.partition: place.offset for place in offsets} == committed
    consumer.close()


def test_a_killed_broker_is_killed_once_and_keeps_its_address(cluster: Cluster) -> None:
    address = cluster.bootstrap
    cluster.kill(1)
    cluster.kill(1)
    wait_until(lambda: 1 not in cluster.in_sync("t"), "the controller took it out of the ISR")
    cluster.restart(1)
    assert cluster.bootstrap == address


def test_replicas_that_are_behind_are_named(cluster: Cluster) -> None:
    cluster.kill(2)
    wait_until(lambda: cluster.in_sync("t") == [0, 1], "the controller took it out of the ISR")
    with pytest.raises(TimeoutError, match=r"not in sync after 0.1 s: t-0 \(in sync: \[0, 1\]\)"):
        cluster.wait_until_in_sync(0.1)


def test_a_topic_has_as_many_replicas_as_asked_for(cluster: Cluster) -> None:
    cluster.create_topic("single", 2, {"retention.ms": 5}, replication_factor=1)
    assert len(cluster.in_sync("single", 1)) == 1
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.leader("single", 2)


def test_a_record_written_without_a_client_is_committed() -> None:
    """As with acks=all: the follower is paused, so this takes until it leaves the ISR."""
    settings = {"replica.lag.time.max.ms": "500"}
    with Cluster(2, topics=["t"], config=settings) as cluster:
        cluster.make_leader(0, "t")
        cluster.pause(1)
        leader = cluster.broker(0)
        assert leader.produce("t", "x").offset == 0
        assert [record.text for record in leader.records("t")] == ["x"]


def test_a_record_that_replicas_lack_is_an_error(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minibroker.rig.inspector.REPLICATED_S", 0.05)
    cluster.make_leader(0, "t")
    cluster.pause(1)
    with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT: not every replica in sync of t-0 has"):
        cluster.broker(0).produce("t", "x", partition=0)


def test_wrong_use_is_told() -> None:
    with pytest.raises(ValueError, match="brokers=0: a cluster has one broker or more"):
        Cluster(0)
    stopped = Cluster(1)
    with pytest.raises(RuntimeError, match="this cluster is not running"):
        _ = stopped.bootstrap
    with stopped, pytest.raises(ValueError, match="there is no broker 1, they are 0 to 0"):
        stopped.kill(1)
    stopped.stop()


def test_all_brokers_killed_is_told() -> None:
    with Cluster(1, topics=["t"]) as alone:
        alone.kill(0)
        with pytest.raises(RuntimeError, match="all brokers of the cluster are killed"):
            alone.leader("t")


def test_records_are_there_at_the_next_start(tmp_path: Path) -> None:
    for _ in range(2):
        with Cluster(2, topics=["t:3"], data_dir=tmp_path) as cluster:
            assert produce(cluster, ["x"]) == []
    with Cluster(2, data_dir=tmp_path) as cluster:
        assert consume(cluster, 2) == ["x", "x"]


async def test_a_test_in_a_loop_awaits() -> None:
    async with Cluster(2, topics=["t"]) as cluster:
        await cluster.wait_until_in_sync_async()
        with pytest.raises(RuntimeError):
            cluster.wait_until_in_sync()


# In a cluster a call returns when it holds at every broker.


def commit_at(cluster: Cluster, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Commit offsets for a group without members."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    places = [TopicPartition(topic, index, offset) for (topic, index), offset in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def coordinator_of_all(cluster: Cluster) -> ClusterBroker:
    return cluster.broker(cluster.leader("__consumer_offsets"))


def test_a_lag_counts_records_that_other_brokers_lead(cluster: Cluster) -> None:
    for number in range(3):
        cluster.make_leader(number, "t", number)
        cluster.broker(number).produce("t", "x", partition=number)
    commit_at(cluster, "g", {("t", number): 0 for number in range(3)})
    assert coordinator_of_all(cluster).lag("g") == {("t", number): 1 for number in range(3)}
    assert "t-0:1 t-1:1 t-2:1" in cluster.report()


def test_a_report_shows_a_group_whose_partition_has_no_leader(cluster: Cluster) -> None:
    cluster.create_topic("single", replication_factor=1)
    commit_at(cluster, "g", {("single", 0): 0})
    leader = cluster.leader("single")
    other = (leader + 1) % 3
    cluster.make_leader(other, "__consumer_offsets")
    coordinator = cluster.broker(other)

    def has_loaded() -> bool:
        with suppress(KafkaError):
            return coordinator.committed("g") == {("single", 0): 0}
        return False

    wait_until(has_loaded, "the new coordinator has the group")
    cluster.kill(leader)
    wait_until(lambda: cluster.leader("single") == -1, "it has no leader")
    with pytest.raises(KafkaError, match="single"):
        coordinator.lag("g")
    assert "Empty" in coordinator.report()


def test_a_topic_is_known_to_every_broker(cluster: Cluster) -> None:
    broker, late = cluster.broker(1), cluster.broker(2)
    result_after_news(cluster, 2, lambda: broker.create_topic("new", 3))
    result_after_news(cluster, 2, lambda: broker.add_topic("newer:2"))
    assert late.topics == {"t": 3, "new": 3, "newer": 2}
    for broker in cluster.brokers:  # one of them is the controller
        broker.delete_topic("new")
        assert all(each.topics == {"t": 3, "newer": 2} for each in cluster.brokers)
        broker.create_topic("new", 3)


def test_a_wrong_setting_of_a_topic_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="no-such-key"):
        cluster.create_topic("bad", config={"no-such-key": 1})
    assert "bad" not in cluster.broker(0).topics


def test_a_killed_broker_is_not_the_controller(cluster: Cluster) -> None:
    cluster.make_controller(0)
    with late_news(cluster, 1), late_news(cluster, 2):
        cluster.kill(0)
        assert cluster.controller == -1
    wait_until(lambda: cluster.controller in (1, 2), "another broker is the controller")


def test_the_session_of_a_killed_broker_cannot_end(cluster: Cluster) -> None:
    cluster.kill(1)
    with pytest.raises(ValueError, match="broker 1 is killed: restart it first"):
        cluster.expire_session(1)


def test_a_rule_of_several_brokers_outlives_the_restart_of_one(cluster: Cluster) -> None:
    cluster.make_leader(0, "t")
    with (
        cluster.cut(0, 2, may_miss=True),
        cluster.faults.add("Produce", delay_ms=1) as delay,
    ):
        cluster.restart(2)
        assert list(cluster.broker(2).faults) == []
        assert produce(cluster, ["x"]) == []
        assert delay.hits
    assert list(cluster.faults) == []
    cluster.wait_until_in_sync()


def test_a_reset_takes_changes_that_one_broker_knows(cluster: Cluster) -> None:
    """They are at the others when their announcement is."""
    metadata = [node.app.cluster for node in cluster.nodes]

    async def change_and_reset() -> list[object]:
        await metadata[2].alter_config("clients", "c", {"producer_byte_rate": "1000"})
        await metadata[1].alter_config("topics", "t", {"retention.ms": "1000"})
        await metadata[2].alter_config("groups", "g", {"consumer.session.timeout.ms": "50000"})
        await cluster._nodes.reset()
        return [
            {kind: of_kind for kind, of_kind in each.image.configs.items() if of_kind}
            for each in metadata
        ]

    assert cluster._await(change_and_reset()) == [{}, {}, {}]
    leaders = [[part.leader for part in each.image.topics["t"].partitions] for each in metadata]
    assert leaders == leaders[:1] * 3
    assert -1 not in leaders[0]


def test_every_broker_knows_the_replicas_in_sync() -> None:
    with Cluster(3, topics=["t"]) as cluster:
        cluster.make_leader(0, "t")
        cluster.kill(1)
        cluster.wait_until("t", in_sync=[0, 2])

        def restart(wait: Callable[[], None]) -> None:
            cluster.restart(1)
            wait()

        result_after_news(cluster, 2, lambda: restart(cluster.wait_until_in_sync))
        cluster.kill(1)
        cluster.wait_until("t", in_sync=[0, 2])
        wait = partial(cluster.wait_until, "t", in_sync=[0, 1, 2])
        result_after_news(cluster, 2, lambda: restart(wait))
