"""Rules for all brokers of a cluster, and for one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2) as started:
        yield started


def test_a_rule_of_all_is_one_rule(cluster: Cluster) -> None:
    fault = cluster.faults.add("Produce", delay_ms=1)
    of_one = cluster.broker(1).faults.add("Fetch", delay_ms=1, may_miss=True)
    assert list(cluster.faults) == [fault, of_one]
    assert list(cluster.broker(0).faults) == [fault]
    fault.remove()
    assert list(cluster.faults) == [of_one]
    cluster.broker(1).faults.clear()
    assert list(cluster.faults) == []
    assert cluster.faults.missed == [fault]
    cluster.faults.forget()
    assert cluster.faults.missed == []


def test_rules_of_one_broker_are_missed_by_the_cluster(cluster: Cluster) -> None:
    with cluster.broker(1).faults.add("Produce", error="INVALID_RECORD") as fault:
        assert cluster.faults.missed == [fault]
    with cluster.broker(1).faults.add(broker="slow_sync", delay_ms=1):
        assert cluster.faults.missed == [fault]
    cluster.faults.forget()
