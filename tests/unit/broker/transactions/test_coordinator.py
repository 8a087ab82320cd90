"""The coordinator through the wire: what it answers, what it writes, what it does by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.server import dispatch as dispatch_module
from minibroker.broker.server import transport as transport_module
from minibroker.broker.transactions.coordinator import TransactionCoordinator
from minibroker.broker.transactions.marker_sender import RETRY_MS
from minibroker.broker.transactions.records import decode
from minibroker.broker.transactions.state import (
    PRODUCER_EPOCH_MAX,
    TransactionMetadata,
    TransactionState,
)
from minibroker.broker.transactions.store import TransactionStore
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.record import decode_records
from tests.support.in_process import request_frame
from tests.support.transactions import TIMEOUT_MS, names
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.support.transactions import World

S = TransactionState
NONE = ErrorCode.NONE


@pytest.mark.parametrize(
    ("commit", "after"), [(True, S.COMPLETE_COMMIT), (False, S.COMPLETE_ABORT)]
)
async def test_a_transaction_from_begin_to_end(
    world: World, commit: bool, after: TransactionState
) -> None:
    """Readers of committed records see nothing before the end, and everything or nothing then."""
    producer = await world.begin()
    assert await world.add(producer, 0, 1) == [NONE, NONE]
    for index in (0, 1):
        assert await world.produce(producer, b"a", b"b", index=index) == NONE
    assert world.state().partitions == names(0, 1)
    records = await world.fetch()
    assert (records.high_watermark, records.last_stable_offset, len(records.records)) == (2, 0, 0)
    assert (await world.end(producer, commit=commit)).error_code == 0
    for index in (0, 1):
        records = await world.fetch(index=index)
        assert (records.high_watermark, records.last_stable_offset) == (3, 3)
        aborted = [
            (transaction.producer_id, transaction.first_offset)
            for transaction in records.aborted_transactions or ()
        ]
        assert aborted == ([] if commit else [(producer[0], 0)])
        headers = [header for _, header in iterate_headers(memoryview(records.records))]
        assert [header.is_control for header in headers] == [False, True]
        assert headers[1].producer_epoch == producer[1]
    assert world.state().state == after
    assert world.state().partitions == frozenset()


async def test_kip_890_epochs_run_out_into_a_new_producer_id(world: World) -> None:
    producer = await world.begin()
    store = world.coordinator._store
    index, metadata = store.get("x")
    store.write(index, metadata._replace(producer_epoch=PRODUCER_EPOCH_MAX - 1))
    producer = producer[0], PRODUCER_EPOCH_MAX - 1
    assert await world.produce(producer, b"a", version=12) == NONE
    answer = await world.end(producer, version=5)
    assert answer.producer_id != producer[0]
    assert answer.producer_epoch == 0
    again = await world.end(producer, version=5)
    assert (again.error_code, again.producer_id) == (0, answer.producer_id)
    fresh = answer.producer_id, 0
    assert await world.produce(fresh, b"b", version=12) == NONE


async def test_a_request_in_the_wake_of_an_end_is_told_to_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EndTxn and the next request in one write: markers come behind both answers, if one turn of
    the loop has the time for both. A run is of one API, so neither run nor turn may be over early.
    """
    monkeypatch.setattr(dispatch_module, "RUN_NS", 10**18)
    monkeypatch.setattr(transport_module, "TURN_NS", 10**18)
    producer = await world.begin()
    await world.add(producer, 0)
    await world.produce(producer, b"a")
    client = world.client
    requests = (
        (EndTxnRequest.API_KEY, 4, world.end_request(producer)),
        (AddPartitionsToTxnRequest.API_KEY, 3, world.add_request(producer, 1)),
    )
    frames = b""
    for api_key, version, request in requests:
        client.correlation_id += 1
        client.expect(api_key, version, client.correlation_id)
        frames += request_frame(request, version, client.correlation_id)
    client.writer.write(frames)
    assert (await client.receive()).error_code == 0
    assert world.codes(await client.receive()) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert (await world.fetch()).last_stable_offset == 2
    assert await world.add(producer, 1) == [NONE]


