"""`Wire`: the two sockets of a connection through the proxy, as its conversation sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from minibroker.proxy.addresses import Address


class DueCall(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Do not call."""


class Wire(Protocol):
    """The sockets of a conversation. No call blocks."""

    @property
    def number(self) -> int:
        """Return the number of the connection."""

    @property
    def client_address(self) -> str:
        """Return HOST:PORT of the client."""

    @property
    def broker_address(self) -> str:
        """Return HOST:PORT of the broker."""

    def to_kafka(self, data: bytes) -> None:
        """Send bytes to the broker."""

    def to_client(self, data: bytes) -> None:
        """Send bytes to the client."""

    def read_client(self, *, is_on: bool) -> None:
        """Read what the client sends, or let it wait."""

    def read_kafka(self, *, is_on: bool) -> None:
        """Read what the broker sends, or let it wait."""

    def end(self, reason: str) -> None:
        """End both connections, behind the bytes that were sent to the client."""

    def later(self, delay_s: float, call: Callable[[], None]) -> DueCall:
        """Call after a time, unless the connection has ended."""

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Run work beside the conversation, until the connection ends."""

    def own_address(self, address: Address) -> Address | None:
        """Return where the proxy listens for a broker, None while it does not."""

    def note_addresses(self, addresses: list[Address]) -> None:
        """Note the addresses of brokers in an answer other than Metadata."""

    def note_brokers(self, brokers: dict[int, Address]) -> None:
        """Note id → address of the brokers, as Kafka says in Metadata."""

    async def open_addresses(self, addresses: list[Address]) -> None:
        """Listen for these brokers. An address that cannot be served stays Kafka's own."""
