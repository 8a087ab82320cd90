"""The service's traces: spans of two services around a broker, collected in memory."""

import asyncio
import contextlib

import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from shipping import ORDERS, SHIPMENTS, Shipping, place_order


@pytest.fixture(scope="session")
def exporter():
    """Instrument aiokafka; return the exporter that collects the spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    AIOKafkaInstrumentor().instrument(tracer_provider=provider)
    yield exporter
    AIOKafkaInstrumentor().uninstrument()


@pytest.fixture
def spans(exporter):
    """Return a function that returns the finished spans by their names."""
    exporter.clear()
    return lambda: {span.name: span for span in exporter.get_finished_spans()}


@contextlib.asynccontextmanager
async def shipping(kafka):
    task = asyncio.create_task(Shipping(kafka.bootstrap).run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_trace_goes_through_both_services(kafka, spans):
    async with shipping(kafka):
        await place_order(kafka.bootstrap, 1)
        await kafka.wait_for_async(SHIPMENTS, 1)
    by_name = spans()
    assert by_name.keys() == {
        "place order",
        f"{ORDERS} send",
        f"{ORDERS} receive",
        "ship",
        f"{SHIPMENTS} send",
    }
    assert len({span.context.trace_id for span in by_name.values()}) == 1
    parents = {
        f"{ORDERS} send": "place order",
        f"{ORDERS} receive": f"{ORDERS} send",
        "ship": f"{ORDERS} send",
        f"{SHIPMENTS} send": "ship",
    }
    for child, parent in parents.items():
        assert by_name[child].parent.span_id == by_name[parent].context.span_id, child


async def test_each_record_carries_its_trace(kafka, spans):
    async with shipping(kafka):
        await place_order(kafka.bootstrap, 1)
        (shipment,) = await kafka.wait_for_async(SHIPMENTS, 1)
    (order,) = kafka.records(ORDERS)
    version, trace_id, span_id, _ = order.header("traceparent").decode().split("-")
    assert version == "00"
    assert int(span_id, 16) == spans()[f"{ORDERS} send"].context.span_id
    assert trace_id == shipment.header("traceparent").decode().split("-")[1]


async def test_a_record_that_is_sent_again_has_one_span(kafka, spans, exporter):
    with kafka.faults.add("Produce", drop="after", topic=SHIPMENTS, times=2):
        async with shipping(kafka):
            await place_order(kafka.bootstrap, 1)
            await kafka.wait_for_async(SHIPMENTS, 1)
            await kafka.wait_for_requests_async("Produce", 4)
    names = [span.name for span in exporter.get_finished_spans()]
    assert names.count(f"{SHIPMENTS} send") == 1
    assert len(kafka.records(SHIPMENTS)) == 1
