"""The `conftest.py` of aiokafka's suite, on a Kafka that runs: its own one starts a container.

Tests that need something of that container (certificates, ACLs, Kerberos) are skipped.
"""

from __future__ import annotations

import asyncio
import gc
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_REASON = "needs aiokafka's own container"


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
    host, _, port = os.environ["SUITE_KAFKA"].rpartition(":")
    cls: Any = request.cls
    cls.loop = loop
    cls.kafka_host, cls.kafka_port, cls.hosts = host, int(port), [f"{host}:{port}"]
    cls.acl_manager = cls.kerberos_utils = cls.kafka_config = cls.ssl_folder = Missing()
    cls.kafka_version = os.environ["SUITE_VERSION"]


@pytest.fixture
def ssl_folder() -> None:
    """Skip the test."""
    pytest.skip(_REASON)
