"""DescribeAcls, CreateAcls, DeleteAcls: a code that stands for nothing ends the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
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
    (record,) = [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]
    assert "stands for nothing" in record.getMessage()
    assert record.exc_info is None
