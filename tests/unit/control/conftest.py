"""A broker with its control API, and a program that asks it.

Every asynchronous test of this folder runs on both loops: uvloop and asyncio's own.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.control.access import Access
from minibroker.control.api import ControlApi
from minibroker.control.server import HttpServer
from minibroker.testing import Broker, Cluster
from tests.support import loops

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

pytest_asyncio_loop_factories = loops.pytest_asyncio_loop_factories


class Control:
    """Asks like any HTTP client."""

    def __init__(self, broker: Broker, api: ControlApi, port: int) -> None:
        self.broker = broker
        self.api = api
        self.port = port

    def raw(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Message, bytes]:
        """Status, headers, body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, text, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON."""
        status, _, text = self.raw(method, path, body, headers)
        return status, json.loads(text)


def serve(broker: Broker, access: Access | None = None) -> tuple[Control, HttpServer]:
    """The API of a broker that runs in this process."""
    api = ControlApi(broker._node, access)
    server = HttpServer(api.begin)
    port = broker.await_node(lambda _: server.listen("127.0.0.1", 0))
    return Control(broker, api, port), server


@contextmanager
def serve_of(cluster: Cluster, number: int = 0) -> Iterator[Control]:
    """Serve the API of one broker of a cluster."""
    api = ControlApi(cluster.node(number), None, cluster._nodes)
    server = HttpServer(api.begin)
    port = cluster._await(server.listen("127.0.0.1", 0))
    try:
        yield Control(cluster.broker(number), api, port)  # type: ignore[arg-type]
    finally:
        cluster._await(server.close())


@pytest.fixture
def control(kafka_broker: Broker) -> Iterator[Control]:
    """Without a token."""
    asking, server = serve(kafka_broker)
    yield asking
    kafka_broker.await_node(lambda _: server.close())
