"""A follower takes what its leader has, from wherever it stands."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

from minibroker.ids import TopicPartition
from tests.support.in_process import batch_of
from tests.support.waiting import eventually
from tests.unit.partitions.conftest import Claim
from tests.unit.replication.records import append, content, until_equal

if TYPE_CHECKING:
    import pytest

    from tests.unit.replication.conftest import Pair


async def test_a_follower_gets_every_batch_as_it_is(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a", b"b")
    append(pair, b"c")
    await until_equal(pair)
    assert pair.on(1).log_end_offset == 3
    assert pair.on(1).log.epochs.entries == [(0, 0)]


async def test_a_follower_goes_on_after_a_stop(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.stop(1)
    append(pair, b"b")
    await pair.start(1)
    append(pair, b"c")
    await until_equal(pair)
    assert pair.on(1).log_end_offset == 3


async def test_a_follower_begins_anew_where_its_leader_begins(pair: Pair) -> None:
    """The leader has deleted what the follower misses."""
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.stop(1)
    for value in (b"b", b"c", b"d"):
        append(pair, value)
    await eventually(lambda: pair.on(0).high_watermark == 4)  # the other one has left the ISR
    leader = pair.by_id[0].partitions
    leader.delete_records(leader.get("t", 0), 3)
    await pair.start(1)
    await until_equal(pair)
    assert pair.on(1).log_start_offset == 3


async def test_a_leader_that_comes_back_follows_and_drops_what_nobody_else_has(pair: Pair) -> None:
    await pair.create()
    append(pair, b"on both")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()  # it fetches nothing any more
    append(pair, b"on one")
    await pair.stop(0)
    await eventually(lambda: pair.on(1).is_leader)
    append(pair, b"instead", broker_id=1)
    await pair.start(0)
    await until_equal(pair)
    assert b"instead" in content(pair.on(0))
    assert b"on one" not in content(pair.on(0))
    assert pair.on(0).log.epochs.entries == pair.on(1).log.epochs.entries


async def test_a_partition_that_cannot_be_fetched_rests_and_the_others_go_on(pair: Pair) -> None:
    await pair.create()
    await pair.by_id[0].broker.cluster.create_topic("u", assignment={0: [0, 1]})
    other = pair.by_id[1].partitions
    await eventually(lambda: other.replica("u", 0) is not None)
    append(pair, b"a")
    leading = pair.by_id[0].partitions
    gone = leading._topics["u"]
    leading._topics["u"] = {}  # the leader knows nothing of it for a moment
    append(pair, b"b")
    await until_equal(pair)
    leading._topics["u"] = gone
    leading.get("u", 0).append(memoryview(batch_of(b"c")), 1, pair.clock.now_ms(), Claim())
    leading.commit()
    await eventually(lambda: other.replica("u", 0).log_end_offset == 1)  # type: ignore[union-attr]


async def test_a_deleted_partition_is_asked_for_no_more(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    await pair.by_id[0].broker.cluster.delete_topic("t")
    await eventually(lambda: pair.replica(1) is None)
    fetcher._wake.set()
    await eventually(lambda: fetcher.is_idle)


async def test_a_leader_that_is_away_is_logged_once(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    tries = 0

    async def refuse(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise ConnectionError("refused")

    fetcher._peers = SimpleNamespace(call=refuse)  # type: ignore[assignment]
    await eventually(lambda: tries == 3)
    lines = [record.getMessage() for record in caplog.records]
    assert lines.count("cannot fetch from broker 0: refused") == 1


async def test_a_partition_that_leaves_during_a_failed_request_does_not_rest(pair: Pair) -> None:
    """Otherwise the fetcher would look for the end of that rest without a pause, for ever."""
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    is_asked, may_fail = asyncio.Event(), asyncio.Event()

    async def fail_later(*_: object, **__: object) -> None:
        is_asked.set()
        await may_fail.wait()
        raise ConnectionError("reset")

    fetcher._peers = SimpleNamespace(call=fail_later)  # type: ignore[assignment]
    await is_asked.wait()
    fetcher.remove(TopicPartition("t", 0))
    may_fail.set()
    await eventually(lambda: fetcher._is_failing)
    assert fetcher._resting == {}
