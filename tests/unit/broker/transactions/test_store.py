"""The journal and its image in memory: written, replayed, unloaded."""

from __future__ import annotations

import asyncio
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster.internal_topics import TRANSACTIONS_TOPIC as TOPIC
from minibroker.broker.partitions.role import Leader
from minibroker.broker.transactions.records import encode_key, encode_value
from minibroker.broker.transactions.state import TransactionMetadata, TransactionState
from minibroker.broker.transactions.store import IDS_AT_ONCE, _decode_batch
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest
from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from minibroker.kafka.protocol.versioned import version_of
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.record import Record, decode_records
from tests.support.in_process import InProcessBroker
from tests.support.transactions import SETTINGS, DeafSender, transactional_world
from tests.support.turns import Turns
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.transactions import World

S = TransactionState
DATA: Any = SimpleNamespace(is_control=False)
CONTROL: Any = SimpleNamespace(is_control=True)


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(0, 0, key, value)


async def test_transactions_are_there_after_a_restart(world: World, tmp_path: Path) -> None:
    """Open transactions stay open, with producer id and epoch."""
    producers = {name: await world.begin(name) for name in ("a", "b", "c", "d")}
    await world.add(producers["b"], 0, transactional_id="b")
    await world.add(producers["c"], 1, transactional_id="c")
    await world.end(producers["c"], transactional_id="c", commit=False)
    await world.fetch()
    by_id = {transaction.transactional_id: transaction for transaction in world.coordinator.all()}
    assert {name: transaction.state for name, transaction in by_id.items()} == {
        "a": S.EMPTY,
        "b": S.ONGOING,
        "c": S.COMPLETE_ABORT,
        "d": S.EMPTY,
    }
    await world.running.stop()
    async with (
        InProcessBroker(tmp_path, SETTINGS, clock=world.clock) as again,
        await again.connect() as client,
    ):
        world.running, world.client = again, client
        await world.load()
        assert (await world.begin("a"))[1] == 1
        after = {
            transaction.transactional_id: transaction for transaction in world.coordinator.all()
        }
        for name in ("b", "c", "d"):
            assert after[name] == by_id[name]._replace(last_producer_epoch=-1)
        assert (await world.end(producers["b"], transactional_id="b")).error_code == 0


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("commit", [True, False])
async def test_a_decided_transaction_is_ended_by_the_next_start(
    world: World, tmp_path: Path, commit: bool, is_killed: bool
) -> None:
    """The broker ends between the decision and the markers; nobody has to ask.

    A kill leaves what the files hold at that moment: a copy of them is as good.
    """
    producer = await world.begin()
    await world.add(producer, 0, 1)
    await world.produce(producer, b"a")
    world.coordinator._sender = DeafSender()  # type: ignore[assignment]
    await world.end(producer, commit=commit)
    assert (await world.fetch()).last_stable_offset == 0
    directory = tmp_path
    if is_killed:
        directory = tmp_path / "killed"
        # The worker may be about to rename one: what it replaces is there all the same.
        unfinished = shutil.ignore_patterns("*.tmp")
        shutil.copytree(tmp_path / "data", directory / "data", ignore=unfinished)
    await world.running.stop()
    async with (
        InProcessBroker(directory, SETTINGS, clock=world.clock) as again,
        await again.connect() as client,
    ):
        world.running, world.client = again, client
        await world.begin()
        for index, end in ((0, 2), (1, 1)):
            records = await world.fetch(index=index)
            assert (records.high_watermark, records.last_stable_offset) == (end, end)
        aborted = (await world.fetch()).aborted_transactions or []
        assert len(aborted) == (0 if commit else 1)


@pytest.mark.parametrize(("level", "version"), [("0", 0), ("1", 1), ("2", 1)])
async def test_the_clusters_level_decides_the_version_of_the_values(
    tmp_path: Path, level: str, version: int
) -> None:
    """`--set transaction.version=…`; clients of either protocol are served at any level."""
    async with transactional_world(tmp_path, **{"transaction.version": level}) as world:
        producer = await world.begin()
        assert await world.produce(producer, b"a", version=12) == ErrorCode.NONE
        assert (await world.end(producer, version=5)).error_code == 0
        await world.fetch()
        store = world.coordinator._store
        index, metadata = store.get("x")
        assert (metadata.state, metadata.producer_epoch) == (S.COMPLETE_COMMIT, 1)
        partition = world.running.partitions.get("__transaction_state", index)
        content = partition.read(0, 1 << 20, isolation_level=0)
        versions = {
            version_of(stored.value or b"")
            for position, header in iterate_headers(content.records)
            for stored in decode_records(content.records, position, header=header)
        }
        assert versions == {version}


