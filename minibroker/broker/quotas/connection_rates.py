"""Limits on new connections a second, for one address, for one listener and for all together.

`connection_creation_rate` of an IP (or of `<default>`): the connection over the limit is accepted,
not served, and closed after the delay. `max.connection.creation.rate` of the broker or of one
listener: accepting itself waits. All delays are one window at most. Connections count while there
is no limit, too: a limit that is set knows those of the last windows, as in Kafka.

Entities are addresses here: `server/host_names.py` asks for those of names.

Source: KIP-612; Kafka ConnectionQuotas.
"""

from __future__ import annotations

from typing import Final

from minibroker.broker.cluster.paths import DEFAULT_ENTITY, desanitize
from minibroker.broker.quotas.rate import Rate, delay_ms
from minibroker.kafka.java_strings import host_address

UNLIMITED: Final = 2**31 - 1
_SILENCE_MS_MAX: Final = 3_600_000


class ConnectionRates:
    """Rates of the broker and of those addresses that have a limit. A listener has its own."""

    __slots__ = ("_count", "_limits", "_rates", "_window_ms", "of_broker")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._count = window_count
        self._window_ms = window_ms
        self.of_broker = Rate()
        """Connections of all listeners together, but for the protected one."""
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

    def delay_ms(self, rate: Rate, limit: float, now_ms: int) -> int:
        """Count a connection in a rate; return how long accepting has to wait, at most a window."""
        rate.record(1, now_ms, self._window_ms, self._count)
        if limit >= UNLIMITED:
            return 0
        rate_per_s, span_ms = rate.measure(now_ms, self._window_ms, self._count)
        return min(delay_ms(rate_per_s, limit, span_ms), self._window_ms)

    def take_back(self, rate: Rate, now_ms: int) -> None:
        """Take back a connection from a rate that is not served."""
        rate.record(-1, now_ms, self._window_ms, self._count)

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
        delay = self.delay_ms(rate, limit, now_ms)
        if delay:
            self.take_back(rate, now_ms)
        return delay

    def _drop_silent(self, now_ms: int) -> None:
        silent = [
            address
            for address, (_, used_ms) in self._rates.items()
            if now_ms - used_ms >= _SILENCE_MS_MAX
        ]
        for address in silent:
            del self._rates[address]


def _address(entity_name: str) -> str:
    """Return the address that a node of /config/ips means, as listeners name those of clients."""
    if entity_name == DEFAULT_ENTITY:
        return DEFAULT_ENTITY
    from ipaddress import ip_address  # noqa: PLC0415  seldom asked for, and slow to import

    return host_address(str(ip_address(desanitize(entity_name))))
