"""Limits on new connections a second, for one address and for all together.

`connection_creation_rate` of an IP (or of `<default>`): the connection over the limit is accepted,
not served, and closed after the delay. `max.connection.creation.rate` of the broker: accepting
itself waits. Both delays are one window at most.

Entities are addresses here: `server/host_names.py` asks for those of names.

Source: KIP-612; Kafka ConnectionQuotas.
"""

from __future__ import annotations

from typing import Final

from minibroker.cluster.paths import DEFAULT_ENTITY, desanitize
from minibroker.quotas.rate import Rate, delay_ms

UNLIMITED: Final = 2**31 - 1
_SILENCE_MS_MAX: Final = 3_600_000


class ConnectionRates:
    """Rates of the broker and of those addresses that have a limit."""

    __slots__ = ("_broker", "_count", "_limits", "_rates", "_window_ms")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._count = window_count
        self._window_ms = window_ms
        self._broker = Rate()
        self._limits: dict[str, float] = {}
        self._rates: dict[str, tuple[Rate, int]] = {}
        """Address → its rate, and when (ms) it was last used."""

    def set(self, entity_name: str, limit: float | None) -> None:
        """Take the limit of an address as the tree names it, or of `<default>`; None removes it."""
        address = _address(entity_name)
        if limit is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = limit

    def broker_delay_ms(self, limit: int, now_ms: int) -> int:
        """Count a connection against the broker's own limit; how long accepting has to wait."""
        if limit >= UNLIMITED:
            return 0
        return self._record(self._broker, limit, now_ms)

    def address_delay_ms(self, address: str, now_ms: int) -> int:
        """Count a connection of `address`; above 0 it may not be served and was not counted."""
        if not self._limits:
            return 0
        limit = self._limits.get(address, self._limits.get(DEFAULT_ENTITY))
        if limit is None or limit >= UNLIMITED:
            return 0
        if address not in self._rates:
            self._drop_silent(now_ms)
        rate = self._rates.get(address, (None, 0))[0] or Rate()
        self._rates[address] = (rate, now_ms)
        delay = self._record(rate, limit, now_ms)
        if delay:
            rate.record(-1, now_ms, self._window_ms, self._count)
        return delay

    def unrecord_broker(self, limit: int, now_ms: int) -> None:
        """Take back a connection from the broker's count that its address may not have."""
        if limit < UNLIMITED:
            self._broker.record(-1, now_ms, self._window_ms, self._count)

    def _record(self, rate: Rate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms, self._window_ms, self._count)
        observed, span_ms = rate.measure(now_ms, self._window_ms, self._count)
        return min(delay_ms(observed, limit, span_ms), self._window_ms)

    def _drop_silent(self, now_ms: int) -> None:
        silent = [
            address
            for address, (_, used_ms) in self._rates.items()
            if now_ms - used_ms >= _SILENCE_MS_MAX
        ]
        for address in silent:
            del self._rates[address]


def _address(entity_name: str) -> str:
    """Return the address that a node of /config/ips means, as sockets name it."""
    if entity_name == DEFAULT_ENTITY:
        return DEFAULT_ENTITY
    from ipaddress import ip_address  # noqa: PLC0415  seldom asked for, and slow to import

    return str(ip_address(desanitize(entity_name)))
