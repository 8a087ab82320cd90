"""The groups of one partition: what is written is done, what is read again comes out the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.groups import shard as shard_module
from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.groups.records import decode_record, encode_offset_key, encode_offset_value
from minibroker.broker.groups.shard import GroupShard
from minibroker.broker.partitions.coordinator_runtime import CoordinatorRuntime
from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.slices import run_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_PRODUCER_ID
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from minibroker.kafka.records.record import decode_records
from tests.support.runners import HeldRunner
from tests.unit.broker.partitions.conftest import World, partition_image
from tests.unit.broker.partitions.conftest import world as world_fixture
from tests.unit.broker.partitions.journal_bench import TOPIC, FakeCluster

if TYPE_CHECKING:
    from minibroker.broker.groups.offsets import OffsetKey

world = world_fixture
HOUR_MS = 3_600_000


class ShardBench:
    """A shard over a real log."""

    def __init__(self, world: World, brokers: tuple[int, ...] = (0,)) -> None:
        self.world = world
        cluster: Any = FakeCluster(world)
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            TOPIC,
            make_shard=self.make_shard,
            cluster=cluster,
            partitions=world.manager,
            clock=world.clock,
            config=world.dynamic.broker,
            worker=HeldRunner(),
        )
        world.create(TOPIC, partition_image(replicas=brokers, isr=brokers))
        self.journal = self.runtime.journal
        self.journal.start()
        self.shard = self.runtime.get(0)

    def make_shard(self, index: int) -> GroupShard:
        return GroupShard(
            index, self.runtime, self.world.clock, make_simple_group=ClassicGroup, offset_version=3
        )

    def commit(self, key: OffsetKey, offset: int, **fields: int) -> None:
        """One offset; `producer_id` makes it part of a transaction."""
        expire_ms = fields.pop("expire_ms", -1)
        committed = CommittedOffset(offset, -1, "", self.world.clock.now_ms(), expire_ms)
        producer_id = fields.pop("producer_id", NO_PRODUCER_ID)
        commits = [(key, committed)]
        epoch = fields.pop("producer_epoch", 0)
        batch = run_all(
            self.shard.commit_batch(commits, producer_id=producer_id, producer_epoch=epoch)
        )
        self.shard.commit_offsets(key[0], commits, batch, producer_id=producer_id)

    def committed(self, key: OffsetKey) -> int | None:
        offset = self.shard.offsets.get(*key)
        return None if offset is None else offset.offset

    def visible(self, key: OffsetKey) -> int | None:
        offset = self.shard.offsets.visible(*key)
        return None if offset is None else offset.offset

    def record_count(self) -> int:
        return self.world.partition(TOPIC).log_end_offset

    def replayed(self) -> GroupShard:
        """Another shard that reads what this one wrote."""
        again = self.make_shard(0)
        partition = self.world.partition(TOPIC)
        content = partition.read(0, 1 << 20, isolation_level=0)
        data, position = content.records, 0
        while position < len(data):
            size_bytes = int.from_bytes(data[position + 8 : position + 12], "big") + 12
            for record in decode_records(data[position : position + size_bytes]):
                entry = decode_record(record.key, record.value, record.offset)
                assert entry is not None
                again.replay(entry)
            position += size_bytes
        return again


@pytest.fixture
def bench(world: World) -> ShardBench:
    return ShardBench(world)


def test_an_offset_counts_once_it_is_written_and_no_group_is(bench: ShardBench) -> None:
    """A consumer that manages its partitions itself writes no group metadata."""
    bench.commit(("g", "t", 0), 5)
    assert bench.committed(("g", "t", 0)) == 5
    group = bench.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert group.is_simple
    assert bench.record_count() == 1
    again = bench.replayed()
    assert again.offsets.of_group("g") == bench.shard.offsets.of_group("g")
    assert list(again.groups) == ["g"]


def test_an_offset_that_followers_lack_does_not_expire(world: World) -> None:
    """An older offset is due, and a newer one is written and not visible: both are in the log."""
    bench = ShardBench(world, brokers=(0, 1))
    key = ("g", "t", 0)
    partition = world.partition(TOPIC)
    bench.commit(key, 5)
    partition.follower_fetched(FollowerId(1, -1), partition.log_end_offset, 0)
    world.clock.advance(HOUR_MS)
    bench.commit(key, 6)
    assert sum(bench.shard.expire(HOUR_MS)) == 0
    assert bench.visible(key) == 5
    partition.follower_fetched(FollowerId(1, -1), partition.log_end_offset, 0)
    assert bench.visible(key) == bench.committed(key) == 6
    assert bench.replayed().offsets.of_group("g") == bench.shard.offsets.of_group("g")


def test_a_group_that_is_deleted_stays_so_when_its_last_commit_becomes_visible(
    world: World,
) -> None:
    bench = ShardBench(world, brokers=(0, 1))
    key = ("g", "t", 0)
    bench.commit(key, 5)
    assert sum(bench.shard.delete_group(bench.shard.groups["g"])) == 1
    partition = world.partition(TOPIC)
    partition.follower_fetched(FollowerId(1, -1), partition.log_end_offset, 0)
    assert bench.committed(key) is bench.visible(key) is None
    assert not bench.shard.groups
    assert not bench.replayed().offsets.of_group("g")


def test_readers_see_each_offset_when_it_is_visible_and_not_before(world: World) -> None:
    bench = ShardBench(world, brokers=(0, 1))
    key = ("g", "t", 0)
    partition = world.partition(TOPIC)
    ends = []
    for offset in (5, 6, 7):
        bench.commit(key, offset)
        ends.append(partition.log_end_offset)
    assert (bench.committed(key), bench.visible(key)) == (7, None)
    for end, offset in zip(ends, (5, 6, 7), strict=True):
        partition.follower_fetched(FollowerId(1, -1), end, 0)
        assert bench.visible(key) == offset


def test_a_disk_that_refuses_changes_nothing(bench: ShardBench) -> None:
    bench.commit(("g", "t", 0), 5)
    bench.world.fail_next_write()
    with pytest.raises(KafkaError) as refused:
        bench.commit(("g", "t", 0), 6)
    assert refused.value.code == ErrorCode.NOT_COORDINATOR
    assert bench.committed(("g", "t", 0)) == 5


def test_batches_that_are_too_large_are_refused_by_their_name(bench: ShardBench) -> None:
    bench.world.dynamic.set_topic(TOPIC, {"max.message.bytes": "100"})
    committed = CommittedOffset(5, -1, "m" * 100, 0)
    commits = [(("g", "t", 0), committed)]
    batch = run_all(bench.shard.commit_batch(commits))
    with pytest.raises(KafkaError) as of_offsets:
        bench.shard.commit_offsets("g", commits, batch)
    assert of_offsets.value.code == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    with pytest.raises(KafkaError) as of_groups:
        bench.shard.write([(b"\0\2\0\1g", b"x" * 100)])
    assert of_groups.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_pending_offsets_wait_for_the_marker(bench: ShardBench) -> None:
    bench.commit(("g", "t", 0), 5)
    bench.commit(("g", "t", 0), 9, producer_id=7)
    bench.journal.flush()
    assert bench.committed(("g", "t", 0)) == 5
    bench.shard.complete_transaction(7, is_commit=True)
    assert bench.committed(("g", "t", 0)) == 9


def test_group_metadata_is_replayed_and_its_tombstone_deletes(bench: ShardBench) -> None:
    key = GroupMetadataKey(group="g").to_bytes(2)
    value = GroupMetadataValue(protocol_type="consumer", generation=3, protocol=None, leader=None)
    bench.shard.write([(key, value.to_bytes(3))])
    group = bench.shard.groups["g"]
    assert (group.protocol_type, group.state_name) == ("consumer", "Empty")
    bench.shard.write(bench.shard.groups["g"].tombstones())
    assert bench.shard.groups == {}
    assert bench.replayed().groups == {}


def test_deleting_a_group_takes_all_of_its_offsets(bench: ShardBench) -> None:
    bench.commit(("g", "t", 0), 5)
    bench.commit(("g", "t", 1), 5, producer_id=7)
    bench.commit(("h", "t", 0), 5)
    bench.journal.flush()
    assert sum(bench.shard.delete_group(bench.shard.groups["g"])) == 2
    assert bench.shard.deleted_groups == set()
    assert list(bench.shard.offsets.group_ids()) == ["h"]
    assert list(bench.shard.groups) == ["h"]


def test_an_offset_that_a_marker_commits_meanwhile_goes_with_its_group(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "DELETED_AT_ONCE", 1)
    bench.commit(("g", "t", 0), 5)
    bench.commit(("g", "u", 0), 6, producer_id=7)
    bench.journal.flush()
    steps = bench.shard.delete_group(bench.shard.groups["g"])
    next(steps)
    bench.shard.complete_transaction(7, is_commit=True)
    assert sum(steps) == 1
    assert list(bench.shard.offsets.group_ids()) == []
    assert bench.shard.groups == {}


def test_many_tombstones_are_several_batches(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "CHUNK_BYTES", 50)
    for index in range(10):
        bench.commit(("g", "t", index), index)
    bench.journal.flush()
    bench.world.dynamic.set_topic(TOPIC, {"max.message.bytes": "200"})
    assert sum(bench.shard.forget_topic("t", b"\1" * 16)) == 10
    assert list(bench.shard.offsets.group_ids()) == []
    assert bench.record_count() == 20


class Reader(ClassicGroup):
    """A group whose answers about expiry are given."""

    __slots__ = ("base_ms", "topics")

    def __init__(self, base_ms: int | None, topics: tuple[str, ...]) -> None:
        super().__init__("g", 0)
        self.base_ms = base_ms
        self.topics = topics

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def expiration_base_ms(self, commit_timestamp_ms: int) -> int | None:
        return None if self.base_ms is None else self.base_ms or commit_timestamp_ms


def put_reader(bench: ShardBench, base_ms: int | None, *topics: str) -> None:
    bench.shard.groups["g"] = Reader(base_ms, topics)


def test_offsets_expire_by_commit_time_and_the_group_goes_with_the_last(bench: ShardBench) -> None:
    bench.commit(("g", "t", 0), 5)
    bench.journal.flush()
    bench.world.clock.advance(HOUR_MS // 2)
    bench.commit(("g", "t", 1), 5)
    bench.commit(("h", "t", 0), 5)
    bench.journal.flush()
    assert sum(bench.shard.expire(HOUR_MS)) == 0
    bench.world.clock.advance(HOUR_MS // 2)
    assert sum(bench.shard.expire(HOUR_MS)) == 1
    assert bench.committed(("g", "t", 0)) is None
    assert bench.committed(("g", "t", 1)) == 5
    assert list(bench.shard.groups) == ["g", "h"]
    bench.world.clock.advance(HOUR_MS // 2)
    assert sum(bench.shard.expire(HOUR_MS)) == 2
    assert bench.shard.groups == {}
    assert bench.replayed().groups == {}
    count = bench.record_count()
    assert sum(bench.shard.expire(HOUR_MS)) == 0
    assert bench.record_count() == count


def test_an_offset_that_is_committed_between_two_steps_stays(bench: ShardBench) -> None:
    count = 3 * shard_module.DELETED_AT_ONCE
    for partition in range(count):
        bench.commit(("g", "t", partition), 5)
    bench.journal.flush()
    bench.world.clock.advance(HOUR_MS)
    steps = bench.shard.expire(HOUR_MS)
    expired = next(steps)
    assert expired == shard_module.DELETED_AT_ONCE
    bench.commit(("g", "t", count - 1), 6)
    bench.commit(("new", "t", 0), 7)
    bench.journal.flush()
    assert expired + sum(steps) == count - 1
    assert bench.committed(("g", "t", count - 1)) == 6
    assert bench.committed(("new", "t", 0)) == 7
    assert list(bench.replayed().groups) == ["g", "new"]


def test_offsets_that_are_read_or_pending_do_not_expire(bench: ShardBench) -> None:
    for topic in ("read", "left", "held"):
        bench.commit(("g", topic, 0), 5)
    bench.commit(("g", "held", 0), 6, producer_id=7)
    bench.journal.flush()
    put_reader(bench, 0, "read")
    bench.world.clock.advance(2 * HOUR_MS)
    assert sum(bench.shard.expire(HOUR_MS)) == 1
    assert sorted(bench.shard.offsets.of_group("g")) == ["held", "read"]
    assert "g" in bench.shard.groups


def test_a_group_says_from_when_its_offsets_age(bench: ShardBench) -> None:
    bench.commit(("g", "t", 0), 5)
    bench.journal.flush()
    bench.world.clock.advance(2 * HOUR_MS)
    put_reader(bench, None)
    assert sum(bench.shard.expire(HOUR_MS)) == 0
    put_reader(bench, bench.world.clock.now_ms())
    assert sum(bench.shard.expire(HOUR_MS)) == 0
    bench.world.clock.advance(HOUR_MS)
    assert sum(bench.shard.expire(HOUR_MS)) == 1


def test_an_explicit_expiry_counts_alone(bench: ShardBench) -> None:
    soon_ms = bench.world.clock.now_ms() + 1000
    bench.commit(("g", "t", 0), 5, expire_ms=soon_ms)
    bench.commit(("g", "t", 1), 5, expire_ms=soon_ms + 10 * HOUR_MS)
    bench.journal.flush()
    bench.world.clock.advance(1000)
    assert sum(bench.shard.expire(HOUR_MS)) == 1
    bench.world.clock.advance(5 * HOUR_MS)
    assert sum(bench.shard.expire(HOUR_MS)) == 0
    assert bench.committed(("g", "t", 1)) == 5
    again = bench.replayed().offsets.get("g", "t", 1)
    assert again is not None
    assert again.expire_timestamp_ms == soon_ms + 10 * HOUR_MS


def test_a_topic_that_is_gone_is_forgotten_by_its_id(bench: ShardBench) -> None:
    ours, theirs = b"\1" * 16, b"\2" * 16
    for index, topic_id in enumerate((ours, theirs)):
        committed = CommittedOffset(5, -1, "", 0, topic_id=topic_id)
        record = encode_offset_key("g", "t", index), encode_offset_value(committed)
        bench.shard.write([record])
    assert sum(bench.shard.forget_topic("t", ours)) == 1
    assert bench.committed(("g", "t", 0)) is None
    assert bench.committed(("g", "t", 1)) == 5


def test_a_large_group_is_deleted_in_short_steps(bench: ShardBench) -> None:
    count = 3 * shard_module.DELETED_AT_ONCE
    for partition in range(count):
        bench.commit(("g", "t", partition), 5)
    bench.commit(("g", "u", 0), 5, producer_id=7)
    bench.journal.flush()
    deleted = []
    for step in bench.shard.delete_group(bench.shard.groups["g"]):
        assert bench.shard.deleted_groups == {"g"}
        deleted.append(step)
    assert deleted == [shard_module.DELETED_AT_ONCE] * 3 + [1]
    assert bench.shard.groups == {}
    again = bench.replayed()
    assert (again.groups, list(again.offsets.group_ids())) == ({}, [])


def test_a_group_stays_when_its_partition_goes_while_it_is_deleted(bench: ShardBench) -> None:
    for partition in range(shard_module.DELETED_AT_ONCE + 1):
        bench.commit(("g", "t", partition), 5)
    bench.journal.flush()
    steps = bench.shard.delete_group(bench.shard.groups["g"])
    next(steps)
    bench.runtime.on_unloaded(0)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        next(steps)
    assert bench.shard.deleted_groups == set()
    assert list(bench.shard.groups) == ["g"]


def test_a_topic_that_is_gone_is_forgotten_in_short_steps(bench: ShardBench) -> None:
    count = 3 * shard_module.DELETED_AT_ONCE
    for partition in range(count):
        bench.commit(("g", "t", partition), 5)
    bench.commit(("h", "other", 0), 5)
    bench.journal.flush()
    steps = bench.shard.forget_topic("t", b"\1" * 16)
    assert next(steps) == shard_module.DELETED_AT_ONCE
    bench.commit(("g", "t", count - 1), 6)  # for a new topic of that name
    bench.journal.flush()
    assert max(steps) == shard_module.DELETED_AT_ONCE
    assert list(bench.shard.offsets.of_group("g")["t"]) == [count - 1]
    assert bench.committed(("h", "other", 0)) == 5


def test_groups_without_the_topic_are_looked_at_in_short_steps(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "LOOKED_AT_ONCE", 10)
    for number in range(30):
        bench.commit((f"g{number}", "other", 0), 5)
    bench.journal.flush()
    assert list(bench.shard.forget_topic("t", b"\1" * 16)) == [0, 0, 0]
