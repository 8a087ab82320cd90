"""Logins of a Python client, in a process of its own: secured_python.py LIBRARY < CASES

LIBRARY is confluent-kafka, aiokafka or kafka-python. The input is a list of cases in JSON, as
`secured_clients.py` writes it. Each case produces a record and reads it in a group, in a child of
this process. A line of JSON says what it read, or its error: of the last two libraries the first
one that they log, because they go on trying.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 120


class ToldError(Exception):
    """The error that a client told its callback."""


class FirstError(logging.Handler):
    """Ends the process with the first error that a library logs about a connection."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._name = name

    def emit(self, record: logging.LogRecord) -> None:
        """Print it, if it says what failed."""
        text = record.getMessage()
        if text.startswith(
            ("Unable connect to", "Bootstrap connection to", "Bootstrap attempt to")
        ):
            end(self._name, error=text)


def end(name: str, **outcome: str) -> None:
    """Print the outcome of a case, and end the process."""
    os.write(1, (json.dumps({"name": name, "outcome": outcome}) + "\n").encode())
    os._exit(0)


def run(case: dict[str, Any], write_and_read: Callable[[dict[str, Any]], str]) -> None:
    """Print what a case reads, or its error, and end the process."""
    for logger in ("kafka", "aiokafka"):
        logging.getLogger(logger).addHandler(FirstError(case["name"]))
        logging.getLogger(logger).propagate = False
    try:
        value = write_and_read(case)
    except ToldError as error:
        end(case["name"], error=str(error))
    except Exception as error:
        end(case["name"], error=f"{type(error).__name__}: {error}")
    else:
        end(case["name"], read=value)


def with_librdkafka(case: dict[str, Any]) -> str:
    """Produce the name of the case, and return what is read. Raises ToldError."""
    from confluent_kafka import (  # noqa: PLC0415  the other libraries do not pay for it
        Consumer,
        KafkaError,
        Producer,
    )

    errors: list[KafkaError] = []

    def check() -> None:
        telling = [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]
        if telling:
            raise ToldError(str(telling[0]))

    settings = {**_librdkafka_settings(case), "error_cb": errors.append, "log_level": 0}
    producer = Producer(settings)
    producer.produce(case["topic"], case["name"], on_delivery=lambda e, _: e and errors.append(e))
    while producer.flush(0.1):
        check()
    check()
    consumer = Consumer({**settings, "group.id": case["topic"], "auto.offset.reset": "earliest"})
    consumer.subscribe([case["topic"]])
    while (message := consumer.poll(0.1)) is None:
        check()
    value = (message.value() or b"").decode()
    consumer.close()
    return value


def _librdkafka_settings(case: dict[str, Any]) -> dict[str, Any]:
    settings = {"bootstrap.servers": case["address"], "security.protocol": case["protocol"]}
    if "ca" in case:
        settings["ssl.ca.location"] = case["ca"]
    if "certificate" in case:
        settings["ssl.certificate.location"] = case["certificate"]
        settings["ssl.key.location"] = case["certificate"]
    if "mechanism" in case:
        settings["sasl.mechanism"] = case["mechanism"]
    if "password" in case:
        settings |= {"sasl.username": case["user"], "sasl.password": case["password"]}
    if "scope" in case:
        settings["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        settings["sasl.oauthbearer.config"] = f"principal={case['user']} scope={case['scope']}"
    if "token_url" in case:
        settings["oauth_cb"] = lambda _: (case["token"], time.time() + 3600)
    return settings


def _python_settings(case: dict[str, Any]) -> dict[str, Any]:
    """Return the settings whose names aiokafka and kafka-python share."""
    settings = {"bootstrap_servers": case["address"], "security_protocol": case["protocol"]}
    if "ca" in case:
        settings["ssl_context"] = context = ssl.create_default_context(cafile=case["ca"])
        if "certificate" in case:
            context.load_cert_chain(case["certificate"])
    if "mechanism" in case:
        settings["sasl_mechanism"] = case["mechanism"]
    if "password" in case:
        settings["sasl_plain_username"] = case["user"]
        settings["sasl_plain_password"] = case["password"]
    return settings


def with_aiokafka(case: dict[str, Any]) -> str:
    """Produce the name of the case, and return what is read."""
    return asyncio.run(_with_aiokafka(case))


async def _with_aiokafka(case: dict[str, Any]) -> str:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # noqa: PLC0415  as above
    from aiokafka.abc import AbstractTokenProvider  # noqa: PLC0415

    class Provider(AbstractTokenProvider):
        async def token(self) -> str:
            return str(case["token"])

    settings = _python_settings(case)
    if "token" in case:
        settings["sasl_oauth_token_provider"] = Provider()
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait(case["topic"], case["name"].encode())
    consumer = AIOKafkaConsumer(
        case["topic"], **settings, group_id=case["topic"], auto_offset_reset="earliest"
    )
    async with consumer:
        return str((await consumer.getone()).value.decode())


def with_kafka_python(case: dict[str, Any]) -> str:
    """Produce the name of the case, and return what is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka  # noqa: PLC0415  as above
        from kafka.net.sasl.oauth import AbstractTokenProvider  # noqa: PLC0415

    class Provider(AbstractTokenProvider):
        def token(self) -> str:
            return str(case["token"])

    settings = _python_settings(case)
    if "token" in case:
        settings["sasl_oauth_token_provider"] = Provider()
    producer = kafka.KafkaProducer(**settings)
    producer.send(case["topic"], case["name"].encode()).get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        case["topic"],
        **settings,
        group_id=case["topic"],
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    value = str(next(consumer).value.decode())
    consumer.close()
    return value


LIBRARIES = {
    "confluent-kafka": ("confluent_kafka", with_librdkafka),
    "aiokafka": ("aiokafka", with_aiokafka),
    "kafka-python": ("kafka", with_kafka_python),
}
"""Library → its module, and the function that uses it."""


def main() -> None:
    """Run all cases side by side."""
    module, write_and_read = LIBRARIES[sys.argv[1]]
    cases = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    __import__(module)  # once for all children
    children = []
    for case in cases:
        child = os.fork()
        if child == 0:
            run(case, write_and_read)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
