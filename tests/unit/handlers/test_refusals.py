"""The refusals of ACLs and tokens: their fields, and the codes that end the connection.

Apache Kafka's own refusals stand beside them in tests/compat/scenarios/admin.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.handlers.refusals import error_response
from minibroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from minibroker.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from minibroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from minibroker.protocol.messages.describe_acls import DescribeAclsRequest

if TYPE_CHECKING:
    from tests.support.in_process import RawClient


@pytest.mark.parametrize(
    "request_",
    [
        DescribeAclsRequest(resource_type_filter=0),
        CreateAclsRequest(creations=[AclCreation(resource_type=0)]),
        DeleteAclsRequest(filters=[DeleteAclsFilter(resource_type_filter=0)]),
    ],
    ids=["describe", "create", "delete"],
)
async def test_the_connection_ends_and_one_line_says_why(
    client: RawClient, request_: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConnectionError):
        await client.call(request_, 1)
    (record,) = [found for found in caplog.records if found.levelname in ("WARNING", "ERROR")]
    assert "stands for nothing" in record.getMessage()
    assert record.exc_info is None


async def test_a_token_is_refused_with_the_principals_that_it_would_have_had(
    client: RawClient,
) -> None:
    request = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="carol", renewers=[], max_lifetime_ms=-1
    )
    answer = await client.call(request, 3)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (answer.principal_type, answer.principal_name) == ("User", "carol")
    assert answer.token_requester_principal_name == "ANONYMOUS"
    assert answer.expiry_timestamp_ms == -1


async def test_each_entry_is_refused(client: RawClient) -> None:
    topic_read = AclCreation(resource_type=2, operation=3, permission_type=3)
    answer = await client.call(CreateAclsRequest(creations=[topic_read, topic_read]), 1)
    assert [result.error_code for result in answer.results] == [ErrorCode.SECURITY_DISABLED] * 2


def test_a_failure_of_the_broker_is_told_in_the_form_of_the_api() -> None:
    """An internal failure is not answered with the refusal's code."""
    deletion = DeleteAclsRequest(filters=[DeleteAclsFilter()])
    answer = error_response(deletion, 1, ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    assert [(found.error_code, found.error_message) for found in answer.filter_results] == [
        (ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    ]
    answer = error_response(DescribeAclsRequest(), 1, ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, "why")
