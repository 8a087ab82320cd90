"""A conversation of the proxy without sockets: bytes in and out, and calls that are due later."""

from __future__ import annotations

import asyncio
from struct import pack
from typing import TYPE_CHECKING, Any

from minibroker.proxy.answer_side import AnswerSide
from minibroker.proxy.desk import Desk
from minibroker.proxy.request_side import RequestSide
from tests.support.message_bytes import answer_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from minibroker.proxy.addresses import Address

OWN: Address = ("proxy.example", 9192)


class Later:
    """A call that is due later: a test calls it, or never."""

    def __init__(self, delay_s: float, call: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Forget it."""
        self.call = None


class Conversation:
    """Both sides of a conversation, and the wire between them. Each address is `OWN`."""

    number = 1
    client_address = "127.0.0.1:50000"
    broker_address = "127.0.0.1:9092"

    def __init__(self, desk: Desk | None = None) -> None:
        self.desk = desk or Desk()
        self.desk.run = asyncio.run
        self.answers = AnswerSide(self.desk, self)
        self.requests = RequestSide(self.desk, self, self.answers)
        self.answers.make_room = self.requests.make_room
        self.received = bytearray()
        """Bytes that Kafka has received."""
        self.answered = bytearray()
        """Bytes that the client has received."""
        self.is_client_read = self.is_kafka_read = True
        self.end_reason: str | None = None
        self.later_calls: list[Later] = []
        self.addresses: list[Address] = []
        """Addresses in answers other than Metadata."""

    def client_sends(self, data: bytes) -> None:
        """Hand bytes in from the client."""
        self.requests.cutter.feed(data)

    def kafka_sends(self, data: bytes) -> None:
        """Hand bytes in from Kafka."""
        self.answers.cutter.feed(data)

    # The wire.

    def to_kafka(self, data: bytes) -> None:
        """Do `Wire.to_kafka`."""
        self.received += data

    def to_client(self, data: bytes) -> None:
        """Do `Wire.to_client`."""
        self.answered += data

    def read_client(self, *, is_on: bool) -> None:
        """Do `Wire.read_client`."""
        self.is_client_read = is_on

    def read_kafka(self, *, is_on: bool) -> None:
        """Do `Wire.read_kafka`."""
        self.is_kafka_read = is_on

    def end(self, reason: str) -> None:
        """Do `Wire.end`."""
        self.end_reason = reason

    def later(self, delay_s: float, call: Callable[[], None]) -> Later:
        """Do `Wire.later`."""
        later = Later(delay_s, call)
        self.later_calls.append(later)
        return later

    def run_due(self) -> None:
        """Make the calls that are due later."""
        calls, self.later_calls = self.later_calls, []
        for later in calls:
            if later.call is not None:
                later.call()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `Wire.run`: the work is done when this returns."""
        asyncio.run(work)

    def own_address(self, address: Address) -> Address | None:
        """Do `Wire.own_address`."""
        return OWN

    def note_addresses(self, addresses: list[Address]) -> None:
        """Do `Wire.note_addresses`."""
        self.addresses += addresses

    def note_brokers(self, brokers: dict[int, Address]) -> None:
        """Do `Wire.note_brokers`."""

    async def open_addresses(self, addresses: list[Address]) -> None:
        """Do `Wire.open_addresses`."""


def answer_frame(answer: Any, key: int, version: int, number: int) -> bytes:
    """Return an answer as Kafka sends it."""
    return framed(answer_bytes(answer, key, version, number))


def framed(body: bytes | memoryview) -> bytes:
    """Return a frame."""
    return pack(">i", len(body)) + bytes(body)
