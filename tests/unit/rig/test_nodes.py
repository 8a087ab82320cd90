"""Nodes of one cluster; `tests/integration/test_faults_of_cluster.py` has what clients see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Cluster
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, topics=["t:3"]) as started:
        yield started


def test_paused_and_killed_brokers_are_told(cluster: Cluster) -> None:
    with cluster.pause(1, may_miss=True):
        with pytest.raises(ValueError, match="broker 1 is paused: restart or resume it first"):
            cluster.make_controller(1)
        cluster.kill(0)
        cluster.make_leader(2, "t", 2)  # broker 0 or 2 led it
        cluster.kill(2)
        with pytest.raises(RuntimeError, match="all brokers of the cluster are killed or paused"):
            cluster.leader("t")
    wait_until(lambda: cluster.leader("t", 1) == 1, "the broker that is left leads")


def test_the_controller_is_asked_for_the_metadata(cluster: Cluster) -> None:
    cluster.make_controller(2)
    cluster.expire_session(2)
    assert cluster.controller in (0, 1)
    cluster.wait_until_in_sync(60)


def test_a_wait_says_what_it_waited_for(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match=r"waited 0.05 s until in sync of t-0 are \[0\]"):
        cluster.wait_until("t", in_sync=[0], timeout_s=0.05)


async def test_waits_have_an_async_form(cluster: Cluster) -> None:
    await cluster.wait_until_async("t", in_sync=[0, 1, 2])
    with pytest.raises(RuntimeError, match="await wait_until_async"):
        cluster.wait_until("t", in_sync=[0, 1, 2])


def test_reset_makes_a_cluster_as_it_was(cluster: Cluster) -> None:
    cluster.create_topic("more")
    cluster.clock.advance(hours=1)
    cluster.kill(2)
    cluster.reset()
    assert cluster.broker(2).topics == {"t": 3}
    assert cluster.broker(2).requests is not None
    assert abs(cluster.clock.now_ms() - cluster.node(0).app.clock.now_ms()) < 60_000
    assert [cluster.in_sync("t", index) for index in range(3)] == [[0, 1, 2]] * 3
