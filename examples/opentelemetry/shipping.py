"""A service with aiokafka whose spans continue the trace of the order that it ships.

OpenTelemetry's instrumentation of aiokafka writes the trace into the headers of each record
(`traceparent`) and makes a span for each record that is sent or received.
"""

import json

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from opentelemetry import propagate, trace

ORDERS, SHIPMENTS, GROUP = "orders", "shipments", "shipping"
tracer = trace.get_tracer("shipping")


class Shipping:
    """The service; `run` until it is cancelled."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = AIOKafkaConsumer(
            ORDERS,
            bootstrap_servers=bootstrap_servers,
            group_id=GROUP,
            auto_offset_reset="earliest",
        )
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap_servers, enable_idempotence=True, retry_backoff_ms=20
        )

    async def run(self) -> None:
        """Ship each order that comes in."""
        async with self._producer, self._consumer:
            async for record in self._consumer:
                headers = {name: value.decode() for name, value in record.headers}
                with tracer.start_as_current_span("ship", context=propagate.extract(headers)):
                    order = json.loads(record.value)
                    shipment = json.dumps({"order": order["id"], "parcels": 1}).encode()
                    await self._producer.send_and_wait(SHIPMENTS, shipment, key=record.key)


async def place_order(bootstrap_servers: str, number: int) -> None:
    """Write an order, as a shop does, in a trace of its own."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, enable_idempotence=True)
    async with producer:
        with tracer.start_as_current_span("place order"):
            await producer.send_and_wait(ORDERS, json.dumps({"id": number}).encode())
