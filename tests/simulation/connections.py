"""The connections of one client of a run, and its idea of the brokers to ask."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.image import Endpoint
from minibroker.client.async_connection import AsyncConnection
from minibroker.kafka.errors import MinibrokerError
from tests.simulation.network import FIRST_PORT

if TYPE_CHECKING:
    from minibroker.kafka.ids import TopicPartition
    from tests.simulation.world import World

TIMEOUT_S = 2.0
FAILURES = (OSError, MinibrokerError)
"""After these it is not known whether a request was done."""
ANY_BROKER_CHANCE = 0.1


class RefusedError(OSError):
    """A broker answered with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


class Connections:
    """One connection to each broker, opened when it is used."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self.chance = world.network.chance(name)
        """The chances of this client."""
        self._open: dict[int, AsyncConnection] = {}

    def leader_of(self, name: TopicPartition) -> int:
        """Return the broker to ask: the leader in the tree, now and then any other."""
        state = self._world.states.get(name)
        if state is None or state.leader < 0 or self.chance.random() < ANY_BROKER_CHANCE:
            return self.any_broker()
        return state.leader

    def any_broker(self) -> int:
        """Return any broker id."""
        return self.chance.randrange(len(self._world.hosts))

    async def call(self, broker_id: int, request: Any, response: Any, version: int) -> Any:
        """Return the answer of a broker. Raises FAILURES; the connection is closed then."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                connection = self._open.get(broker_id)
                if connection is None:
                    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", FIRST_PORT + broker_id)
                    connection = self._open[broker_id] = await AsyncConnection.open(
                        endpoint.host, endpoint.port
                    )
                return await connection.call(request, response, version)
        except FAILURES:
            self.drop(broker_id)
            raise

    def drop(self, broker_id: int) -> None:
        """Close the connection to a broker, if there is one."""
        connection = self._open.pop(broker_id, None)
        if connection is not None:
            connection.close()

    async def rest(self, shortest_s: float, longest_s: float) -> None:
        """Wait for a while."""
        await self._world.loop.pass_time(self.chance.uniform(shortest_s, longest_s))
