"""Consumers of several libraries that begin at the end of a topic, one after the other.

Each reads in a thread of its own, or in one JVM for all of them, until a record says "end GROUP",
or until the function that `start` returned is called.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import subprocess
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from tests.support.java import KAFKA_44, compiled, java_command, log_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEARTBEAT_MS = 100
LEAVE_S = 60.0
_numbers = itertools.count(1)


class Start(Protocol):
    """Starts a consumer of a group; its values go into a queue. Returns a function that has it
    leave, and waits for that.
    """

    def __call__(
        self, group: str, values: queue.SimpleQueue[str], instance: str | None = None
    ) -> Callable[[], None]: ...


@contextmanager
def readers(client: str, address: str, topic: str) -> Iterator[Start]:
    """Yield a function that starts consumers of one library.

    `client`: `librdkafka`, `aiokafka`, `kafka-python` or `java`; `librdkafka/consumer` and
    `java/consumer` speak the consumer protocol (KIP-848).
    """
    library, _, protocol = client.partition("/")
    if library == "java":
        with _java(address, topic, protocol or "classic") as start_java:
            yield start_java
        return
    reader_of = {"librdkafka": _librdkafka, "aiokafka": _aiokafka, "kafka-python": _kafka_python}

    def start(
        group: str, values: queue.SimpleQueue[str], instance: str | None = None
    ) -> Callable[[], None]:
        is_over = threading.Event()

        def take(value: bytes) -> None:
            if value.decode() == f"end {group}":
                is_over.set()
            else:
                values.put(value.decode())

        settings = {"address": address, "topic": topic, "group": group, "instance": instance}
        if protocol:
            settings["protocol"] = protocol
        thread = threading.Thread(
            target=reader_of[library], args=(take, is_over), kwargs=settings, daemon=True
        )
        thread.start()

        def end() -> None:
            is_over.set()
            thread.join(LEAVE_S)
            assert not thread.is_alive(), f"a consumer of {client} does not leave"

        return end

    yield start


def _librdkafka(
    take: Callable[[bytes], None],
    is_over: threading.Event,
    *,
    address: str,
    topic: str,
    group: str,
    instance: str | None,
    protocol: str = "classic",
) -> None:
    from confluent_kafka import Consumer  # noqa: PLC0415  one of several

    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "latest",
        "log_level": 0,
    }
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = HEARTBEAT_MS
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not is_over.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            take(message.value())
    consumer.close()


def _aiokafka(
    take: Callable[[bytes], None],
    is_over: threading.Event,
    *,
    address: str,
    topic: str,
    group: str,
    instance: str | None,
) -> None:
    from aiokafka import AIOKafkaConsumer  # noqa: PLC0415  as above

    async def read() -> None:
        async with AIOKafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="latest",
            heartbeat_interval_ms=HEARTBEAT_MS,
        ) as consumer:
            while not is_over.is_set():
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    for record in records:
                        take(record.value)

    asyncio.run(read())


def _kafka_python(
    take: Callable[[bytes], None],
    is_over: threading.Event,
    *,
    address: str,
    topic: str,
    group: str,
    instance: str | None,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka  # noqa: PLC0415  as above
    options = {} if instance is None else {"group_instance_id": instance}
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="latest",
        heartbeat_interval_ms=HEARTBEAT_MS,
        **options,
    )
    while not is_over.is_set():
        # A poll of 3.0 that ends while the consumer joins may leave it waiting for ever.
        for records in consumer.poll(2000).values():
            for record in records:
                take(record.value)
    consumer.close()


@contextmanager
def _java(address: str, topic: str, protocol: str) -> Iterator[Start]:
    classes = compiled("LatestReaders")
    process = subprocess.Popen(
        java_command(
            KAFKA_44,
            "LatestReaders",
            address,
            topic,
            protocol,
            options=[log_option("tools")],
            classes=classes,
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    stdin = process.stdin
    values_of: dict[str, queue.SimpleQueue[str]] = {}
    leaves: dict[str, threading.Event] = {}

    def listen() -> None:
        for line in process.stdout or ():
            name, _, value = line.rstrip("\n").partition(" ")
            if value == "has left":
                leaves[name].set()
            else:
                values_of[name].put(value)

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()

    def say(line: str) -> None:
        stdin.write(f"{line}\n")
        stdin.flush()

    def start(
        group: str, values: queue.SimpleQueue[str], instance: str | None = None
    ) -> Callable[[], None]:
        name = f"reader-{next(_numbers)}"
        values_of[name], leaves[name] = values, threading.Event()
        say(f"{name} {group} {instance or '-'}")

        def end() -> None:
            say(name)
            assert leaves[name].wait(LEAVE_S), f"the consumer {name} of {group} does not leave"

        return end

    try:
        yield start
    finally:
        process.kill()
        process.wait()
        listening.join()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
