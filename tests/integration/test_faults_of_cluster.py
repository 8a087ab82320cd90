"""Faults of several brokers, and of the links between them: what a real client meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from minibroker.kafka.errors import KafkaError
from minibroker.testing import Cluster
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import KafkaError as ClientError
    from confluent_kafka import Message

LAG_MAX_S = 31
"""More than replica.lag.time.max.ms."""
WAIT_S = 180


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three brokers, and a topic that broker 0 leads."""
    with Cluster(3, topics=["t:1:3:min.insync.replicas=3"]) as started:
        started.make_leader(0, "t")
        yield started


class Sender:
    """A producer, and the errors that it was told."""

    def __init__(self, cluster: Cluster, **settings: object) -> None:
        self.errors: list[str] = []
        self.producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0, **settings}
        )

    def send(self, *values: str) -> None:
        for value in values:
            self.producer.produce("t", value, on_delivery=self._note_result)

    def _note_result(self, error: ClientError | None, _message: Message) -> None:
        if error is not None:
            self.errors.append(error.name())

    def flush(self) -> list[str]:
        """Return the errors, when all is delivered or refused."""
        assert self.producer.flush(WAIT_S) == 0
        return self.errors


def send(cluster: Cluster, *values: str, **settings: object) -> list[str]:
    sender = Sender(cluster, **settings)
    sender.send(*values)
    return sender.flush()


def texts(cluster: Cluster, broker_id: int) -> list[str | None]:
    """Return what readers of this broker's replica get."""
    return [record.text for record in cluster.broker(broker_id).records("t")]


def log_end(cluster: Cluster, broker_id: int) -> int:
    """Return the end of a replica's log, committed or not."""
    partitions = cluster.node(broker_id).app.partitions
    end: int = cluster.call(lambda: partitions.hosted("t", 0).log_end_offset)
    return end


def wait_for_texts(cluster: Cluster, broker_id: int, *values: str) -> None:
    wait_until(lambda: texts(cluster, broker_id) == [*values], f"{values} on broker {broker_id}")


ONCE = {"message.send.max.retries": 0}


def test_a_follower_that_is_cut_off_leaves_the_isr_and_comes_back(cluster: Cluster) -> None:
    assert send(cluster, "before") == []
    with cluster.cut(0, 2) as link:
        assert send(cluster, "meanwhile", acks=1) == []
        link.wait(1, WAIT_S)
        cluster.clock.advance(seconds=LAG_MAX_S)
        cluster.wait_until("t", in_sync=[0, 1], timeout_s=WAIT_S)
        assert send(cluster, "refused", **ONCE) == ["NOT_ENOUGH_REPLICAS"]
        assert (log_end(cluster, 0), log_end(cluster, 2)) == (2, 1)
        assert cluster.leader("t") == 0
    cluster.wait_until_in_sync(WAIT_S)
    assert send(cluster, "after") == []
    wait_for_texts(cluster, 2, "before", "meanwhile", "after")


def test_a_link_that_is_cut_one_way_lets_the_other_way_through(cluster: Cluster) -> None:
    """A leader sends nothing to its followers: they fetch."""
    with cluster.cut(0, one_way=True, may_miss=True):
        assert send(cluster, "one") == []
    with cluster.cut(2, 0, one_way=True) as link:
        link.wait(1, WAIT_S)
        assert send(cluster, "two", acks=1) == []
        cluster.clock.advance(seconds=LAG_MAX_S)
        cluster.wait_until("t", in_sync=[0, 1], timeout_s=WAIT_S)
    cluster.wait_until_in_sync(WAIT_S)


def test_a_paused_follower_keeps_acks_all_waiting_until_it_leaves_the_isr(cluster: Cluster) -> None:
    with cluster.pause(1) as pause:
        pause.wait(1, WAIT_S)
        sender = Sender(cluster)
        sender.send("x")
        wait_until(lambda: log_end(cluster, 0) == 1, "the leader has the record")
        assert texts(cluster, 0) == []
        cluster.clock.advance(seconds=LAG_MAX_S)
        cluster.wait_until("t", in_sync=[0, 2], timeout_s=WAIT_S)
        assert texts(cluster, 0) == []  # fewer than min.insync.replicas are in sync
    cluster.wait_until_in_sync(WAIT_S)
    assert sender.flush() == []
    assert "x" in texts(cluster, 0)


def test_a_paused_leader_whose_session_ends_leads_no_more(cluster: Cluster) -> None:
    sender = Sender(cluster, **{"request.timeout.ms": 2000})
    sender.send("before")
    assert sender.flush() == []
    with cluster.pause(0, expire_session=True):
        assert cluster.leader("t") in (1, 2)
        assert cluster.controller in (1, 2)
        cluster.clock.advance(seconds=LAG_MAX_S)
    cluster.wait_until_in_sync(WAIT_S)
    sender.send("after")
    assert sender.flush() == []
    assert cluster.leader("t") in (1, 2)
    assert [texts(cluster, cluster.leader("t"))[n] for n in (0, -1)] == ["before", "after"]


