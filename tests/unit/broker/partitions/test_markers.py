"""Markers in the partitions of a broker: what they end, what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.markers import EndOfTransaction, MarkerWriter
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.held_disk import HeldDisk, refuse_second_write
from tests.support.transactions import World, names, transactional_world
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from minibroker.broker.partitions.markers import Codes

T0 = TopicPartition("t", 0)
NONE = ErrorCode.NONE


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with transactional_world(tmp_path) as new_world:
        yield new_world


def writer_of(world: World) -> MarkerWriter:
    return world.coordinator.markers


def write(
    world: World,
    ending: EndOfTransaction,
    names: Iterable[TopicPartition],
    writer: MarkerWriter | None = None,
) -> Codes:
    """Markers that need no sync are visible at once."""
    outcomes: list[Codes] = []
    (writer or writer_of(world)).write(ending, names, outcomes.append)
    (codes,) = outcomes
    return codes


async def open_transaction(world: World) -> tuple[int, int]:
    """Return a producer of epoch 1 (0 is older), with a record in both partitions."""
    await world.begin()
    producer = await world.begin()
    await world.add(producer, 0, 1)
    for index in (0, 1):
        await world.produce(producer, b"a", index=index)
    return producer


async def test_a_marker_ends_the_transaction_in_each_partition(world: World) -> None:
    producer_id, epoch = await open_transaction(world)
    ending = EndOfTransaction(producer_id, epoch, 0, is_commit=False)
    missing = TopicPartition("t", 9)
    codes = write(world, ending, [*names(0, 1), missing])
    assert codes == {
        **dict.fromkeys(names(0, 1), NONE),
        missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    for index in (0, 1):
        records = await world.fetch(index=index)
        assert (records.last_stable_offset, len(records.aborted_transactions)) == (2, 1)
    entry = world.running.partitions.get("t", 0).producers()[producer_id]
    assert (entry.transaction_start, entry.coordinator_epoch) == (-1, 0)


async def test_waiting_readers_are_woken(world: World) -> None:
    """A long poll of committed records ends when the marker is there."""
    producer_id, epoch = await open_transaction(world)
    world.client.send(world.fetch_request(max_wait_ms=20_000, min_bytes=1), 11)
    await world.client.writer.drain()
    async with await world.running.connect() as other:
        ending = EndOfTransaction(producer_id, epoch, 0, is_commit=True)
        await world.fetch(client=other)  # the long poll, sent before, waits by now
        assert write(world, ending, [T0]) == {T0: NONE}
    answer = await world.client.receive()
    assert len(answer.responses[0].partitions[0].records) > 0


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "code"),
    [
        (0, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, 4, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (1, 5, NONE),
        (2, 6, NONE),
    ],
)
async def test_older_producers_and_coordinators_are_refused(
    world: World, epoch: int, coordinator_epoch: int, code: ErrorCode
) -> None:
    producer_id, _ = await open_transaction(world)
    assert write(world, EndOfTransaction(producer_id, 1, 5, is_commit=True), [T0]) == {T0: NONE}
    again = EndOfTransaction(producer_id, epoch, coordinator_epoch, is_commit=False)
    assert write(world, again, [T0]) == {T0: code}


async def test_kip_890_a_late_marker_of_the_second_protocol_is_refused(world: World) -> None:
    """The epoch of a marker is new; the same again only where nothing is open."""
    producer_id, _ = await open_transaction(world)

    def end(epoch: int) -> ErrorCode:
        ending = EndOfTransaction(producer_id, epoch, 0, is_commit=True, transaction_version=2)
        return write(world, ending, [T0])[T0]

    assert end(1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert (await world.fetch()).last_stable_offset == 0
    assert end(2) == NONE
    assert end(2) == NONE
    assert end(1) == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_the_group_coordinator_hears_of_its_partitions(world: World) -> None:
    heard = []

    class Offsets:
        def complete_transaction(self, index: int, producer_id: int, is_commit: bool) -> None:
            heard.append((index, producer_id, is_commit))

    await world.running.broker.services.groups.journal.ensure_topic()
    writer = MarkerWriter(world.running.partitions, world.clock, offsets=Offsets)
    ending = EndOfTransaction(5, 0, 0, is_commit=True)
    offsets = TopicPartition("__consumer_offsets", 3)
    assert write(world, ending, [offsets, T0], writer) == {offsets: NONE, T0: NONE}
    assert heard == [(3, 5, True)]


async def test_a_disk_that_refuses_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    producer_id, epoch = await open_transaction(world)
    files = world.running.broker.logs.disk.files

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    ending = EndOfTransaction(producer_id, epoch, 0, is_commit=True)
    with monkeypatch.context() as broken:
        broken.setattr(type(files), "pwritev", refuse)
        codes = write(world, ending, [T0])
    assert codes == {T0: ErrorCode.KAFKA_STORAGE_ERROR}


def held_syncs(world: World) -> HeldDisk:
    """Let `t` be synced with every batch, on a disk that holds its syncs; return the disk."""
    disk = HeldDisk()
    world.running.partitions.appends.flusher = disk.flusher()
    world.running.broker.services.dynamic.set_topic("t", {"flush.messages": "1"})
    world.running.partitions.on_topic_config("t")
    disk.hold()
    return disk


async def test_a_marker_counts_when_it_is_synced(world: World) -> None:
    """Its code is given then, and not before; the disk may still refuse it."""
    for is_refused in (False, True):
        producer_id, epoch = await open_transaction(world)
        disk = held_syncs(world)
        outcomes: list[Codes] = []
        ending = EndOfTransaction(producer_id, epoch, 0, is_commit=True)
        writer_of(world).write(ending, [T0], outcomes.append)
        assert outcomes == []
        if is_refused:
            disk.error = StorageError("fsync: no")
        disk.go_on()
        assert outcomes == [{T0: ErrorCode.KAFKA_STORAGE_ERROR if is_refused else NONE}]


async def test_a_marker_in_a_directory_that_fails_behind_it_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk takes the first marker and refuses the second: both partitions go offline, and the
    next leaders are sent the markers.
    """
    producer_id, epoch = await open_transaction(world)
    partitions = world.running.partitions
    monkeypatch.setattr(
        partitions, "on_storage_error", lambda _error: partitions.take_offline(names(0, 1))
    )
    outcomes: list[Codes] = []
    ending = EndOfTransaction(producer_id, epoch, 0, is_commit=True)
    with monkeypatch.context() as patch:
        refuse_second_write(patch)
        writer_of(world).write(ending, sorted(names(0, 1)), outcomes.append)
    assert outcomes == [
        {
            T0: ErrorCode.NOT_LEADER_OR_FOLLOWER,
            TopicPartition("t", 1): ErrorCode.KAFKA_STORAGE_ERROR,
        }
    ]


