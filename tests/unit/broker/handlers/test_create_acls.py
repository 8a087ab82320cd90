"""CreateAcls, DescribeAcls and DeleteAcls with an authorizer; without one, see tests/compat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.authorizers import STANDARD_AUTHORIZER
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from minibroker.kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from minibroker.kafka.protocol.messages.describe_acls import DescribeAclsRequest
from tests.support.principals import connect_as
from tests.unit.broker.handlers.acl_requests import ALICE, ROOT, SETTINGS, acl, allow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.in_process import InProcessBroker, RawClient

VERSIONS = [0, 1, 2, 3]
ANY, LITERAL = 1, 3


@pytest.fixture
def settings() -> dict[str, str]:
    return SETTINGS


@pytest.fixture
async def root(running: InProcessBroker) -> AsyncIterator[RawClient]:
    async with await connect_as(running, ROOT) as connected:
        yield connected


def creation(**changes: Any) -> AclCreation:
    usual = {
        "resource_type": 2,
        "resource_name": "t",
        "principal": ALICE,
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(**{**usual, **changes})


def everything(kind: type = DescribeAclsRequest, **changes: Any) -> Any:
    usual = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return kind(**{**usual, **changes})


@pytest.mark.parametrize("version", VERSIONS)
async def test_acls_come_and_go(root: RawClient, version: int) -> None:
    creations = [creation(), creation(operation=4), creation(resource_type=3)]
    answer = await root.call(CreateAclsRequest(creations=creations), version)
    assert [result.error_code for result in answer.results] == [0, 0, 0]
    pattern_type = ANY if version else LITERAL
    question = everything(pattern_type_filter=pattern_type)
    description = await root.call(question, version)
    assert [
        (each.resource_type, each.resource_name, [entry.operation for entry in each.acls])
        for each in description.resources
    ] == [(2, "t", [3, 4]), (3, "t", [3])]
    reads = everything(DeleteAclsFilter, operation=3, pattern_type_filter=pattern_type)
    deleted = await root.call(DeleteAclsRequest(filters=[reads, reads]), version)
    first, second = deleted.filter_results
    assert [(each.resource_type, each.operation) for each in first.matching_acls] == [
        (2, 3),
        (3, 3),
    ]
    assert second.matching_acls == []
    description = await root.call(question, version)
    assert [(each.resource_type, len(each.acls)) for each in description.resources] == [(2, 1)]


async def test_wrong_acls_have_errors_of_their_own(root: RawClient) -> None:
    creations = [
        creation(resource_type=4, resource_name="mine"),
        creation(resource_name=""),
        creation(resource_name="a/b"),
        creation(resource_type=99),
        creation(),
    ]
    answer = await root.call(CreateAclsRequest(creations=creations), 3)
    assert [(result.error_code, result.error_message) for result in answer.results] == [
        (42, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"),
        (42, "Invalid empty resource name"),
        (42, "Failed to create ACL"),
        (42, "Failed to create ACL"),
        (0, ""),
    ]


async def test_a_word_of_filters_fails_the_whole_request(root: RawClient) -> None:
    answer = await root.call(CreateAclsRequest(creations=[creation(), creation(operation=ANY)]), 3)
    assert [result.error_code for result in answer.results] == [-1, -1]
    description = await root.call(everything(), 3)
    assert description.resources == []


async def test_acls_need_permissions_of_the_cluster(running: InProcessBroker) -> None:
    failed = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    create = CreateAclsRequest(creations=[creation(), creation()])
    delete = DeleteAclsRequest(filters=[everything(DeleteAclsFilter)])
    async with await connect_as(running, ALICE) as alice:
        assert (await alice.call(everything(), 3)).error_code == failed
        assert [r.error_code for r in (await alice.call(create, 3)).results] == [failed] * 2
        assert [r.error_code for r in (await alice.call(delete, 3)).filter_results] == [failed]
        await allow(running, acl(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME))
        assert (await alice.call(everything(), 3)).error_code == 0
        assert [r.error_code for r in (await alice.call(create, 3)).results] == [0, 0]


class TestNoAuthorizer:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {}

    @pytest.mark.parametrize(
        "request_",
        [
            DescribeAclsRequest(resource_type_filter=0),
            CreateAclsRequest(creations=[AclCreation(resource_type=0)]),
            DeleteAclsRequest(filters=[DeleteAclsFilter(resource_type_filter=0)]),
        ],
        ids=["describe", "create", "delete"],
    )
    async def test_a_code_for_nothing_ends_the_connection_and_one_line_says_why(
        self, client: RawClient, request_: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        with pytest.raises(ConnectionError):
            await client.call(request_, 1)
        (record,) = [entry for entry in caplog.records if entry.levelname in ("WARNING", "ERROR")]
        assert "stands for nothing" in record.getMessage()
        assert record.exc_info is None


class TestStandardAuthorizer:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {**SETTINGS, "authorizer.class.name": STANDARD_AUTHORIZER}

    async def test_an_acl_is_in_the_result_of_each_filter(self, root: RawClient) -> None:
        await root.call(CreateAclsRequest(creations=[creation()]), 3)
        all_acls = everything(DeleteAclsFilter)
        strange = everything(DeleteAclsFilter, operation=99)
        deleted = await root.call(DeleteAclsRequest(filters=[all_acls, strange, all_acls]), 3)
        assert [
            (result.error_code, len(result.matching_acls)) for result in deleted.filter_results
        ] == [(0, 1), (42, 0), (0, 1)]

    async def test_hosts_may_be_networks(self, root: RawClient) -> None:
        creations = [creation(host="127.0.0.0/8"), creation(host="127.0.0.0/88")]
        answer = await root.call(CreateAclsRequest(creations=creations), 3)
        assert [result.error_code for result in answer.results] == [0, 42]