def test_a_slow_follower_delays_what_is_committed(cluster: Cluster) -> None:
    with cluster.slow(2, 5_000) as slow:
        slow.wait(1, WAIT_S)
        assert send(cluster, "x", acks=1) == []
        assert texts(cluster, 0) == []
        cluster.clock.advance(seconds=5)
        wait_until(lambda: slow.hits > 1, "it fetches again")
        cluster.clock.advance(seconds=5)
        wait_for_texts(cluster, 0, "x")
    assert cluster.in_sync("t") == [0, 1, 2]


def test_stale_metadata_lead_a_client_to_the_old_leader(cluster: Cluster) -> None:
    faults = [cluster.hold_metadata(n, may_miss=True) for n in range(3)]
    cluster.make_leader(1, "t")
    sender = Sender(cluster)
    sender.send("x")
    cluster.broker(0).wait_for_requests("Produce", error="NOT_LEADER_OR_FOLLOWER", timeout_s=WAIT_S)
    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics("t", WAIT_S)
    assert metadata.topics["t"].partitions[0].leader == 0
    for fault in faults:
        fault.remove()
    assert sender.flush() == []
    assert texts(cluster, 1) == ["x"]
    assert sum(fault.hits for fault in faults) > 0


def test_the_chosen_broker_is_the_controller(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for chosen in (2, 1, 1, 0):
        cluster.make_controller(chosen)
        assert cluster.controller == chosen
        described = admin.describe_cluster(request_timeout=WAIT_S).result(WAIT_S)
        assert described.controller.id == chosen
    cluster.make_controller(2)
    cluster.kill(cluster.leader("t"))
    wait_until(lambda: cluster.leader("t") in (1, 2), "the new controller elects a leader")


def test_the_chosen_broker_leads_and_clients_follow(cluster: Cluster) -> None:
    sender = Sender(cluster, **{"enable.idempotence": True})
    for number, chosen in enumerate((1, 2, 0)):
        cluster.make_leader(chosen, "t")
        assert cluster.leader("t") == chosen
        sender.send(str(number))
        assert sender.flush() == []
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    values = [message.value() for message in consumer.consume(3, WAIT_S)]
    consumer.close()
    assert values == [b"0", b"1", b"2"]


def test_a_broker_that_cannot_lead_is_told(cluster: Cluster) -> None:
    cluster.kill(2)
    with pytest.raises(ValueError, match="broker 2 is killed: restart or resume it first"):
        cluster.make_leader(2, "t")
    cluster.create_topic("single", replication_factor=1)
    other = next(n for n in (0, 1) if n != cluster.leader("single"))
    with pytest.raises(KafkaError, match="ELIGIBLE_LEADERS_NOT_AVAILABLE") as caught:
        cluster.make_leader(other, "single")
    assert f"broker {other} cannot lead single-0" in str(caught.value)


def test_a_controller_that_loses_its_session_is_followed_by_another(cluster: Cluster) -> None:
    cluster.make_controller(0)
    cluster.expire_session(0)
    assert cluster.controller in (1, 2)
    assert cluster.leader("t") in (1, 2)
    cluster.wait_until_in_sync(WAIT_S)
    assert send(cluster, "x") == []


def test_a_fault_of_all_brokers_meets_a_request_of_any(cluster: Cluster) -> None:
    with cluster.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2) as fault:
        assert send(cluster, "x") == []
    assert fault.hits == 2
    with cluster.broker(1).faults.add("Produce", error="INVALID_RECORD", may_miss=True):
        assert send(cluster, "y") == []  # broker 0 leads


def test_reset_ends_every_fault(cluster: Cluster) -> None:
    assert send(cluster, "x") == []
    cluster.kill(1)
    cluster.pause(2)
    cluster.cut(0)
    cluster.slow(2, 1000)
    cluster.hold_metadata(0)
    cluster.reset()
    assert not list(cluster.faults)
    assert cluster.faults.missed == []
    assert cluster.in_sync("t") == [0, 1, 2]
    assert texts(cluster, 0) == []
    assert send(cluster, "y") == []


def test_faults_that_met_nothing_are_missed(cluster: Cluster) -> None:
    cluster.hold_metadata(0).remove()
    cluster.slow(2, 1000, leader=2).remove()
    cluster.kill(1)
    cluster.restart(1)
    assert [repr(fault) for fault in cluster.faults.missed] == [
        "Fault(broker='stale_metadata', 0 hits)",
        "Fault(broker='slow_follower', 0 hits)",
    ]
