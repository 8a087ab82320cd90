"""The service's tests: the whole service runs, and its client talks to a broker.

The service reads from the end of its topic (`latest`), so a test writes an order when the service
does that.
"""

import contextlib

import pytest
from invoices import app


@contextlib.asynccontextmanager
async def running(kafka):
    """Run the service; it is ready when the block begins."""
    service = app(kafka.bootstrap)
    await service.start()
    await kafka.wait_for_group_async("invoices", members=1)
    yield
    await service.stop()


@pytest.fixture
async def service(kafka):
    """Run the service until the test is over."""
    async with running(kafka):
        yield


async def test_an_order_becomes_an_invoice(kafka, service):
    kafka.produce("orders", {"id": 1, "price": 7, "count": 2}, key="customer-1")
    (invoice,) = await kafka.wait_for_async("invoices", 1)
    assert invoice.json() == {"order": 1, "total": 14}


async def test_a_record_that_is_no_order_is_set_aside(kafka, service):
    kafka.produce("orders", "no order", key="customer-1")
    kafka.produce("orders", {"id": 2, "price": 1})
    (invoice,) = await kafka.wait_for_async("invoices", 1)
    (refused,) = kafka.records("orders.refused")
    assert invoice.json()["order"] == 2
    assert (refused.text, refused.key) == ("no order", b"customer-1")
    assert refused.header("reason").startswith(b"Invalid JSON")


async def test_an_invoice_is_written_though_its_answer_is_lost(kafka, service):
    with kafka.faults.add("Produce", drop="before", topic="invoices", times=2) as fault:
        kafka.produce("orders", {"id": 3, "price": 5})
        (invoice,) = await kafka.wait_for_async("invoices", 1)
    assert (invoice.json()["total"], fault.hits) == (5, 2)


async def test_orders_that_come_while_the_service_is_stopped_are_read_later(kafka):
    async with running(kafka):
        kafka.produce("orders", {"id": 1, "price": 1})
        await kafka.wait_until_read_async("invoices")
    kafka.produce("orders", {"id": 2, "price": 1})
    async with running(kafka):
        invoices = await kafka.wait_for_async("invoices", 2)
    assert [invoice.json()["order"] for invoice in invoices] == [1, 2]