async def test_a_topic_that_is_deleted_takes_its_ids_along(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, 0)
    store = world.coordinator._store
    await world.running.broker.cluster.delete_topic("__transaction_state")
    assert not store.has_ongoing
    assert list(store.ongoing_ids()) == []
    assert not store.has_ids
    with pytest.raises(KafkaError) as caught:
        store.find("x")
    assert caught.value.code == ErrorCode.NOT_COORDINATOR
    assert await world.add(producer, 0) == [ErrorCode.NOT_COORDINATOR]


def store_unused(world: World, count: int) -> list[TransactionMetadata]:
    """Ids that nobody used since the epoch, all in one partition."""
    store = world.coordinator._store
    index = store.find("x")[0]
    unused: list[TransactionMetadata] = []
    while len(unused) < count:
        unused.append(TransactionMetadata(f"unused-{len(unused)}", 5, 0, timeout_ms=1))
        store.write(index, unused[-1])
    return unused


async def test_unused_ids_expire_in_short_steps(world: World) -> None:
    await world.begin()
    store = world.coordinator._store
    index = store.find("x")[0]
    unused = store_unused(world, 3 * IDS_AT_ONCE)
    steps = store.forget_unused(1)
    next(steps)
    ids = {metadata.transactional_id for metadata in store.all()}
    assert 2 * IDS_AT_ONCE <= len(ids) - 1 < 3 * IDS_AT_ONCE
    used = unused[-1]._replace(last_update_ms=2)
    store.write(index, used)
    assert len(list(steps)) >= 2
    assert {metadata.transactional_id for metadata in store.all()} == {"x", used.transactional_id}


async def test_others_have_the_loop_while_ids_expire(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.begin()
    store_unused(world, 10 * IDS_AT_ONCE)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    world.clock.advance(8 * 24 * 3_600_000)
    await eventually(lambda: not world.coordinator._store.has_ids)
    assert turns.stop() >= 10


async def test_others_have_the_loop_while_transactions_are_aborted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    producers = {f"open-{number}": await world.begin(f"open-{number}") for number in range(5)}
    for name, producer in producers.items():
        await world.add(producer, 0, transactional_id=name)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    world.clock.advance(70_001)
    await eventually(lambda: not world.coordinator._store.has_ongoing)
    assert turns.stop() >= len(producers) - 1  # the first is aborted at once


async def test_unknown_and_empty_ids_are_told_apart(world: World) -> None:
    await world.begin()
    store = world.coordinator._store
    for name, code in (
        ("", ErrorCode.INVALID_REQUEST),
        ("unknown", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ):
        with pytest.raises(KafkaError) as caught:
            store.get(name)
        assert caught.value.code == code


async def test_a_state_too_large_for_a_record_is_refused(world: World) -> None:
    """The state does not change then."""
    await world.begin()
    store = world.coordinator._store
    index, metadata = store.get("x")
    large = frozenset(TopicPartition("n" * 249, number) for number in range(300_000))
    with pytest.raises(KafkaError) as caught:
        store.write(index, metadata._replace(state=S.ONGOING, partitions=large))
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert store.get("x")[1] is metadata


def test_replay_passes_over_what_it_cannot_read(caplog: pytest.LogCaptureFixture) -> None:
    metadata = TransactionMetadata("x", 5, 0, timeout_ms=1)
    key, value = encode_key("x"), encode_value(metadata, 0)
    records = [
        record(key, value),
        record(None, value),
        record(b"\0\7", value),
        record(key, b"\0"),
        record(key, None),
    ]
    assert _decode_batch(DATA, records) == [("x", metadata), ("x", None)]
    assert len(caplog.messages) == 3
    assert _decode_batch(CONTROL, records) == []


@pytest.mark.parametrize("name", ["known", "new"])
async def test_an_answer_waits_for_followers_no_longer_than_a_request_may_take(
    world: World, name: str
) -> None:
    """Source: Kafka TransactionStateManager.appendTransactionToLog."""
    timeout_ms = world.running.broker.config.request_timeout_ms
    producer = await world.begin("known")
    await world.add(producer, 0, transactional_id="known")
    partitions = world.running.partitions
    for index in range(len(world.running.broker.cluster.image.topics[TOPIC].partitions)):
        partition = partitions.get(TOPIC, index)
        assert isinstance(partition.role, Leader)
        role = partition.role._replace(replicas=(0, 1), metadata_isr=(0, 1))
        partition.take_role(role, partitions.replica_rules)
    request: Any
    if name == "new":
        request, version = InitProducerIdRequest(transactional_id=name), 4
        request.transaction_timeout_ms = 1000
    else:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=True,
        )
        version = 3
    world.client.send(request, version)
    (connection,) = world.running.server.connections
    waiting = world.coordinator.journal._partitions.values()
    await eventually(lambda: sum(len(partition.staged) for partition in waiting) == 2)
    world.clock.advance(timeout_ms - 1)
    await asyncio.sleep(0)
    assert connection.connection.is_busy
    world.clock.advance(1)
    answer = await world.client.receive()
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
