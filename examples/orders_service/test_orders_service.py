"""The service's tests: a broker in this process, clean for every test."""

import asyncio
import contextlib
import json

import pytest
from orders_service import CONFIRMED, GROUP, ORDERS, OrdersService


@contextlib.asynccontextmanager
async def running(service):
    task = asyncio.create_task(service.run())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def order(kafka, number, price=5):
    value = {"id": number, "lines": [{"price": price, "count": 2}]}
    kafka.produce(ORDERS, json.dumps(value).encode(), key=b"customer-%d" % number)


async def confirmed(kafka, count):
    records = await kafka.wait_for_async(CONFIRMED, count)
    return [json.loads(record.value) for record in records]


async def test_an_order_is_confirmed_with_its_total(kafka):
    order(kafka, 1, price=7)
    async with running(OrdersService(kafka.bootstrap)):
        assert await confirmed(kafka, 1) == [{"order": 1, "total": 14}]
    assert sum(kafka.committed(GROUP).values()) == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 3},
        {"api": "Produce", "drop": "after", "times": 1},
        {"api": "EndTxn", "error": "COORDINATOR_NOT_AVAILABLE", "times": 2},
        {"api": "TxnOffsetCommit", "error": "COORDINATOR_LOAD_IN_PROGRESS", "times": 2},
        {"api": "Fetch", "drop": "before", "times": 1},
    ],
    ids=lambda fault: f"{fault['api']}-{fault.get('error', 'dropped')}",
)
async def test_every_order_is_confirmed_once_whatever_fails(kafka, fault):
    with kafka.faults.add(**fault) as rule:
        async with running(OrdersService(kafka.bootstrap)):
            for number in range(5):
                order(kafka, number)
            confirmations = await confirmed(kafka, 5)
    assert rule.hits == fault["times"]
    assert sorted(confirmation["order"] for confirmation in confirmations) == [0, 1, 2, 3, 4]
