"""Codes of ACL requests: what no client sends ends the connection, the rest becomes words."""

from __future__ import annotations

import pytest

from minibroker.broker.handlers.common.acl_codes import (
    acl_of,
    check_codes,
    check_creation,
    check_filter,
    filter_of,
)
from minibroker.broker.security.acl_words import PatternType
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.create_acls import AclCreation
from minibroker.kafka.protocol.messages.delete_acls import DeleteAclsFilter

READ_TOPIC = {"resource_type": 2, "resource_name": "t", "operation": 3, "permission_type": 3}
ANYTHING = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}


@pytest.mark.parametrize("field", ["resource_type_filter", "operation", "permission_type"])
def test_a_filter_with_an_unknown_code_ends_the_connection(field: str) -> None:
    check_filter(DeleteAclsFilter(**ANYTHING), 1)
    with pytest.raises(ProtocolError, match="stands for nothing"):
        check_filter(DeleteAclsFilter(**{**ANYTHING, field: 0}), 1)


@pytest.mark.parametrize("field", ["resource_type", "operation", "permission_type"])
def test_an_acl_with_an_unknown_code_ends_the_connection(field: str) -> None:
    check_creation(AclCreation(**READ_TOPIC), 0)
    with pytest.raises(ProtocolError, match="stands for nothing"):
        check_creation(AclCreation(**{**READ_TOPIC, field: 0}), 1)


def test_codes() -> None:
    check_codes(1, 99)
    with pytest.raises(ProtocolError):
        check_codes(1, 0)


def test_version_0_has_literal_patterns_only() -> None:
    with pytest.raises(ProtocolError, match="literal"):
        check_creation(AclCreation(**READ_TOPIC, resource_pattern_type=4), 0)
    with pytest.raises(ProtocolError, match="literal"):
        check_filter(DeleteAclsFilter(**ANYTHING, pattern_type_filter=4), 0)
    anything = DeleteAclsFilter(**ANYTHING, pattern_type_filter=1)
    check_filter(anything, 0)
    assert filter_of(anything, 0).pattern_type is PatternType.LITERAL
    assert filter_of(anything, 1).pattern_type is PatternType.ANY


def test_an_acl_says_nothing_that_stands_in_filters_only() -> None:
    assert acl_of(AclCreation(**READ_TOPIC)).entry.operation is Operation.READ
    strange = AclCreation(**{**READ_TOPIC, "resource_type": 99})
    assert acl_of(strange).pattern.resource_type is ResourceType.UNKNOWN
    for wrong in (
        {"resource_type": 1},
        {"operation": 1},
        {"permission_type": 1},
        {"resource_pattern_type": 2},
    ):
        with pytest.raises(KafkaError) as refused:
            acl_of(AclCreation(**{**READ_TOPIC, **wrong}))
        assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
