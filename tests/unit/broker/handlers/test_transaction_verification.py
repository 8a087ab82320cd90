"""Verification of partitions of a transaction, by the broker itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.groups.shard import GroupShard
from minibroker.broker.handlers import txn_offset_commit
from minibroker.broker.handlers.common import transaction_verification
from minibroker.broker.handlers.common.transaction_verification import Protocol, Question, verify
from minibroker.broker.partitions import verification
from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.broker.transactions.state import TransactionState
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.transactions import DeafSender, World, names, transactional_world
from tests.support.turns import Turns

if TYPE_CHECKING:
    from pathlib import Path

RETRY_MS, PATIENCE_MS = 20, 100
"""Kafka's defaults."""
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def question(
    producer: tuple[int, int], protocol: Protocol, *partitions: TopicPartition
) -> Question:
    return Question("x", *producer, dict.fromkeys(partitions, 0), protocol, {})


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        (Protocol.OLD, ErrorCode.INVALID_TXN_STATE),
        (Protocol.VERIFIED, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
async def test_partitions_that_were_not_added_are_named(
    world: World, protocol: Protocol, code: ErrorCode
) -> None:
    producer = await world.begin()
    await world.add(producer, 0)
    request = question(producer, protocol, T0, T1)
    assert verify(world.running.broker.services, request) == {T1: code}


async def test_the_second_protocol_adds(world: World) -> None:
    producer = await world.begin()
    request = question(producer, Protocol.ADDING, T0, T1)
    assert verify(world.running.broker.services, request) == {}
    assert world.state().partitions == names(0, 1)


async def test_an_old_epoch_is_what_producers_know_as_fenced(world: World) -> None:
    producer = await world.begin()
    request = question((producer[0], 7), Protocol.VERIFIED, T0)
    services = world.running.broker.services
    assert verify(services, request) == {T0: ErrorCode.INVALID_PRODUCER_EPOCH}


async def test_partitions_led_elsewhere_are_refused_before_anybody_is_asked(world: World) -> None:
    producer = await world.begin()
    missing = TopicPartition("gone", 0)
    request = question(producer, Protocol.ADDING, missing)
    services = world.running.broker.services
    assert verify(services, request) == {missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_it_can_be_turned_off_for_the_first_protocol(world: World) -> None:
    services = world.running.broker.services
    services.dynamic.set_broker({"transaction.partition.verification.enable": "false"})
    assert verify(services, question((9, 9), Protocol.VERIFIED, T0)) == {}
    refused = verify(services, question((9, 9), Protocol.ADDING, T0))
    assert refused == {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


async def test_the_wake_of_an_end_is_waited_for(world: World) -> None:
    """CONCURRENT_TRANSACTIONS is asked again until the markers are there."""
    producer = await world.begin()
    services = world.running.broker.services
    coordinator = services.transactions
    request = question(producer, Protocol.ADDING, T0)
    assert verify(services, request) == {}
    ended = coordinator.end("x", *producer, is_commit=True, client_version=2)
    assert isinstance(ended, tuple)
    request = question(ended, Protocol.ADDING, T0)
    assert verify(services, request) == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}
    waiting = verify(services, request, is_retried=True)
    assert not isinstance(waiting, dict)
    task = asyncio.ensure_future(waiting)
    await world.fetch()  # the task waits, and the markers are written meanwhile
    world.clock.advance(RETRY_MS)
    assert await task == {}
    assert world.state().partitions == names(0)


async def test_an_answer_about_an_ended_transaction_lets_nothing_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another broker coordinates. Before it answers, a marker ends the transaction in both
    partitions, and a later batch of the producer asks about the next one."""
    producer = await world.begin()
    await world.add(producer, 1)
    await world.produce(producer, b"open", index=1)
    services = world.running.broker.services
    marker = EndOfTransaction(*producer, 0, is_commit=False)

    class Elsewhere:
        async def add_partitions(
            self, _broker: int, _id: str, *_: Any, **__: Any
        ) -> dict[TopicPartition, ErrorCode]:
            partition = services.partitions.get("t", 0)
            services.transactions.markers.write(marker, [T0, T1], lambda _codes: None)
            verification.begin(partition, *producer, 0, has_epoch_bump=False)
            return {T0: ErrorCode.NONE}

    monkeypatch.setattr(transaction_verification, "_coordinator_elsewhere", lambda *_: 7)
    services.transactions.peers = Elsewhere()  # type: ignore[assignment]
    waiting = verify(services, question(producer, Protocol.VERIFIED, T0, T1))
    assert not isinstance(waiting, dict)
    assert await waiting == dict.fromkeys((T0, T1), ErrorCode.INVALID_TXN_STATE)


async def test_the_wait_is_as_long_as_the_broker_is_told(tmp_path: Path) -> None:
    settings = {
        "add.partitions.to.txn.retry.backoff.ms": "7",
        "add.partitions.to.txn.retry.backoff.max.ms": "14",
    }
    async with transactional_world(tmp_path, **settings) as world:
        producer = await world.begin()
        services = world.running.broker.services
        services.transactions._sender = DeafSender()  # type: ignore[assignment]
        await world.add(producer, 0)
        await world.end(producer)
        waiting = verify(services, question(producer, Protocol.ADDING, T0), is_retried=True)
        assert not isinstance(waiting, dict)
        task = asyncio.ensure_future(waiting)
        for _ in range(2):
            await world.fetch()
            assert not task.done()
            world.clock.advance(7)
        assert await task == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}


async def test_the_wait_has_an_end(world: World) -> None:
    producer = await world.begin()
    services = world.running.broker.services
    await world.add(producer, 0)
    store = services.transactions._store
    index, metadata = store.get("x")
    stuck = metadata._replace(state=TransactionState.PREPARE_COMMIT)
    store._runtime.get(index).replay("x", stuck)
    waiting = verify(services, question(producer, Protocol.ADDING, T0), is_retried=True)
    assert not isinstance(waiting, dict)
    task = asyncio.ensure_future(waiting)
    for _ in range(PATIENCE_MS // RETRY_MS):
        await world.fetch()
        assert not task.done()
        world.clock.advance(RETRY_MS)
    assert await task == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}


async def test_nothing_comes_between_the_answer_and_the_write_of_offsets(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker between the two would leave the offsets in a transaction that nobody ends."""
    producer_id, epoch = await world.begin()
    await world.running.broker.services.groups.journal.ensure_topic()
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    events: list[tuple[str, int]] = []
    turns = Turns()

    def note_verification(*arguments: Any, **options: Any) -> Any:
        events.append(("verified", turns.count))
        return verify(*arguments, **options)

    commit_offsets = GroupShard.commit_offsets

    def note_commit(*arguments: Any, **options: Any) -> None:
        events.append(("written", turns.count))
        commit_offsets(*arguments, **options)

    monkeypatch.setattr(txn_offset_commit, "verify", note_verification)
    monkeypatch.setattr(GroupShard, "commit_offsets", note_commit)
    topic = TxnOffsetCommitRequestTopic(
        name="t",
        partitions=[TxnOffsetCommitRequestPartition(partition_index=index) for index in (0, 1)],
    )
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[topic],
    )
    answer = await world.client.call(request, 5)
    turns.stop()
    assert [part.error_code for part in answer.topics[0].partitions] == [0, 0]
    (_, verified), (_, write_turn) = events
    assert [name for name, _ in events] == ["verified", "written"]
    assert 0 < verified == write_turn
