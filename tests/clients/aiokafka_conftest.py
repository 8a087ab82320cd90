"""The `conftest.py` of aiokafka's suite, on a Kafka that runs: its own one starts a container.

Tests that need something of that container (certificates, ACLs, Kerberos) are skipped. With a
login in the environment every client of the suite has it by default.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer, conn  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]
from aiokafka.helpers import create_ssl_context  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterator

_REASON = "needs aiokafka's own container"


if "SUITE_CA" in os.environ:
    _LOGIN = {
        "security_protocol": "SASL_SSL",
        "ssl_context": create_ssl_context(cafile=os.environ["SUITE_CA"]),
        "sasl_mechanism": os.environ["SUITE_MECHANISM"],
        "sasl_plain_username": os.environ["SUITE_USER"],
        "sasl_plain_password": os.environ["SUITE_PASSWORD"],
    }
    for _client in (AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer, AIOKafkaAdminClient):
        _client.__init__.__kwdefaults__.update(_LOGIN)
    conn.create_conn.__kwdefaults__.update(_LOGIN)


@pytest.fixture(autouse=True)
def seed(request: pytest.FixtureRequest) -> None:
    """Give each test the same random names in every run."""
    random.seed(request.node.nodeid)


class Missing:
    """A part of the container: a test that asks it for anything is skipped."""

    def __getattr__(self, name: str) -> Any:
        pytest.skip(_REASON)


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield the loop of a class of tests."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    if not loop.is_closed():
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(scope="class")
def setup_test_class_serverless(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop
) -> None:
    """Give a class of tests its loop."""
    cls: Any = request.cls
    cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    """Give a class of tests its loop, and where Kafka is."""
    addresses = os.environ["SUITE_KAFKA"].split(",")
    host, _, port = addresses[0].rpartition(":")
    cls: Any = request.cls
    cls.loop = loop
    cls.kafka_host, cls.kafka_port, cls.hosts = host, int(port), addresses
    cls.acl_manager = cls.kerberos_utils = cls.kafka_config = cls.ssl_folder = Missing()
    cls.kafka_version = os.environ["SUITE_VERSION"]


@pytest.fixture
def ssl_folder() -> None:
    """Skip the test."""
    pytest.skip(_REASON)
