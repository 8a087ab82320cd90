"""A look at requests to other brokers, from the client that sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.peers.client import PeerClient
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.peer_clients import LISTENER, image_of

if TYPE_CHECKING:
    from minibroker.broker.cluster.peer_interceptor import Send


class Refusing:
    """Answers the first request itself and lets the others pass."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Any]] = []

    async def call(self, broker_id: int, request: Any, send: Send) -> Any:
        self.seen.append((broker_id, request))
        return "own" if len(self.seen) == 1 else await send()


async def test_an_interceptor_answers_or_lets_a_request_pass() -> None:
    cluster = image_of({})
    cluster.peer_interceptor = interceptor = Refusing()
    client = PeerClient(cluster, listener=LISTENER, timeout_ms=30_000)
    request = MetadataRequest()
    assert await client.call(7, request, MetadataResponse) == "own"
    with pytest.raises(ConnectionError, match="broker 7 is not registered"):
        await client.call(7, request, MetadataResponse)
    assert interceptor.seen == [(7, request)] * 2
    await client.close()
