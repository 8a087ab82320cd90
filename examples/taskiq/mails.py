"""Tasks with taskiq on Kafka: mails are sent by workers, and tried again if that fails."""

from collections.abc import Awaitable, Callable

from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from taskiq import SimpleRetryMiddleware
from taskiq_aio_kafka import AioKafkaBroker

TOPIC, GROUP = "mails", "mailers"
ATTEMPTS = 3


def make_broker(
    bootstrap_servers: str, send: Callable[[str, str], Awaitable[None]], *, worker: bool = False
) -> AioKafkaBroker:
    """Return a broker with the task `send_mail`; `send(address, text)` sends one mail.

    A worker also runs the tasks (`taskiq.api.run_receiver_task`).
    """
    broker = AioKafkaBroker(bootstrap_servers, kafka_topic=TOPIC)
    broker = broker.with_middlewares(SimpleRetryMiddleware(default_retry_count=ATTEMPTS))
    broker.configure_producer(acks="all", enable_idempotence=True, retry_backoff_ms=20)
    broker.configure_consumer(
        group_id=GROUP,
        auto_offset_reset="earliest",
        partition_assignment_strategy=(
            RoundRobinPartitionAssignor,
        ),  # the default is kafka-python's
    )
    broker.is_worker_process = worker

    async def send_mail(address: str, text: str) -> str:
        await send(address, text)
        return f"sent to {address}"

    broker.register_task(send_mail, task_name="send_mail", retry_on_error=True)
    return broker
