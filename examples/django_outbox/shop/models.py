"""Orders, and the records that Kafka is to get, in one database."""

import uuid

from django.db import models, transaction


class Order(models.Model):
    """An order of a customer."""

    customer = models.CharField(max_length=100)
    total = models.PositiveIntegerField()


class OutboxRecord(models.Model):
    """A record that is not in Kafka yet; the order of `number` is the order of their topic."""

    number = models.BigAutoField(primary_key=True)
    event_id = models.UUIDField(default=uuid.uuid4)
    topic = models.CharField(max_length=249)
    key = models.CharField(max_length=100)
    value = models.JSONField()


def place_order(customer: str, total: int) -> Order:
    """Save an order and its record in one transaction: both are there, or none is."""
    with transaction.atomic():
        order = Order.objects.create(customer=customer, total=total)
        value = {"id": order.pk, "customer": customer, "total": total}
        OutboxRecord.objects.create(topic="orders", key=customer, value=value)
    return order
