"""Names are asked for on threads of their own, a few at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.resolver import LOOKUPS_MAX, Resolver

if TYPE_CHECKING:
    from tests.support.name_server import SlowNameServer

TIMEOUT_S = 60


async def turns(until: int, names: list[str]) -> None:
    """Let others run until so many names were asked for."""
    async with asyncio.timeout(TIMEOUT_S):
        while len(names) < until:  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0)


async def test_localhost_is_the_address_that_kafka_finds() -> None:
    assert (await Resolver().addresses("localhost"))[0] == "127.0.0.1"


async def test_ipv4_comes_first_and_a_name_without_address_is_an_error(
    name_server: SlowNameServer,
) -> None:
    name_server.may_answer.set()
    resolver = Resolver()
    assert await resolver.addresses("host") == ["127.0.0.1", "::1"]
    with pytest.raises(OSError, match="not known"):
        await resolver.addresses("nowhere")


async def test_a_slow_name_server_holds_up_names_only(name_server: SlowNameServer) -> None:
    """Other work has the loop's threads, however many names wait; addresses are no question."""
    resolver = Resolver()
    names = [f"host-{number}" for number in range(100)]
    lookups = [asyncio.ensure_future(resolver.addresses(name)) for name in names]
    await turns(LOOKUPS_MAX, name_server.names)
    async with asyncio.timeout(TIMEOUT_S):
        assert await asyncio.to_thread(lambda: "work") == "work"
        assert await resolver.addresses("10.0.0.1") == ["10.0.0.1"]
        assert await resolver.addresses("::1") == ["::1"]
        assert await resolver.addresses("[::1]") == ["::1"]
    assert name_server.names == names[:LOOKUPS_MAX]
    name_server.may_answer.set()
    for answer in await asyncio.gather(*lookups):
        assert answer[0] == "127.0.0.1"


async def test_a_caller_that_gives_up_leaves_no_room_for_one_thread_more(
    name_server: SlowNameServer,
) -> None:
    resolver = Resolver()
    lookups = [asyncio.ensure_future(resolver.addresses("nowhere")) for _ in range(LOOKUPS_MAX)]
    await turns(LOOKUPS_MAX, name_server.names)
    for lookup in lookups:
        lookup.cancel()
    await asyncio.wait(lookups)
    late = asyncio.ensure_future(resolver.addresses("late"))
    await asyncio.sleep(0)
    assert "late" not in name_server.names
    name_server.may_answer.set()
    assert (await late)[0] == "127.0.0.1"
