"""ACLs for tests of handlers: a broker with an authorizer, clients with principals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.config.authorizers import ACL_AUTHORIZER
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker

ALICE = "User:alice"
ROOT = "User:root"
SETTINGS = {"authorizer.class.name": ACL_AUTHORIZER, "super.users": ROOT}


def acl(
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    *,
    pattern_type: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    principal: str = ALICE,
) -> Acl:
    return Acl(
        Pattern(resource_type, name, pattern_type), Entry(principal, "*", operation, permission)
    )


async def allow(running: InProcessBroker, *acls: Acl) -> None:
    """Add ACLs as CreateAcls does."""
    authorizer = running.broker.services.authorizer
    assert authorizer is not None
    assert await authorizer.create(acls, allows_networks=False) == [None] * len(acls)
