"""The throttle of replication: partitions, and the rate over some windows."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.quotas.replication_quota import ReplicationQuota, ReplicationQuotas
from tests.support.in_process import ManualClock

BROKER = 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def quota(clock: ManualClock) -> ReplicationQuota:
    """Return 1000 bytes a second over 11 windows of a second, as Kafka's default windows are."""
    new_quota = ReplicationQuota(clock, window_count=11, window_ms=1000)
    new_quota.bytes_per_s_max = 1000
    return new_quota


def test_a_list_names_the_partitions_of_this_broker(quota: ReplicationQuota) -> None:
    assert not quota.is_active
    quota.mark("t", "0:1, 2:1,3:2,1:11", BROKER)
    assert [n for n in range(5) if quota.is_throttled("t", n)] == [0, 2]
    assert not quota.is_throttled("u", 0)
    quota.mark("t", "*", BROKER)
    assert quota.is_throttled("t", 7)
    quota.mark("t", "5:2", BROKER)
    assert not quota.is_throttled("t", 5)
    quota.mark("t", "", BROKER)
    assert not quota.is_active
    quota.mark("t", "", BROKER)


def test_without_a_rate_nothing_is_exceeded(clock: ManualClock) -> None:
    quota = ReplicationQuota(clock, window_count=11, window_ms=1000)
    quota.record(1 << 40)
    assert not quota.is_exceeded


def test_the_limit_itself_is_not_over_the_limit(quota: ReplicationQuota) -> None:
    quota.record(1000)
    assert not quota.is_exceeded
    quota.record(1)
    assert quota.is_exceeded


def test_a_burst_counts_until_time_has_made_up_for_it(
    quota: ReplicationQuota, clock: ManualClock
) -> None:
    quota.record(5000)
    for _ in range(4):
        clock.advance(1000)
        assert quota.is_exceeded
    clock.advance(1000)
    assert not quota.is_exceeded


def test_a_window_that_is_long_past_counts_no_more(
    quota: ReplicationQuota, clock: ManualClock
) -> None:
    quota.record(100_000)
    clock.advance(11_000)
    assert not quota.is_exceeded
    quota.record(1001)
    assert quota.is_exceeded


def test_the_rate_is_kept_by_a_sender_that_asks_before_each_piece(
    quota: ReplicationQuota, clock: ManualClock
) -> None:
    byte_count = 0
    for _ in range(600):
        if not quota.is_exceeded:
            quota.record(300)
            byte_count += 300
        clock.advance(100)
    assert 57_000 <= byte_count <= 63_000  # a minute


def test_rates_and_replicas_come_from_the_dynamic_configuration(clock: ManualClock) -> None:
    config = BrokerConfig({"broker.id": str(BROKER)})
    dynamic = DynamicConfig(config)
    quotas = ReplicationQuotas(config, dynamic, clock)
    dynamic.subscribe(quotas)
    dynamic.set_broker({"leader.replication.throttled.rate": "10"})
    dynamic.set_cluster_default({"follower.replication.throttled.rate": "20"})
    assert (quotas.leader.bytes_per_s_max, quotas.follower.bytes_per_s_max) == (10, 20)
    dynamic.set_topic(
        "t",
        {
            "leader.replication.throttled.replicas": "0:1",
            "follower.replication.throttled.replicas": "*",
        },
    )
    assert [quotas.leader.is_throttled("t", n) for n in (0, 1)] == [True, False]
    assert quotas.follower.is_throttled("t", 1)
    dynamic.set_topic("t", {})
    dynamic.set_broker({})
    assert not quotas.leader.is_active
    assert not quotas.follower.is_active
    assert quotas.leader.bytes_per_s_max == 2**63 - 1
