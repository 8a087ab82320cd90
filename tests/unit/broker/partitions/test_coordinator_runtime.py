"""Operations of coordinators: replayed when written, followed when visible, failed in order."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.coordinator_runtime import CoordinatorRuntime, WriteTimeout
from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.timers import Timers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from tests.support.held_disk import HeldDisk
from tests.support.runners import TestRunner
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import partition_image
from tests.unit.broker.partitions.journal_bench import TOPIC, FakeCluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.kafka.records.batch import BatchHeader
    from tests.unit.broker.partitions.conftest import World


TIMEOUT_MS = 5_000


class Letters:
    """A shard: the keys that were recorded, and what became of it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.keys: list[bytes | None] = []
        self.events: list[str] = []

    def replay_batch(self, _header: BatchHeader, records: Sequence[Any]) -> None:
        self.keys += [record.key for record in records]

    def on_loaded(self) -> None:
        self.events.append("loaded")

    def on_unloaded(self) -> None:
        self.events.append("unloaded")


class Bench:
    """A runtime over one partition, its disk, its time-out, and what was told in which order."""

    def __init__(self, world: World, *, is_synced: bool = False) -> None:
        self.world = world
        self.events: list[str] = []
        self.disk = HeldDisk()
        self.later: list[Any] = []
        self.timers = Timers(world.clock)
        cluster: Any = FakeCluster(world)
        self.runtime: CoordinatorRuntime[Letters] = CoordinatorRuntime(
            TOPIC,
            make_shard=Letters,
            cluster=cluster,
            partitions=world.manager,
            clock=world.clock,
            config=world.dynamic.broker,
            worker=TestRunner(self.later.append),
            write_timeout=WriteTimeout(self.timers, TIMEOUT_MS),
        )
        world.dynamic.set_topic(TOPIC, {"flush.messages": "1"} if is_synced else {})
        world.manager.appends.flusher = self.disk.flusher()
        if is_synced:
            self.disk.hold()

    def start(self, *, is_replicated: bool = False) -> None:
        """With the topic's one partition, led here; broker 1 follows where it is replicated."""
        brokers = (0, 1) if is_replicated else (0,)
        self.world.create(TOPIC, partition_image(replicas=brokers, isr=brokers))
        self.runtime.journal.start()

    def follow(self, end_offset: int) -> None:
        """Broker 1 has everything below `end_offset`."""
        self.world.partition(TOPIC).follower_fetched(FollowerId(1, -1), end_offset, 0)

    def write(self, key: bytes) -> None:
        """Record a letter."""
        name = key.decode()
        shard = self.runtime.get(0)

        def replay(offset: int) -> None:
            shard.keys.append(key)
            self.events.append(f"{name} replayed at {offset}")

        self.runtime.write(
            0,
            [(key, b"")],
            replay=replay,
            then=lambda: self.events.append(f"{name} visible"),
            failed=lambda code: self.events.append(f"{name} failed: {code.name}"),
        )

    def lead(self, *, leader: int, epoch: int) -> None:
        """The partition has another leader, or another epoch."""
        self.world.change(TOPIC, 0, partition_image(leader=leader, epoch=epoch))
        self.runtime.journal.on_leadership(self.world.image.topics[TOPIC], 0)


def test_a_write_without_sync_is_followed_at_once(world: World) -> None:
    bench = Bench(world)
    bench.start()
    bench.write(b"a")
    assert bench.events == ["a replayed at 0", "a visible"]


async def test_followers_of_a_write_wait_until_its_records_are_visible(world: World) -> None:
    bench = Bench(world, is_synced=True)
    bench.start()
    bench.write(b"a")
    bench.write(b"b")
    assert bench.events == ["a replayed at 0", "b replayed at 1"]
    bench.disk.go_on()
    assert bench.events[2:] == ["a visible", "b visible"]


async def test_writes_that_cannot_be_synced_fail_in_order(world: World) -> None:
    bench = Bench(world, is_synced=True)
    bench.start()
    bench.write(b"a")
    bench.write(b"b")
    bench.disk.error = StorageError("fsync: no")
    bench.disk.go_on()
    assert bench.events[2:] == ["a failed: NOT_COORDINATOR", "b failed: NOT_COORDINATOR"]


async def test_invisible_writes_fail_in_order_when_leadership_goes(world: World) -> None:
    """At the event, without being asked; what becomes of the fsync is nobody's matter then."""
    bench = Bench(world, is_synced=True)
    bench.start()
    shard = bench.runtime.get(0)
    bench.write(b"a")
    bench.write(b"b")
    bench.lead(leader=7, epoch=1)
    assert bench.events[2:] == ["a failed: NOT_COORDINATOR", "b failed: NOT_COORDINATOR"]
    assert shard.events == ["loaded", "unloaded"]
    bench.disk.go_on()
    assert len(bench.events) == 4
    with pytest.raises(KafkaError) as caught:
        bench.runtime.get(0)
    assert caught.value.code == ErrorCode.NOT_COORDINATOR


