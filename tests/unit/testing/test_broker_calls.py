"""Calls for one broker of a cluster; `test_broker` has those of a broker alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.kafka.errors import KafkaError
from minibroker.testing import Cluster
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(2, topics=["t:1"]) as started:
        started.make_leader(0, "t")
        yield started


def test_each_broker_shows_its_own_replica(cluster: Cluster) -> None:
    leader, follower = cluster.brokers
    assert cluster.bootstrap == f"{leader.bootstrap},{follower.bootstrap}"
    assert leader.produce("t", "x", key="k").offset == 0
    for broker in (leader, follower):
        wait_until(lambda broker=broker: broker.records("t") != [], "it has the record")  # type: ignore[misc]
        assert [record.text for record in broker.records("t")] == ["x"]
        assert broker.topics == {"t": 1}
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        follower.produce("t", "y")


def test_a_wait_on_a_follower_ends_when_the_record_is_there(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partition may not be on the broker yet, and is followed then."""
    monkeypatch.setattr(slices, "SLICE_S", -1.0)  # brokers hear of a topic one after another
    leader, follower = cluster.brokers
    assert leader.produce("t", "x").offset == 0
    assert [record.text for record in follower.wait_for("t", 1)] == ["x"]
    cluster.create_topic("later", 3)
    assert [broker.topics.get("later") for broker in cluster.brokers] == [3, 3]
    on = cluster.leader("later", 2)
    cluster.broker(on).produce("later", "y", partition=2)
    assert [record.text for record in cluster.broker(1 - on).wait_for("later", 1)] == ["y"]


async def test_calls_that_wait_have_an_async_form(cluster: Cluster) -> None:
    leader = cluster.broker(0)
    leader.produce("t", ["x", "y"])
    assert len(await leader.wait_for_async("t", 2)) == 2
    found = await leader.wait_for_requests_async("Fetch")
    assert found[0].api == "Fetch"


def test_a_killed_broker_says_so(cluster: Cluster) -> None:
    cluster.kill(1)
    with pytest.raises(RuntimeError, match="this broker was killed"):
        _ = cluster.broker(1).topics
    assert "this broker was killed by a fault" in cluster.report()
    with pytest.raises(ValueError, match="there is no broker 2, they are 0 to 1"):
        cluster.broker(2)
