"""`Exchange`: a request and its answer, as the trace shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from minibroker.kafka.protocol.message import Message


class Exchange(NamedTuple):
    """A request and its answer, with what is known of bytes that nobody can read."""

    number: int
    """Its place in the trace, from 1 on."""
    connection: int
    """The connection that carried it, from 1 on."""
    client_address: str
    """HOST:PORT of the client."""
    broker: str
    """The broker's address, or its id."""
    api: str
    """Kafka's name of the request: `Produce`, `JoinGroup`; `api 999` for a key that no API has."""
    version: int
    correlation_id: int
    client_id: str | None
    at_ms: float
    """Wall clock when the request came, ms since 1970."""
    duration_ms: float | None
    """Time until the answer was there, None without an answer."""
    request_bytes: int
    """Bytes of the request, without those of its length."""
    answer_bytes: int | None
    """Bytes of the answer, None without one."""
    subject: str
    """Topics, partitions, offsets, group, member, transaction: see `subject`. One line."""
    error: str | None
    """The name of the first error in the answer, None without an error."""
    fault: str | None = None
    """The effect of a fault rule on this exchange, None if none met it."""
    request: Message | None = None
    """The request, None if its bytes could not be read or are not in memory any more."""
    answer: Message | None = None
    """The answer, None without one, or if its bytes could not be read."""

    @property
    def is_one_way(self) -> bool:
        """Return whether no answer is to come: a Produce with acks 0."""
        return getattr(self.request, "acks", None) == 0
