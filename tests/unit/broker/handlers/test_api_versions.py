"""ApiVersions: what is offered, at every version, and to whom it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers.api_versions import unsupported_version
from minibroker.broker.handlers.registry import supported_versions
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


@pytest.mark.parametrize("version", range(6))
async def test_every_served_api_is_offered(client: RawClient, version: int) -> None:
    request = ApiVersionsRequest()
    if version >= 3:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answer = await client.call(request, version)
    assert answer.error_code == 0
    offered = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert offered == supported_versions()


@pytest.mark.parametrize("name", ["librdkafka", "a", "A.b-1", "9"])
async def test_software_names_that_are_allowed(
    running: InProcessBroker, client: RawClient, name: str
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=name)
    assert (await client.call(request, 3)).error_code == 0
    (connection,) = running.server.connections
    assert connection._context.client_software_name == name
    assert connection._context.client_software_version == name


async def test_a_client_that_means_another_broker_is_told_so(
    running: InProcessBroker, client: RawClient
) -> None:
    cluster_id = running.broker.cluster.image.cluster_id

    async def code(asked_cluster: str | None, node: int) -> int:
        request = ApiVersionsRequest(
            client_software_name="t",
            client_software_version="1",
            cluster_id=asked_cluster,
            node_id=node,
        )
        answer = await client.call(request, 5)
        error_code: int = answer.error_code
        return error_code

    assert await code(cluster_id, 0) == 0
    assert await code(None, -1) == 0
    assert await code(cluster_id, 1) == ErrorCode.REBOOTSTRAP_REQUIRED
    assert await code("another", 0) == ErrorCode.REBOOTSTRAP_REQUIRED


def test_the_answer_to_an_unsupported_version_names_the_range_of_api_versions() -> None:
    answer = unsupported_version(0, 5)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(a.api_key, a.min_version, a.max_version) for a in answer.api_keys] == [(18, 0, 5)]
