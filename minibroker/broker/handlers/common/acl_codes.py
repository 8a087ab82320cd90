"""ACLs and filters of requests: codes become words, as Kafka reads them while it parses.

Shared by DescribeAcls, CreateAcls and DeleteAcls. Version 0 knows literal patterns only.

Source: Kafka DescribeAclsRequest, CreateAclsRequest, DeleteAclsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.security.acl_entries import Acl, AclFilter, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission, word_of
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from minibroker.kafka.protocol.messages.create_acls import AclCreation
    from minibroker.kafka.protocol.messages.delete_acls import DeleteAclsFilter
    from minibroker.kafka.protocol.messages.describe_acls import DescribeAclsRequest

_UNKNOWN = 0
_ANY = 1


def check_codes(*codes: int) -> None:
    """Raise ProtocolError, which ends the connection, for the code UNKNOWN."""
    if _UNKNOWN in codes:
        raise ProtocolError("an ACL or a filter of ACLs has a code that stands for nothing")


def check_filter(request: DescribeAclsRequest | DeleteAclsFilter, version: int) -> None:
    """Raise ProtocolError for a filter that no client of this version sends."""
    if version == 0 and request.pattern_type_filter not in (PatternType.LITERAL, PatternType.ANY):
        raise ProtocolError("version 0 of an ACL request has literal patterns only")
    check_codes(
        request.pattern_type_filter,
        request.resource_type_filter,
        request.operation,
        request.permission_type,
    )


def filter_of(request: DescribeAclsRequest | DeleteAclsFilter, version: int) -> AclFilter:
    """Return the filter. In version 0, any pattern means literal ones."""
    pattern_type = word_of(PatternType, request.pattern_type_filter)
    if version == 0:
        pattern_type = PatternType.LITERAL
    return AclFilter(
        word_of(ResourceType, request.resource_type_filter),
        request.resource_name_filter,
        pattern_type,
        request.principal_filter,
        request.host_filter,
        word_of(Operation, request.operation),
        word_of(Permission, request.permission_type),
    )


def check_creation(creation: AclCreation, version: int) -> None:
    """Raise ProtocolError for an ACL that no client of this version sends."""
    if version == 0 and creation.resource_pattern_type != PatternType.LITERAL:
        raise ProtocolError("version 0 of an ACL request has literal patterns only")
    check_codes(
        creation.resource_pattern_type,
        creation.resource_type,
        creation.permission_type,
        creation.operation,
    )


def acl_of(creation: AclCreation) -> Acl:
    """Return the ACL. Raises KafkaError for a word that stands in filters only."""
    words = (creation.resource_type, creation.operation, creation.permission_type)
    if _ANY in words or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Acl(
        Pattern(
            word_of(ResourceType, creation.resource_type),
            creation.resource_name,
            word_of(PatternType, creation.resource_pattern_type),
        ),
        Entry(
            creation.principal,
            creation.host,
            word_of(Operation, creation.operation),
            word_of(Permission, creation.permission_type),
        ),
    )
