"""Replicas count as failed until their broker is started again, or their topic is gone."""

from __future__ import annotations

import pytest

from minibroker.broker.cluster.failed_replicas import FailedReplicas
from minibroker.kafka.ids import TopicPartition


@pytest.fixture
def failed() -> FailedReplicas:
    """Broker 1 failed with `t-0` and `u-3`, broker 2 with `t-0`."""
    replicas = FailedReplicas()
    replicas.add(1, [TopicPartition("t", 0), TopicPartition("u", 3)])
    replicas.add(2, [TopicPartition("t", 0)])
    return replicas


def test_replicas_are_known_by_partition_and_by_broker(failed: FailedReplicas) -> None:
    assert (set(failed.of("t", 0)), set(failed.of("u", 3))) == ({1, 2}, {1})
    assert not failed.of("t", 1)
    assert not failed.of("v", 0)
    assert (failed.has_broker(1), failed.has_broker(3)) == (True, False)


def test_a_controller_says_all_of_a_partition(failed: FailedReplicas) -> None:
    failed.replace("t", 0, {2, 5})
    failed.replace("u", 3, set())
    failed.replace("unknown", 0, set())
    assert set(failed.of("t", 0)) == {2, 5}
    assert not failed.has_broker(1)


def test_brokers_that_are_started_again_have_all_their_replicas(failed: FailedReplicas) -> None:
    assert failed.forget_brokers([]) == []
    assert set(failed.forget_brokers([1])) == {"t", "u"}
    assert (set(failed.of("t", 0)), failed.has_broker(1)) == ({2}, False)


def test_a_topic_that_is_gone_is_forgotten(failed: FailedReplicas) -> None:
    failed.forget_topic("t")
    failed.forget_topic("unknown")
    assert not failed.has_broker(2)
