"""A service with aiokafka: orders come in, each is confirmed on another topic, exactly once.

An order that is confirmed is committed in the same transaction, so a crash in between repeats
nothing.
"""

import asyncio
import json
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

ORDERS, CONFIRMED, GROUP = "orders", "confirmations", "orders-service"


class OrdersService:
    """The service; `run` until it is cancelled."""

    def __init__(self, bootstrap_servers: str, *, instance: str = "1") -> None:
        self._consumer = AIOKafkaConsumer(
            ORDERS,
            bootstrap_servers=bootstrap_servers,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            retry_backoff_ms=20,
            heartbeat_interval_ms=200,
        )
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap_servers,
            transactional_id=f"{GROUP}-{instance}",
            retry_backoff_ms=20,
        )

    async def run(self) -> None:
        async with self._producer, self._consumer:
            while True:
                batches = await self._consumer.getmany(timeout_ms=100)
                for place, records in batches.items():
                    with suppress(CommitFailedError, IllegalStateError):  # somebody else has it now
                        await self._confirm(place, records)

    async def _confirm(self, place: TopicPartition, records: list) -> None:
        async with self._producer.transaction():
            for record in records:
                order = json.loads(record.value)
                total = sum(line["price"] * line["count"] for line in order["lines"])
                answer = json.dumps({"order": order["id"], "total": total}).encode()
                await self._producer.send_and_wait(CONFIRMED, answer, key=record.key)
            await self._producer.send_offsets_to_transaction({place: records[-1].offset + 1}, GROUP)


def main(bootstrap_servers: str) -> None:
    asyncio.run(OrdersService(bootstrap_servers).run())
