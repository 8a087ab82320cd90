"""Connections with a principal of the test's choice, on a PLAINTEXT listener.

The listener gives `User:ANONYMOUS`. These tests are about permissions, not about the way in which a
client proves its identity, so they set the principal of a connection in the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


async def connect_as(running: InProcessBroker, principal: str) -> RawClient:
    """Return a new connection of this principal."""
    client = await running.connect()
    await client.call(ApiVersionsRequest(), 0)  # the broker has accepted it
    host, port = client.writer.get_extra_info("sockname")[:2]
    (context,) = [
        connection._context  # type: ignore[attr-defined]
        for connection in running.server.connections
        if connection._context.client_address == f"{host}:{port}"  # type: ignore[attr-defined]
    ]
    context.identify(principal)
    return client
