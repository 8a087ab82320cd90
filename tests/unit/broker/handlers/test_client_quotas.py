"""DescribeClientQuotas and AlterClientQuotas over the wire, and what they leave in the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages import alter_client_quotas as alter
from minibroker.kafka.protocol.messages import describe_client_quotas as describe
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.in_process import RawClient

ANY, EXACT, DEFAULT = 2, 0, 1


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[InProcessBroker]:
    async with InProcessBroker(tmp_path) as broker:
        yield broker


@pytest.fixture
async def client(running: InProcessBroker) -> AsyncIterator[RawClient]:
    async with await running.connect() as raw:
        yield raw


def entry(entity: dict[str, str | None], **quotas: float | None) -> alter.RequestEntryData:
    """One alteration; None removes a quota."""
    return alter.RequestEntryData(
        entity=[alter.EntityData(entity_type=t, entity_name=n) for t, n in entity.items()],
        ops=[
            alter.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in quotas.items()
        ],
    )


async def codes_of_change(
    client: RawClient, *entries: alter.RequestEntryData, version: int = 1, **fields: Any
) -> list[int]:
    request = alter.AlterClientQuotasRequest(entries=list(entries), **fields)
    return [entry.error_code for entry in (await client.call(request, version)).entries]


async def quotas_of(
    client: RawClient, *components: tuple[str, int, str | None], strict: bool = False
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    answer = await client.call(
        describe.DescribeClientQuotasRequest(
            components=[
                describe.ComponentData(entity_type=kind, match_type=how, match=name)
                for kind, how, name in components
            ],
            strict=strict,
        ),
        1,
    )
    assert answer.error_code == 0, answer.error_message
    return {
        tuple((e.entity_type, e.entity_name) for e in quotas_of.entity): {
            value.key: value.value for value in quotas_of.values
        }
        for quotas_of in answer.entries
    }


@pytest.mark.parametrize("version", [0, 1])
async def test_set_show_change_and_remove(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    both = {"user": "a b", "client-id": None}
    everything = {
        "producer_byte_rate": 1024.0,
        "consumer_byte_rate": 2048.0,
        "request_percentage": 150.0,
        "controller_mutation_rate": 0.5,
    }
    assert await codes_of_change(client, entry(both, **everything), version=version) == [0]
    assert running.broker.cluster.config_of("users", "a%20b/clients/<default>") == {
        "producer_byte_rate": "1024",
        "consumer_byte_rate": "2048",
        "request_percentage": "150.0",
        "controller_mutation_rate": "0.5",
    }
    key = (("client-id", None), ("user", "a b"))
    assert await quotas_of(client, ("user", ANY, None)) == {key: everything}
    assert await codes_of_change(
        client, entry(both, producer_byte_rate=None, request_percentage=7.0)
    ) == [0]
    quotas = (await quotas_of(client))[key]
    assert "producer_byte_rate" not in quotas
    assert quotas["request_percentage"] == 7.0
    removals = dict.fromkeys(everything)
    assert await codes_of_change(client, entry(both, **removals)) == [0]
    assert await quotas_of(client) == {}
    assert running.broker.cluster.image.configs.get("users", {}) == {}


async def test_entities_are_answered_each_for_itself(client: RawClient) -> None:
    assert await codes_of_change(
        client,
        entry({"user": "u"}, producer_byte_rate=1.0),
        entry({"user": "v"}, producer_byte_rate=-1.0),
        entry({"host": "w"}, producer_byte_rate=1.0),
        entry({"user": "u", "ip": "127.0.0.1"}, producer_byte_rate=1.0),
        entry({"ip": "127.0.0.1"}, connection_creation_rate=10.0),
        entry({"ip": "not an address"}, connection_creation_rate=10.0),
        entry({"ip": "127.0.0.1"}, producer_byte_rate=10.0),
    ) == [0, 42, 42, 42, 0, 42, 42]
    assert set(await quotas_of(client)) == {(("user", "u"),), (("ip", "127.0.0.1"),)}


async def test_changes_of_topics_and_brokers_are_no_quotas(running: InProcessBroker) -> None:
    await running.create_topic("t")
    await running.broker.cluster.alter_config("topics", "t", {"retention.ms": "1"})
    await running.broker.cluster.alter_config("users", "u", {"SCRAM-SHA-256": "x"})
    assert not running.broker.services.quotas.is_active


async def test_a_filter_that_cannot_be_is_an_error_without_entries(client: RawClient) -> None:
    component = describe.ComponentData(entity_type="host", match_type=EXACT, match="x")
    answer = await client.call(
        describe.DescribeClientQuotasRequest(components=[component], strict=True), 1
    )
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "host" in answer.error_message
    assert answer.entries is None


async def test_quotas_live_through_a_restart(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as first, await first.connect() as client:
        await codes_of_change(client, entry({"client-id": "raw"}, producer_byte_rate=1.0))
    async with InProcessBroker(tmp_path) as second:
        assert second.broker.services.quotas.record_produce(("User:ANONYMOUS", "raw"), 100) > 0
