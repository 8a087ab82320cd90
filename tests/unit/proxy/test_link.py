"""`link`: the ends of a conversation's two sockets."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from minibroker.proxy.desk import Desk
from minibroker.proxy.gates import Gate
from minibroker.proxy.link import Link


class Wire:
    """A connection that says what is done with it."""

    def __init__(self, *, has_tls: bool) -> None:
        self.has_tls = has_tls
        self.calls: list[str] = []

    def can_write_eof(self) -> bool:
        """Do `WriteTransport.can_write_eof`."""
        return not self.has_tls

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


def link_of(client: Wire, kafka: Wire) -> Link:
    """Return a conversation with these sockets."""
    link = Link(
        Desk(),
        Gate((("kafka", 9092),), 0),
        cast("Any", None),
        cast("Any", None),
        on_end=lambda _: None,
    )
    link.client.transport = cast("Any", client)
    link._kafka.transport = cast("Any", kafka)
    return link


async def test_a_socket_is_closed_behind_the_read_that_ends_the_conversation() -> None:
    """uvloop writes behind a read of TLS, and logs a fatal error on a socket that is closed."""
    client, kafka = Wire(has_tls=True), Wire(has_tls=True)
    link = link_of(client, kafka)
    link.pass_end(link._kafka)
    assert ("close" in client.calls, "abort" in kafka.calls) == (False, False)
    await asyncio.sleep(0)
    assert (client.calls[-1], kafka.calls) == ("close", ["abort"])


async def test_bytes_behind_the_end_are_ignored() -> None:
    client, kafka = Wire(has_tls=False), Wire(has_tls=False)
    link = link_of(client, kafka)
    link.end("a test")
    link._kafka.feed(b"\0\0\0\4abcd")
    link.client.feed(b"\0\0\0\4abcd")
    assert not {"write"} & {*client.calls, *kafka.calls}


@pytest.mark.parametrize("has_tls", [False, True])
async def test_half_a_connection_stays_where_there_is_no_tls(*, has_tls: bool) -> None:
    client, kafka = Wire(has_tls=has_tls), Wire(has_tls=False)
    link = link_of(client, kafka)
    assert link.pass_end(link.client) is not has_tls
    assert "write_eof" in kafka.calls
