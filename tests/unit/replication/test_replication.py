"""A broker has a fetcher for each leader that it follows, and none when it is alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.in_process import InProcessBroker
from tests.support.waiting import eventually
from tests.unit.replication.records import append, until_equal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.replication.conftest import Pair


async def test_a_broker_alone_fetches_nothing(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as broker:
        await broker.create_topic("t", 3)
        assert broker.broker.replication._fetchers == {}
        assert broker.broker.replication._peers is None


async def test_a_follower_follows_the_leader_that_there_is_now(pair: Pair) -> None:
    await pair.create(leader=1)
    append(pair, b"a", broker_id=1)
    await until_equal(pair)
    assert list(pair.by_id[0].broker.replication._fetchers) == [1]
    await pair.by_id[0].broker.cluster.reassignments.alter("t", 0, [0, 1])
    await pair.by_id[0].broker.cluster.elect_leader("t", 0, unclean=False)
    await eventually(lambda: pair.on(0).is_leader and not pair.on(1).is_leader)
    append(pair, b"b")
    await until_equal(pair)
    assert pair.by_id[0].broker.replication._fetchers[1].is_idle


async def test_nothing_is_fetched_after_the_end(pair: Pair) -> None:
    await pair.create()
    replication = pair.by_id[1].broker.replication
    await replication.close()
    replication.on_role(pair.on(1))
    assert replication._fetchers == {}
