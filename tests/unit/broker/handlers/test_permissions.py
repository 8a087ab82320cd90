"""The permissions that whole requests need, and the station that asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers.common.permissions import REQUEST_NEEDS, check_of, refusal
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import APIS, METADATA, load_messages
from minibroker.kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from tests.support.principals import connect_as
from tests.unit.broker.handlers.acl_requests import ALICE, ROOT, SETTINGS, acl, allow

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker


@pytest.fixture
def settings() -> dict[str, str]:
    return SETTINGS


@pytest.mark.parametrize("api_key", REQUEST_NEEDS)
def test_needs_name_fields_of_their_request(api_key: int) -> None:
    request, _ = load_messages(api_key)
    for need in REQUEST_NEEDS[api_key]:
        assert (need.field in request.__slots__) is (need.resource_type != ResourceType.CLUSTER)


def test_an_api_without_needs_of_the_request_has_no_check() -> None:
    assert check_of(METADATA) is None
    assert all(check_of(key) is not None for key in REQUEST_NEEDS)


def test_a_refusal_has_the_code_of_the_resource() -> None:
    assert refusal(ResourceType.GROUP).code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert refusal(ResourceType.CLUSTER).code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert {key in APIS for key in REQUEST_NEEDS} == {True}


async def test_the_station_refuses_the_whole_request(running: InProcessBroker) -> None:
    async with await connect_as(running, ALICE) as alice:
        answer = await alice.call(DescribeLogDirsRequest(), 3)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert answer.results == []
        await allow(running, acl(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
        answer = await alice.call(DescribeLogDirsRequest(), 3)
        assert answer.error_code == 0
        assert answer.results


async def test_a_group_is_not_disclosed(running: InProcessBroker) -> None:
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    async with await connect_as(running, ALICE) as alice:
        answer = await alice.call(heartbeat, 0)
        assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        await allow(running, acl(Operation.READ, ResourceType.GROUP, "g"))
        answer = await alice.call(heartbeat, 0)
        assert answer.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_a_super_user_may_do_everything(running: InProcessBroker) -> None:
    async with await connect_as(running, ROOT) as root:
        answer = await root.call(DescribeLogDirsRequest(), 3)
    assert answer.error_code == 0
