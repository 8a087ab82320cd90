"""Facts about the client that a handler gets, on a real connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.handlers import metadata
from minibroker.kafka.ids import ANONYMOUS
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    import pytest

    from tests.support.in_process import InProcessBroker


async def test_a_request_carries_its_client_and_its_header(
    running: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts: list[Any] = []

    def handle(context: Any, request: Any) -> MetadataResponse:
        facts.append(
            (
                context.principal,
                context.listener.name,
                context.client_address,
                context.client_id,
                (context.client_software_name, context.client_software_version),
                (context.api_key, context.version, context.correlation_id),
            )
        )
        return MetadataResponse()

    monkeypatch.setattr(metadata, "handle", handle)
    async with await running.connect("me") as client:
        host, port = client.writer.get_extra_info("sockname")[:2]
        await client.call(MetadataRequest(topics=[]), 9)
        api_versions = ApiVersionsRequest(
            client_software_name="soft", client_software_version="1.2"
        )
        await client.call(api_versions, 3)
        await client.call(MetadataRequest(topics=[]), 4)
    address = f"{host}:{port}"
    assert facts == [
        (ANONYMOUS, "PLAINTEXT", address, "me", ("unknown", "unknown"), (3, 9, 1)),
        (ANONYMOUS, "PLAINTEXT", address, "me", ("soft", "1.2"), (3, 4, 3)),
    ]


async def test_connections_do_not_share_their_context(running: InProcessBroker) -> None:
    async with await running.connect("a") as first, await running.connect("b") as second:
        for client in (first, second):
            await client.call(MetadataRequest(topics=[]), 9)
        contexts = [connection._context for connection in running.server.connections]
    assert {context.client_id for context in contexts} == {"a", "b"}
    assert contexts[0] is not contexts[1]
    assert contexts[0].services is contexts[1].services


async def test_settings_are_those_of_now(running: InProcessBroker) -> None:
    services = running.broker.services
    old_limit = services.config.integer("message.max.bytes")
    running.broker.dynamic.set_broker({"message.max.bytes": str(old_limit + 1)})
    assert services.config.integer("message.max.bytes") == old_limit + 1


async def test_advertised_versions_are_served_versions_unless_a_release_differs(
    running: InProcessBroker,
) -> None:
    services = running.broker.services
    assert services.advertised_apis == services.supported_apis
