"""The limits on connections: of the broker, of one listener, of one address.

A listener asks here for a place before it serves a connection that it has accepted, and
`Connections` gives the place back when the connection is closed. A place is for one socket.

The limits, each in force as soon as it is altered:

    max.connections                  of the broker, and of each listener: `listener.name.X.…`
    max.connection.creation.rate     likewise
    max.connections.per.ip           of one address, with max.connections.per.ip.overrides

A listener without a number of its own has the broker's number for itself, too. Where a listener
has no room, the next client waits. The protected listener does not count against the broker's
numbers: it takes a place though the broker is full (`Connections.take_place`).

Source: Kafka ConnectionQuotas.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING

from minibroker.broker.config.settings import LISTENER_LIMITS
from minibroker.kafka.java_strings import host_address

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.handlers.common.context import Services
    from minibroker.broker.quotas.rate import Rate
    from minibroker.broker.resolver import Resolver

logger = logging.getLogger(__name__)


class _ListenerLimits:
    """In the order of `LISTENER_LIMITS`."""

    __slots__ = ("connections", "rate_per_s")

    def __init__(self, connections: int, rate_per_s: int) -> None:
        self.connections = connections
        self.rate_per_s = rate_per_s


class ConnectionLimits:
    """The places for connections of one broker. Belongs to the loop's thread."""

    __slots__ = ("_of_listeners", "_overrides", "_per_host", "_per_listener", "_room", "_services")

    def __init__(self, services: Services) -> None:
        self._services = services
        """Constant."""
        self._per_host: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self._of_listeners: tuple[BrokerConfig, dict[str, _ListenerLimits]] = (services.config, {})
        """The settings that were read last, and the limits of listeners in them, by name."""
        self._overrides: tuple[dict[str, int], dict[str, int]] = ({}, {})
        """The value of the setting that was resolved last, and its limits by address."""
        self._room = asyncio.Event()
        """Set when there may be more places than before."""

    # The listeners.

    def is_protected(self, listener: Listener) -> bool:
        """Return whether clients of other listeners take no place away from this one: limits of
        the whole broker do not hold here.

        Source: Kafka ConnectionQuotas.protectedListener.
        Differs from Kafka: the controller's listener is protected, too.
        """
        config = self._services.config
        if listener.name == config.inter_broker_listener_name:
            return len(config.listeners) > 1
        return listener.name == config.control_plane_listener_name

    def _of(self, listener: Listener) -> _ListenerLimits:
        """Return the limits in force of one listener; they are read once per change."""
        config, limits_by_name = self._services.config, self._of_listeners[1]
        if config is not self._of_listeners[0]:
            limits_by_name = {}
            self._of_listeners = (config, limits_by_name)
        limits = limits_by_name.get(listener.name)
        if limits is None:
            own = config.of_listener(listener.name)
            limits = _ListenerLimits(*map(own.integer, LISTENER_LIMITS))
            limits_by_name[listener.name] = limits
        return limits

    # Rates.

    def delay_ms(self, listener: Listener, rate: Rate) -> int:
        """Count a connection in the listener's `rate` and in the broker's; return how long the
        listener has to wait.

        Source: Kafka ConnectionQuotas.recordConnectionAndGetThrottleTimeMs.
        """
        services = self._services
        rates, now_ms = services.quotas.connection_rates, services.clock.now_ms()
        delay_ms = rates.delay_ms(rate, self._of(listener).rate_per_s, now_ms)
        if self.is_protected(listener):
            return delay_ms
        limit = services.config.max_connection_creation_rate
        return max(delay_ms, rates.delay_ms(rates.of_broker, limit, now_ms))

    def address_delay_ms(self, listener: Listener, rate: Rate, host: str) -> int:
        """Count a connection of an address; above 0 it may not be served, and counts nowhere."""
        services = self._services
        rates, now_ms = services.quotas.connection_rates, services.clock.now_ms()
        delay_ms = rates.address_delay_ms(host, now_ms)
        if delay_ms:
            rates.take_back(rate, now_ms)
            if not self.is_protected(listener):
                rates.take_back(rates.of_broker, now_ms)
        return delay_ms

    # Places.

    @property
    def excess(self) -> int:
        """Return how many connections there are beyond `max.connections`."""
        return max(self._per_listener.total() - self._services.config.max_connections, 0)

    def _has_room(self, listener: Listener) -> bool:
        if self._per_listener[listener.name] >= self._of(listener).connections:
            return False
        total = self._per_listener.total()
        return self.is_protected(listener) or total < self._services.config.max_connections

    async def wait_for_room(self, listener: Listener) -> None:
        """Return when a connection of this listener may take a place; it is still free then, and
        the limit of its address is known.
        """
        await self._resolve_overrides()
        while not self._has_room(listener):
            self._room.clear()
            await self._room.wait()
            await self._resolve_overrides()

    async def wait_for_departure(self, timeout_s: float) -> None:
        """Return when a connection has ended, or after `timeout_s`."""
        self._room.clear()
        try:
            await asyncio.wait_for(self._room.wait(), timeout_s)
        except TimeoutError:
            return

    def look_again(self) -> None:
        """Wake the listeners that wait for room."""
        self._room.set()

    def take(self, listener: Listener, host: str) -> None:
        """Take the place of one connection."""
        self._per_listener[listener.name] += 1
        self._per_host[host] += 1

    def give_back(self, listener: Listener, host: str) -> None:
        """Give the place of a connection back that is closed."""
        for counts, name in ((self._per_listener, listener.name), (self._per_host, host)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
        self._room.set()

    def refuses_host(self, host: str) -> bool:
        """Return whether the address has as many connections as `max.connections.per.ip` and its
        overrides allow.
        """
        limit = self._overrides[1].get(host, self._services.config.max_connections_per_ip)
        if self._per_host[host] < limit:
            return False
        self._services.metrics.refused_connections += 1
        logger.warning(
            "refused a connection from %s: it has %d already (max.connections.per.ip)",
            host,
            self._per_host[host],
        )
        return True

    async def _resolve_overrides(self) -> None:
        """Find the addresses of the overrides in force; a name is looked up once per value.

        New connections wait for a slow name server meanwhile, so nobody comes in past a limit.
        Source: Kafka ConnectionQuotas, which looks names up when it is made, and at a change.
        """
        while (overrides := self._services.config.max_connections_per_ip_overrides) != (
            self._overrides[0]
        ):
            limits = await _by_address(overrides, self._services.resolver)
            self._overrides = (overrides, limits)


async def _by_address(overrides: dict[str, int], resolver: Resolver) -> dict[str, int]:
    """Return `max.connections.per.ip.overrides` by address: a host name gives all its addresses."""
    limits: dict[str, int] = {}
    for name, limit in overrides.items():
        try:
            addresses = await resolver.addresses(name)
        except (OSError, UnicodeError) as error:
            logger.warning("max.connections.per.ip.overrides: no address of %s: %s", name, error)
            continue
        limits.update((host_address(address), limit) for address in addresses)
    return limits