async def test_a_write_that_followers_do_not_have_in_time_fails_and_stays(world: World) -> None:
    bench = Bench(world)
    bench.start(is_replicated=True)
    bench.write(b"a")
    world.clock.advance(TIMEOUT_MS - 1)
    assert bench.events == ["a replayed at 0"]
    world.clock.advance(1)
    assert bench.events[1:] == ["a failed: COORDINATOR_NOT_AVAILABLE"]
    assert bench.runtime.get(0).keys == [b"a"]
    bench.write(b"b")
    bench.follow(2)
    assert bench.events[2:] == ["b replayed at 1", "b visible"]


async def test_records_that_were_loaded_are_not_visible_before_followers_have_them(
    world: World,
) -> None:
    """The former leader wrote them, and its other follower may lead next, without them."""
    bench = Bench(world)
    brokers = (0, 1)
    world.create(TOPIC, partition_image(replicas=brokers, isr=brokers))
    world.append(b"a", name=TOPIC)
    world.manager.commit()
    bench.runtime.journal.start()
    bench.later.pop(0)()
    await eventually(lambda: bench.runtime.find(0) is not None)
    assert bench.runtime.get(0).events == ["loaded"]
    waiting = bench.runtime.visible(0)
    assert waiting is not None
    bench.runtime.when_visible(0, lambda: bench.events.append("visible"))
    assert bench.events == []
    bench.follow(1)
    assert waiting.done()
    assert bench.events == ["visible"]
    assert bench.runtime.visible(0) is None


async def test_a_write_that_followers_have_in_time_has_no_timer_left(world: World) -> None:
    bench = Bench(world)
    bench.start(is_replicated=True)
    bench.write(b"a")
    assert len(bench.timers) == 1
    bench.follow(1)
    assert len(bench.timers) == 0
    bench.write(b"b")
    bench.lead(leader=7, epoch=1)
    assert len(bench.timers) == 0
    assert bench.events[1:] == ["a visible", "b replayed at 1", "b failed: NOT_COORDINATOR"]


async def test_a_call_that_cannot_fail_waits_as_long_as_it_takes(world: World) -> None:
    bench = Bench(world)
    bench.start(is_replicated=True)
    bench.write(b"a")
    bench.runtime.when_visible(0, lambda: bench.events.append("seen"))
    world.clock.advance(TIMEOUT_MS)
    assert bench.events[1:] == ["a failed: COORDINATOR_NOT_AVAILABLE"]
    bench.follow(1)
    assert bench.events[2:] == ["seen"]


async def test_the_own_disk_has_no_time_out(world: World) -> None:
    bench = Bench(world, is_synced=True)
    bench.start()
    bench.write(b"a")
    world.clock.advance(10 * TIMEOUT_MS)
    assert bench.events == ["a replayed at 0"]
    bench.disk.go_on()
    assert bench.events[1:] == ["a visible"]


async def test_an_answer_that_asks_for_visible_records_is_refused_in_time(world: World) -> None:
    bench = Bench(world)
    bench.start(is_replicated=True)
    bench.write(b"a")
    late = bench.runtime.visible(0)
    assert late is not None
    world.clock.advance(TIMEOUT_MS)
    with pytest.raises(KafkaError) as caught:
        await late
    assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.follow(1)
    assert bench.runtime.visible(0) is None


async def test_a_lost_partition_fails_the_wait_for_its_records(world: World) -> None:
    bench = Bench(world, is_synced=True)
    bench.start()
    bench.write(b"a")
    waiting = bench.runtime.visible(0)
    assert waiting is not None
    bench.lead(leader=7, epoch=1)
    with pytest.raises(KafkaError) as caught:
        await waiting
    assert caught.value.code == ErrorCode.NOT_COORDINATOR


async def test_a_wait_that_was_given_up_may_fail_in_silence(world: World) -> None:
    """Its client has gone before it was awaited: asyncio's handler of errors hears nothing."""
    heard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, problem: heard.append(problem))
    bench = Bench(world, is_synced=True)
    bench.start()
    bench.write(b"a")
    waiting = bench.runtime.visible(0)
    bench.lead(leader=7, epoch=1)
    assert waiting is not None
    assert waiting.done()
    del waiting
    gc.collect()
    assert heard == []


def test_a_write_refused_at_once_changes_nothing(world: World) -> None:
    bench = Bench(world)
    bench.start()
    bench.write(b"z")
    bench.events.clear()
    world.fail_next_write()
    with pytest.raises(KafkaError) as caught:
        bench.write(b"a")
    assert caught.value.code == ErrorCode.NOT_COORDINATOR
    assert bench.events == []
    bench.write(b"b")
    assert bench.events == ["b replayed at 1", "b visible"]


async def test_shards_come_and_go_with_leadership(world: World) -> None:
    """A broker that begins to lead later replays what it finds, at the event."""
    bench = Bench(world)
    bench.start()
    bench.write(b"a")
    shard = bench.runtime.get(0)
    bench.lead(leader=7, epoch=1)
    assert list(bench.runtime.active()) == []
    assert bench.runtime.find(0) is None
    bench.lead(leader=0, epoch=2)
    assert bench.later, "nothing is loaded before somebody asks"
    with pytest.raises(KafkaError) as caught:
        bench.runtime.get(0)
    assert caught.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.later.pop(0)()
    await eventually(lambda: not bench.runtime.journal.is_loading)
    (after,) = bench.runtime.active()
    assert after is not shard
    assert (after.keys, after.events) == ([b"a"], ["loaded"])
