"""The service's tests: the whole service runs, and its client talks to a broker."""

import pytest
from invoices import app


@pytest.fixture
async def service(kafka):
    """Run the service until the test is over."""
    service = app(kafka.bootstrap)
    await service.start()
    yield service
    await service.stop()


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


async def test_a_service_that_starts_again_goes_on_where_it_stopped(kafka):
    for number in (1, 2):
        service = app(kafka.bootstrap)
        await service.start()
        kafka.produce("orders", {"id": number, "price": 1})
        await kafka.wait_for_async("invoices", number)
        await service.stop()
    assert kafka.lag("invoices") == {("orders", 0): 0}
