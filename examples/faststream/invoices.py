"""A service with FastStream: each order becomes an invoice on another topic.

An order that cannot be read goes to `orders.refused`, with the reason in a header.
"""

import os

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage, KafkaRouter
from pydantic import BaseModel, PositiveInt, ValidationError

router = KafkaRouter()
invoices = router.publisher("invoices")
refused = router.publisher("orders.refused")


class Order(BaseModel):
    """An order as it stands in a record."""

    id: int
    price: PositiveInt
    count: PositiveInt = 1


class Invoice(BaseModel):
    """The invoice of an order."""

    order: int
    total: int


@router.subscriber("orders", group_id="invoices", ack_policy=AckPolicy.NACK_ON_ERROR)
async def write_invoice(message: KafkaMessage) -> None:
    """Publish the invoice of an order, and a record that is no order on `orders.refused`."""
    try:
        order = Order.model_validate_json(message.body)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        key = message.raw_message.key
        await refused.publish(message.body, key=key, headers={"reason": reason})
        return
    await invoices.publish(Invoice(order=order.id, total=order.price * order.count))


def app(bootstrap_servers: str) -> FastStream:
    """Return the service for these brokers."""
    broker = KafkaBroker(bootstrap_servers)
    broker.include_router(router)
    return FastStream(broker)


def main() -> FastStream:
    """Return the service; run it with `faststream run --factory invoices:main`."""
    return app(os.environ["BOOTSTRAP_SERVERS"])
