"""A follower over a real log: the leader's records and marks, truncation, changes of role."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions.role import OfflineReason, go_offline
from minibroker.broker.storage import log_reads
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, UnexpectedOffsetError
from minibroker.kafka.records.batch import iterate_headers
from tests.support.evidence import MARKED
from tests.support.in_process import batch_of
from tests.unit.broker.partitions.conftest import partition_image

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition
    from tests.unit.broker.partitions.conftest import World

ELSEWHERE = 5


@pytest.fixture
def led(world: World) -> Partition:
    """Two partitions; this one plays the leader on another broker."""
    world.create("t", partition_image(), partition_image())
    return world.partition(index=1)


@pytest.fixture
def follower(world: World, led: Partition) -> Partition:
    partition = world.partition(index=0)
    world.change("t", 0, partition_image(leader=ELSEWHERE, epoch=1))
    return partition


def lead(world: World, *values: bytes, epoch: int = 0) -> None:
    """Have the leader append one batch for each value."""
    world.change("t", 1, partition_image(epoch=epoch))
    for value in values:
        world.append(value, index=1)
    world.manager.commit()


def replicate(world: World, led: Partition, follower: Partition, *, watermark: int = -1) -> None:
    """One fetch from the follower's end, and what it does with the answer."""
    offset = max(follower.log_end_offset, led.log_start_offset)
    content = led.read(offset, 1 << 20, isolation_level=0)
    world.manager.append_as_follower(
        follower,
        memoryview(bytes(content.records)),
        leader_high_watermark=led.high_watermark if watermark < 0 else watermark,
        leader_log_start_offset=led.log_start_offset,
    )


def content(partition: Partition) -> list[tuple[int, int, int]]:
    """Base offset, leader epoch and CRC of every batch."""
    log = partition.log
    content = log_reads.read(
        log, log.log_start_offset, 1 << 20, end_offset=log.log_end_offset, min_one_batch=True
    )
    return [
        (record.base_offset, record.leader_epoch, record.crc)
        for _, record in iterate_headers(content.records)
    ]


def test_a_follower_has_the_leaders_records_and_its_marks(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a", b"b")
    replicate(world, led, follower, watermark=1)
    assert content(follower) == content(led)
    assert (follower.high_watermark, follower.log_end_offset) == (1, 2)
    lead(world, b"c")
    replicate(world, led, follower)
    assert (follower.high_watermark, follower.log_end_offset) == (3, 3)


def test_the_high_watermark_of_a_follower_is_at_most_its_end(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a")
    replicate(world, led, follower, watermark=50)
    assert follower.high_watermark == 1


def test_records_of_an_epoch_that_it_does_not_know_are_left(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a", epoch=1)
    lead(world, b"b", epoch=2)
    replicate(world, led, follower)
    assert follower.log_end_offset == 1
    world.change("t", 0, partition_image(leader=ELSEWHERE, epoch=2))
    replicate(world, led, follower)
    assert content(follower) == content(led)


def test_a_follower_starts_where_its_leader_does_once_that_is_committed(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a", b"b")
    replicate(world, led, follower, watermark=0)
    world.manager.delete_records(led, 1)
    replicate(world, led, follower, watermark=0)
    assert follower.log_start_offset == 0
    replicate(world, led, follower)
    assert (follower.log_start_offset, follower.high_watermark) == (1, 2)


def test_an_empty_follower_takes_the_batch_that_its_leader_starts_inside_of(
    world: World, led: Partition, follower: Partition
) -> None:
    world.append(b"a", b"b", b"c", index=1)
    world.manager.commit()
    world.manager.delete_records(led, 2)
    follower.log.truncate_fully_and_start_at(2)
    replicate(world, led, follower)
    assert (follower.log_start_offset, follower.log_end_offset) == (2, 3)


async def test_a_follower_begins_anew_where_its_leader_does_inside_of_another_batch(
    world: World, led: Partition, follower: Partition
) -> None:
    """An older leader's last batch ends where the log of the new leader starts: the epochs of that
    log do not say that the two logs part.
    """
    world.manager.append_as_follower(
        follower,
        memoryview(batch_of(b"x", b"y")),
        leader_high_watermark=0,
        leader_log_start_offset=0,
    )
    world.append(b"a", b"b", b"c", index=1)
    world.manager.commit()
    world.manager.delete_records(led, 2)
    for _ in range(2):
        replicate(world, led, follower)
        await world.manager.cut_saved(follower)
    assert (follower.log_start_offset, follower.log_end_offset) == (2, 3)
    assert content(follower) == content(led)


def test_records_that_are_there_already_are_refused(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a")
    replicate(world, led, follower)
    with pytest.raises(UnexpectedOffsetError):
        world.manager.append_as_follower(
            follower, memoryview(batch_of(b"z")), leader_high_watermark=1, leader_log_start_offset=0
        )
    assert content(follower) == content(led)


def test_a_truncation_takes_the_high_watermark_along(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a", b"b", b"c")
    replicate(world, led, follower)
    world.manager.truncate(follower, 1)
    assert (follower.log_end_offset, follower.high_watermark) == (1, 1)
    replicate(world, led, follower)
    assert content(follower) == content(led)


def test_a_follower_that_leads_goes_on_in_its_new_epoch(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a", b"b")
    replicate(world, led, follower, watermark=1)
    world.change("t", 0, partition_image(epoch=2))
    assert follower.high_watermark == 2
    assert world.append(b"c", index=0).base_offset == 2
    world.manager.commit()
    assert follower.end_offset_for_epoch(0) == (0, 2)
    assert follower.end_offset_for_epoch(2) == (2, 3)


@pytest.mark.parametrize("role", ["leader", "offline"])
def test_only_a_follower_appends_records_of_a_leader(
    world: World, led: Partition, role: str
) -> None:
    if role == "offline":
        led.take_role(go_offline(led.role, OfflineReason.DIRECTORY_FAILED))
    for call in (
        lambda: world.manager.truncate(led, 0),
        lambda: world.manager.append_as_follower(
            led, memoryview(batch_of(b"x")), leader_high_watermark=1, leader_log_start_offset=0
        ),
    ):
        with pytest.raises(KafkaError) as caught:
            call()
        assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert led.log_end_offset == 0


def test_a_disk_that_refuses_is_told(world: World, led: Partition, follower: Partition) -> None:
    lead(world, b"a")
    replicate(world, led, follower)
    lead(world, b"b")
    refused: list[object] = []
    world.manager.on_storage_error = refused.append
    content = led.read(1, 1 << 20, isolation_level=0)
    records = memoryview(bytes(content.records))
    world.fail_next_write()
    with pytest.raises(KafkaError) as caught:
        world.manager.append_as_follower(
            follower, records, leader_high_watermark=1, leader_log_start_offset=0
        )
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(refused) == 1
    assert (follower.log_end_offset, follower.high_watermark) == (1, 1)


async def test_an_answer_that_comes_behind_the_deletion_writes_nothing(
    world: World, led: Partition, follower: Partition
) -> None:
    lead(world, b"a")
    await world.manager.delete_replicas("t", [follower.index], MARKED)
    with pytest.raises(KafkaError) as caught:
        replicate(world, led, follower)
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not world.manager.lost
