"""A consumer with confluent-kafka that sets aside records that it cannot handle.

A record that fails three times goes to the topic's `.dlq`, with its origin and the reason in its
headers; then its offset is committed. Nothing is lost, and nothing blocks the partition.
"""

from confluent_kafka import Consumer, KafkaException, Producer

ATTEMPTS = 3


class Worker:
    """A worker; `handle(value)` raises for a value that it cannot handle."""

    def __init__(self, bootstrap_servers, topic, group, handle):
        self._topic = topic
        self._handle = handle
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])

    def run_once(self, timeout_s=0.1):
        """Handle at most one record; return whether one is done."""
        message = self._consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            return False
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._handle(message.value())
                break
            except Exception as error:
                if attempt == ATTEMPTS:
                    self._set_aside(message, error)
        try:
            self._consumer.commit(message=message, asynchronous=False)
        except KafkaException:  # its session is over: whoever has the partition now reads it again
            return False
        return True

    def _set_aside(self, message, error):
        refused = []
        self._producer.produce(
            f"{self._topic}.dlq",
            message.value(),
            message.key(),
            headers=[
                *(message.headers() or []),
                ("dlq.from", f"{message.topic()}-{message.partition()}@{message.offset()}"),
                ("dlq.error", f"{type(error).__name__}: {error}"),
            ],
            on_delivery=lambda problem, _: refused.append(problem) if problem else None,
        )
        if self._producer.flush(30) or refused:
            raise RuntimeError(f"cannot set aside a record: {refused}")

    def close(self):
        self._consumer.close()
