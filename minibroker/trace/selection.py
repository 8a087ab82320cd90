"""The exchanges that a person asks for: by API, client, topic, error and duration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.trace.subject import topics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.trace.exchange import Exchange


class Selection(NamedTuple):
    """A choice of exchanges; without any field it takes all."""

    apis: tuple[str, ...] = ()
    """Names of APIs, in any case."""
    client: str = ""
    """Part of the client id or of the client's address."""
    topic: str = ""
    errors: bool = False
    """True: only those with an error or a fault."""
    slower_than_ms: float = 0

    def takes(self, exchange: Exchange, names: Mapping[bytes, str]) -> bool:
        """Return whether the exchange is chosen; `names` are those of topic ids."""
        if self.apis and exchange.api.lower() not in {api.lower() for api in self.apis}:
            return False
        if self.client and not (
            self.client in (exchange.client_id or "") or self.client in exchange.client_address
        ):
            return False
        if self.errors and not (exchange.error or exchange.fault):
            return False
        if self.slower_than_ms and (exchange.duration_ms or 0) < self.slower_than_ms:
            return False
        return not self.topic or self._has_topic(exchange, names)

    def _has_topic(self, exchange: Exchange, names: Mapping[bytes, str]) -> bool:
        messages = (exchange.request, exchange.answer)
        return any(
            topic == self.topic
            for message in messages
            if message is not None
            for topic in topics_of(message, names)
        )
