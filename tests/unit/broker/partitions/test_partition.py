"""One led partition: epochs, acks, where reading ends, what a broken disk becomes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.image import BrokerInfo
from minibroker.broker.partitions.partition import READ_UNCOMMITTED
from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.storage import log_reads
from minibroker.broker.storage.segment import Segment
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from tests.support.in_process import START_MS, batch_of
from tests.support.logs import append_records, marker_of
from tests.unit.broker.partitions.conftest import Claim, partition_image

if TYPE_CHECKING:
    from tests.unit.broker.partitions.conftest import World


class CountingWatcher:
    def __init__(self) -> None:
        self.count = 0

    def on_progress(self) -> None:
        self.count += 1

    def complete(self) -> None:
        pytest.fail("the partition does not go away")


def test_leader_epochs_are_compared(world: World) -> None:
    world.create("t", partition_image(epoch=5))
    partition = world.partition()
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(5)
    with pytest.raises(KafkaError) as older:
        partition.check_leader_epoch(4)
    assert older.value.code == ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(KafkaError) as newer:
        partition.check_leader_epoch(6)
    assert newer.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_acks_all_needs_enough_replicas_in_sync(world: World) -> None:
    world.create("t", partition_image(replicas=(0, 1)))
    world.dynamic.set_topic("t", {"min.insync.replicas": "2"})
    with pytest.raises(KafkaError) as caught:
        world.append(b"x")
    assert caught.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.append(b"x", acks=1).base_offset == 0


def test_readers_see_what_all_replicas_in_sync_have(world: World) -> None:
    world.create("t", partition_image(replicas=(0, 1), isr=(0, 1)))
    partition = world.partition()
    world.append(b"x")
    world.append(b"y")
    world.manager.commit()
    assert (partition.log_end_offset, partition.high_watermark) == (2, 0)
    partition.follower_fetched(FollowerId(1, -1), 1, 0)
    assert partition.high_watermark == 1
    partition.follower_fetched(FollowerId(1, -1), 2, 0)
    assert partition.high_watermark == 2


def test_a_broker_without_a_replica_is_no_follower(world: World) -> None:
    world.create("t", partition_image(replicas=(0, 1), isr=(0, 1)))
    with pytest.raises(KafkaError) as caught:
        world.partition().follower_fetched(FollowerId(2, -1), 0, 0)
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_sessions_look_again_at_a_follower_that_is_registered_anew(world: World) -> None:
    """A follower that only lost its registration is at the end, so its session does not look at the
    partition any more. Nothing else would tell the leader the offsets again.
    """
    world.create("t", partition_image(replicas=(0, 1), isr=(0, 1)))
    world.image.brokers = {1: BrokerInfo(1, (), epoch=100)}
    partition = world.partition()
    partition.follower_fetched(FollowerId(1, 100), 0, 0)
    watcher = CountingWatcher()
    partition.watch(watcher)
    assert partition.low_watermark == 0
    assert watcher.count == 0
    world.image.brokers = {1: BrokerInfo(1, (), epoch=200)}
    assert partition.low_watermark == -1
    assert watcher.count == 1
    with pytest.raises(KafkaError) as caught:
        partition.follower_fetched(FollowerId(1, 100), 0, 0)
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.follower_fetched(FollowerId(1, 200), 0, 0)
    assert partition.low_watermark == 0


def test_without_the_slow_follower_in_the_isr_readers_see_everything(world: World) -> None:
    world.create("t", partition_image(replicas=(0, 1), isr=(0, 1)))
    world.append(b"x")
    world.manager.commit()
    assert world.partition().high_watermark == 0
    world.clock.advance(30_001)
    world.change("t", 0, partition_image(replicas=(0, 1), isr=(0,), partition_epoch=1))
    assert world.partition().high_watermark == 1


def test_a_transaction_that_ended_is_stable_once_its_marker_is_readable(world: World) -> None:
    world.create("t")
    partition = world.partition()
    batch = batch_of(b"b", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    partition.append(memoryview(batch), -1, START_MS, Claim())
    world.manager.commit()
    marker = marker_of(7, timestamp_ms=START_MS)
    append_records(partition.log, marker, 0, START_MS, origin="coordinator")
    assert partition.last_stable_offset == 0
    partition.advance_high_watermark(partition.log_end_offset)
    assert partition.last_stable_offset == partition.high_watermark == 2


def test_epochs_and_the_offsets_where_they_ended(world: World) -> None:
    world.create("t")
    partition = world.partition()
    world.append(b"a")
    world.change("t", 0, partition_image(epoch=3))
    world.append(b"b")
    assert partition.earliest_epoch() == 0
    assert partition.end_offset_for_epoch(0) == (0, 1)
    assert partition.end_offset_for_epoch(2) == (0, 1)
    assert partition.end_offset_for_epoch(3) == (3, 2)


def test_lookups_see_staged_records(world: World) -> None:
    world.create("t")
    world.append(b"a")
    position = world.partition().offset_for_timestamp(START_MS)
    assert position is not None
    assert position.offset == 0
    world.append(b"b")
    largest = world.partition().max_timestamp_offset()
    assert largest is not None
    assert largest.timestamp == START_MS
    world.append(b"c")
    assert world.partition().offsets_before(-1, 5) == [3, 0]


def test_a_consumer_is_told_of_damage_as_kafka_tells_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t")
    partition = world.partition()
    log = partition.log
    world.append(b"a")
    world.manager.commit()
    first = log.active_segment
    log.roll()
    world.append(b"b")
    world.manager.commit()
    os.truncate(first.log_path, first.size_bytes - 1)
    log.segments.add(Segment(log.disk, log.directory, 0, created_ms=START_MS))
    with pytest.raises(KafkaError, match="ends inside the batch at 0") as caught:
        partition.read(0, 100, isolation_level=READ_UNCOMMITTED)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert "partition t-0: cannot read t-0" in caplog.text
    good = partition.read(1, 100, isolation_level=READ_UNCOMMITTED)
    assert len(good.records) > 0


@pytest.mark.pure("replaces functions of log_reads")
@pytest.mark.parametrize(
    ("method", "arguments"),
    [("offset_for_timestamp", (0,)), ("max_timestamp_offset", ()), ("offsets_before", (0, 1))],
)
def test_a_disk_that_cannot_be_read_is_a_storage_error(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
    arguments: tuple[int, ...],
) -> None:
    world.create("t")
    partition = world.partition()

    def failing(*_: object, **_options: object) -> None:
        raise StorageError("gone")

    monkeypatch.setattr(log_reads, method, failing)
    with pytest.raises(KafkaError) as caught:
        getattr(partition, method)(*arguments)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t-0" in caplog.text
