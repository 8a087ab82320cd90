"""IP entities named by host names: resolved when they are set, and only what holds is applied."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.resolver import Resolver
from minibroker.broker.server.host_names import HostNames

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT = {"connection_creation_rate": "5"}
OTHER = {"connection_creation_rate": "7"}


class SlowResolver(Resolver):
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.lookups: list[asyncio.Future[list[str]]] = []

    async def addresses(self, name: str) -> list[str]:
        self.lookups.append(asyncio.get_running_loop().create_future())
        return await self.lookups[-1]


class Applied(list[tuple[str, "Mapping[str, str]"]]):
    """The changes that reached the quotas."""

    def __call__(self, entity_type: str, entity_name: str, config: Mapping[str, str]) -> None:
        assert entity_type == "ips"
        self.append((entity_name, config))


@pytest.fixture
def resolver() -> SlowResolver:
    return SlowResolver()


async def turn() -> None:
    """Let tasks run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("entity", ["<default>", "10.0.0.1", "%3A%3A1"])
def test_addresses_are_applied_at_once(entity: str, resolver: SlowResolver) -> None:
    applied = Applied()
    HostNames(applied, resolver).on_config_changed(entity, LIMIT)
    assert applied == [(entity, LIMIT)]


async def test_a_name_limits_its_address_until_the_limit_is_taken_away(
    resolver: SlowResolver,
) -> None:
    applied = Applied()
    names = HostNames(applied, resolver)
    names.on_config_changed("host", LIMIT)
    await turn()
    assert applied == []
    resolver.lookups[0].set_result(["10.0.0.1"])
    await turn()
    assert applied == [("10.0.0.1", LIMIT)]
    names.on_config_changed("host", {})
    assert applied[1:] == [("10.0.0.1", {})]


async def test_a_change_overtakes_a_slow_answer(resolver: SlowResolver) -> None:
    applied = Applied()
    names = HostNames(applied, resolver)
    names.on_config_changed("host", LIMIT)
    names.on_config_changed("host", OTHER)
    await turn()
    resolver.lookups[1].set_result(["10.0.0.2"])
    resolver.lookups[0].set_result(["10.0.0.1"])
    await turn()
    assert applied == [("10.0.0.2", OTHER)]


async def test_an_answer_after_the_removal_limits_nobody(resolver: SlowResolver) -> None:
    applied = Applied()
    names = HostNames(applied, resolver)
    names.on_config_changed("host", LIMIT)
    await turn()
    names.on_config_changed("host", {})
    resolver.lookups[0].set_result(["10.0.0.1"])
    await turn()
    assert applied == []


async def test_a_name_that_nobody_knows_is_told(
    resolver: SlowResolver, caplog: pytest.LogCaptureFixture
) -> None:
    applied = Applied()
    HostNames(applied, resolver).on_config_changed("nowhere", LIMIT)
    await turn()
    resolver.lookups[0].set_exception(OSError("not known"))
    await turn()
    assert applied == []
    assert "nowhere" in caplog.text