async def test_a_marker_of_another_coordinator_waits_for_the_time_of_a_request(
    world: World,
) -> None:
    """It is in the log, and counts when it is visible; the coordinator sends it again."""
    producer_id, epoch = await open_transaction(world)
    disk = held_syncs(world)
    partition = world.running.partitions.get("t", 0)
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0, 7])],
        coordinator_epoch=0,
    )
    async with await world.running.connect() as coordinator:
        coordinator.send(WriteTxnMarkersRequest(markers=[marker]), 1)
        await eventually(lambda: partition.waiters)
        world.clock.advance(world.running.broker.config.request_timeout_ms)
        answer: Any = await coordinator.receive()
    (result,) = answer.markers
    assert {part.partition_index: part.error_code for part in result.topics[0].partitions} == {
        0: ErrorCode.REQUEST_TIMED_OUT,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert not partition.waiters
    disk.go_on()
    codes = write(world, EndOfTransaction(producer_id, epoch, 0, is_commit=True), [T0])
    assert codes == {T0: NONE}


async def test_a_leader_that_goes_leaves_the_marker_to_the_next_one(world: World) -> None:
    producer_id, epoch = await open_transaction(world)
    disk = held_syncs(world)
    outcomes: list[Codes] = []
    ending = EndOfTransaction(producer_id, epoch, 0, is_commit=True)
    writer_of(world).write(ending, [T0], outcomes.append)
    world.running.partitions.wake_all()
    assert outcomes == [{T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}]
    disk.go_on()
    assert len(outcomes) == 1
