"""Peers for tests of outboxes: they record requests, and answer as Apache Kafka's brokers do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from minibroker.kafka.protocol.messages.stop_replica import StopReplicaResponse
from minibroker.kafka.protocol.messages.update_metadata import UpdateMetadataResponse

if TYPE_CHECKING:
    from collections.abc import Callable

ROLES, STOPS, METADATA = 4, 5, 6
"""API keys."""


class RecordedPeers:
    """A `PeerClient` without connections."""

    def __init__(self, *_: object, listener: str = "", **__: object) -> None:
        self.listener = listener
        self.requests: list[tuple[int, Any]] = []
        """(broker, request), the oldest first."""
        self.newest: list[tuple[int, int]] = []
        """(API key, newest version that will do) of each request."""
        self.errors: list[Exception] = []
        """Raised by the next calls, one each."""
        self.answers: list[Any] = []
        """Given by the next calls, before the usual ones."""
        self.hold: asyncio.Event | None = None
        """Calls wait for it."""

    @classmethod
    def of(cls, *_: object, listener: str, **__: object) -> RecordedPeers:
        """Do `PeerClient.of`."""
        return cls(listener=listener)

    async def call(
        self, broker_id: int, request: Any, _response: Any, *, oldest: int, newest: int
    ) -> Any:
        assert request.VERSIONS[0] <= oldest <= newest <= request.VERSIONS[1]
        self.requests.append((broker_id, request))
        self.newest.append((request.API_KEY, newest))
        if self.hold is not None:
            await self.hold.wait()
        if self.errors:
            raise self.errors.pop(0)
        if self.answers:
            return self.answers.pop(0)
        usual: dict[int, Callable[[], Any]] = {
            ROLES: LeaderAndIsrResponse,
            STOPS: StopReplicaResponse,
            METADATA: UpdateMetadataResponse,
        }
        return usual[request.API_KEY]()

    async def close(self) -> None:
        """Do nothing."""

    def take(self) -> list[tuple[int, list[tuple[str, int]]]]:
        """Return (API key, partitions) of each request since the last call."""
        requests, self.requests = self.requests, []
        return [(request.API_KEY, partitions_of(request)) for _, request in requests]


def partitions_of(request: Any) -> list[tuple[str, int]]:
    """Return the partitions of a request."""
    return [
        (topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
    ]
