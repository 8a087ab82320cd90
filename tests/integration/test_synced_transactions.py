"""With `log.flush.interval.messages=1` a step of a transaction begins when the last is durable."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers.common.transaction_verification import Protocol, Question, verify
from minibroker.broker.transactions.state import TransactionState
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicPartition
from tests.support.held_disk import HeldDisk
from tests.support.transactions import transactional_world
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.transactions import World


T0 = TopicPartition("t", 0)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with transactional_world(tmp_path, **{"log.flush.interval.messages": "1"}) as made:
        yield made


async def turns(count: int = 10) -> None:
    """Let all tasks run that wait only for the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def hold_fsyncs(world: World) -> HeldDisk:
    disk = HeldDisk()
    world.running.partitions.appends.flusher = disk.flusher()
    disk.hold()
    return disk


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
async def test_markers_follow_a_durable_decision_and_the_end_follows_durable_markers(
    world: World, is_commit: bool
) -> None:
    producer = await world.begin()
    await world.add(producer, 0)
    await world.produce(producer, b"a")
    data = world.running.partitions.get("t", 0)
    before = data.log_end_offset
    disk = hold_fsyncs(world)
    world.coordinator.end("x", *producer, is_commit=is_commit, client_version=0)
    await turns()
    assert data.log_end_offset == before, "a marker before the decision was durable"
    disk.go_on_once()
    await eventually(lambda: data.log_end_offset == before + 1)
    prepared = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
    assert world.state().state == prepared, "complete before the marker was durable"
    disk.go_on()
    ended = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    await eventually(lambda: world.state().state == ended)


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_batch_waits_until_its_transaction_is_durable(
    world: World, is_refused: bool
) -> None:
    """Otherwise a power cut could leave a batch of a transaction that no coordinator knows."""
    producer = await world.begin()
    disk = hold_fsyncs(world)
    question = Question("x", *producer, {T0: 0}, Protocol.ADDING)
    waiting = verify(world.running.broker.services, question)
    assert not isinstance(waiting, dict)
    task = asyncio.ensure_future(waiting)
    await turns()
    assert not task.done()
    if is_refused:
        disk.error = StorageError("fsync: no")
    disk.go_on()
    assert await task == ({T0: ErrorCode.NOT_COORDINATOR} if is_refused else {})
