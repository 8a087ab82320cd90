"""Transactional batches of a Produce request, judged one by one before anything is appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers import produce as produce_handler
from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import batch_of
from tests.support.transactions import World

if TYPE_CHECKING:
    pass

NONE = ErrorCode.NONE


async def produce(world: World, *batches: bytearray, version: int = 9) -> list[Any]:
    """Partition by partition."""
    data = [PartitionProduceData(index=i, records=records) for i, records in enumerate(batches)]
    request = ProduceRequest(
        transactional_id="x",
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="t", partition_data=data)],
    )
    answer = await world.client.call(request, version)
    return list(answer.responses[0].partition_responses)


def transactional(producer: tuple[int, int], value: bytes = b"a") -> bytearray:
    return batch_of(
        value,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        is_transactional=True,
    )


async def test_one_partition_is_refused_and_the_other_is_not(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, 1)
    refused, appended = await produce(world, transactional(producer), transactional(producer))
    assert refused.error_code == ErrorCode.INVALID_TXN_STATE
    assert refused.error_message == "Partition was not added to the transaction"
    assert (refused.base_offset, refused.log_start_offset) == (-1, -1)
    assert (appended.error_code, appended.base_offset) == (0, 0)


async def test_batches_of_two_producers_are_no_request(world: World) -> None:
    first, second = await world.begin(), await world.begin("y")
    answers = await produce(world, transactional(first), transactional(second))
    codes = [answer.error_code for answer in answers]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


async def test_batches_outside_of_transactions_pass_beside_them(world: World) -> None:
    """A transactional producer's request with a plain batch: nothing asks for it."""
    producer = await world.begin()
    plain, refused = await produce(world, batch_of(b"plain"), transactional(producer))
    assert (plain.error_code, plain.base_offset) == (0, 0)
    assert refused.error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", [9, 12])
async def test_a_coordinator_that_is_away_is_worth_a_retry(world: World, version: int) -> None:
    producer = await world.begin()
    await world.running.broker.cluster.delete_topic("__transaction_state")
    answer = (await produce(world, transactional(producer), version=version))[0]
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert answer.error_message.endswith("Underlying error: NOT_COORDINATOR")


async def test_a_repeated_batch_is_answered_as_before(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, 0)
    first = await produce(world, transactional(producer))
    again = await produce(world, transactional(producer))
    assert [answer.base_offset for answer in first + again] == [0, 0]
    assert (await world.fetch(isolation=0)).high_watermark == 1


async def test_a_transaction_that_ends_between_two_parts_of_a_request_gets_no_more_batches(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch behind the marker would open a transaction that nobody ends."""
    producer = await world.begin()
    await world.add(producer, 0, 1)
    services = world.running.broker.services
    write_part = produce_handler._write_part
    marker = EndOfTransaction(*producer, 0, is_commit=False)

    def write_part_and_marker(*arguments: Any) -> None:
        monkeypatch.setattr(produce_handler, "_write_part", write_part)
        write_part(*arguments)
        partitions = [TopicPartition("t", index) for index in (0, 1)]
        services.transactions.markers.write(marker, partitions, lambda _codes: None)

    monkeypatch.setattr(produce_handler, "APPENDS_MAX", 1)
    monkeypatch.setattr(produce_handler, "_write_part", write_part_and_marker)
    first, second = await produce(world, transactional(producer), transactional(producer))
    assert (first.error_code, second.error_code) == (NONE, ErrorCode.INVALID_TXN_STATE)
    data = await world.fetch(index=1, isolation=0)
    assert (data.high_watermark, data.last_stable_offset) == (1, 1)