async def test_an_overdue_transaction_is_aborted(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, 0)
    await world.produce(producer, b"a")
    world.clock.advance(TIMEOUT_MS)
    assert world.state().state == S.ONGOING
    await eventually(lambda: world.coordinator._abort_timer is not None)  # the next look
    world.clock.advance(10_001)
    await eventually(lambda: world.state().state == S.COMPLETE_ABORT)
    records = await world.fetch()
    assert (records.last_stable_offset, len(records.aborted_transactions)) == (2, 1)
    assert (await world.end(producer)).error_code == ErrorCode.PRODUCER_FENCED


async def test_an_overdue_transaction_that_cannot_be_aborted_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x", "y"):
        await world.add(await world.begin(name), 0, transactional_id=name)
    abort = world.coordinator._abort
    failed: list[str] = []

    def fail_once(transaction: Any) -> None:
        if not failed:
            failed.append(transaction.transactional_id)
            raise RuntimeError("a bug")
        abort(transaction)

    monkeypatch.setattr(
        TransactionCoordinator, "_abort", lambda _, transaction: fail_once(transaction)
    )
    world.clock.advance(TIMEOUT_MS)
    await eventually(lambda: world.coordinator._abort_timer is not None)
    world.clock.advance(10_001)
    other = "y" if failed == ["x"] else "x"
    await eventually(lambda: world.state(other).state == S.COMPLETE_ABORT)
    assert world.state(failed[0]).state == S.ONGOING
    await eventually(lambda: world.coordinator._abort_timer is not None)
    world.clock.advance(10_001)
    await eventually(lambda: world.state(failed[0]).state == S.COMPLETE_ABORT)


async def test_an_overdue_transaction_of_the_last_epoch_goes_to_a_new_id(world: World) -> None:
    await world.begin()
    store = world.coordinator._store
    index, metadata = store.get("x")
    store.write(index, metadata._replace(producer_epoch=PRODUCER_EPOCH_MAX - 1))
    producer = metadata.producer_id, PRODUCER_EPOCH_MAX - 1
    await world.add(producer, 0)
    world.clock.advance(TIMEOUT_MS + 10_001)
    await world.fetch()
    after = world.state()
    assert (after.state, after.producer_epoch) == (S.COMPLETE_ABORT, 0)
    assert after.producer_id != producer[0]


async def test_ids_that_nobody_uses_expire(world: World) -> None:
    week_ms = 7 * 24 * 3_600_000
    producer = await world.begin("gone")
    open_one = await world.begin("open")
    await world.add(open_one, 0, transactional_id="open")
    world.clock.advance(week_ms + 3_600_001)
    names_left = [transaction.transactional_id for transaction in world.coordinator.all()]
    assert names_left == ["open"]
    code = (await world.end(producer, transactional_id="gone")).error_code
    assert code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_nothing_ticks_in_an_idle_broker(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, 0)
    assert world.coordinator._abort_timer is not None
    await world.end(producer)
    world.clock.advance(20_001)
    assert world.coordinator._abort_timer is None


async def test_an_end_that_cannot_be_written_is_written_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The markers are there; clients are told to wait until the journal has the end as well."""
    producer = await world.begin()
    await world.add(producer, 0)
    write = TransactionStore.write

    def refuse_ends(store: TransactionStore, index: int, metadata: TransactionMetadata) -> None:
        if metadata.state == S.COMPLETE_COMMIT:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        write(store, index, metadata)

    with monkeypatch.context() as full:
        full.setattr(TransactionStore, "write", refuse_ends)
        assert (await world.end(producer)).error_code == 0
        assert (await world.init()).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        world.clock.advance(RETRY_MS)
        assert world.state().state == S.PREPARE_COMMIT
    world.clock.advance(RETRY_MS)
    assert world.state().state == S.COMPLETE_COMMIT


async def test_state_survives_a_restart(world: World) -> None:
    """A transaction goes on with the same id and epoch after the broker was stopped."""
    producer = await world.begin()
    await world.add(producer, 0)
    assert await world.produce(producer, b"a") == NONE
    first_state = world.state()
    store = world.coordinator._store
    loaded = []
    for index in store.journal.active_indexes():
        partition = world.running.partitions.get("__transaction_state", index)
        content = partition.read(0, 1 << 20, isolation_level=0)
        loaded += _decoded(content.records)
    assert loaded[-1] == first_state._replace(last_producer_epoch=-1)


def _decoded(data: memoryview) -> list[object]:
    values = []
    for position, header in iterate_headers(data):
        for record in decode_records(data, position, header=header):
            decoded = decode(record.key, record.value)
            assert decoded is not None
            values.append(decoded[1])
    return values
