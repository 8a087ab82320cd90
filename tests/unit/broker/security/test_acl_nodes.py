"""Paths and values of the nodes of ACLs: Kafka 3.9 reads and writes the same."""

from __future__ import annotations

import json

import pytest

from minibroker.broker.security import acl_nodes
from minibroker.broker.security.acls import (
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from minibroker.kafka.errors import CoordinationError

LITERAL = Pattern(ResourceType.TRANSACTIONAL_ID, "pay", PatternType.LITERAL)
PREFIXED = Pattern(ResourceType.TOPIC, "orders-", PatternType.PREFIXED)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (LITERAL, "/kafka-acl/TransactionalId/pay"),
        (PREFIXED, "/kafka-acl-extended/prefixed/Topic/orders-"),
        (Pattern(ResourceType.GROUP, "a/b", PatternType.LITERAL), "/kafka-acl/Group/a/b"),
    ],
)
def test_a_pattern_has_a_node(pattern: Pattern, path: str) -> None:
    assert acl_nodes.path_of(pattern) == path
    assert acl_nodes.pattern_of(path) == pattern


@pytest.mark.parametrize("path", ["/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Planet/earth"])
def test_other_nodes_have_no_pattern(path: str) -> None:
    assert acl_nodes.pattern_of(path) is None


def test_acls_are_json_as_kafka_writes_it() -> None:
    entry = Entry("User:a:b", "10.0.0.1", Operation.DESCRIBE_CONFIGS, Permission.DENY)
    value = acl_nodes.encode_entries({entry})
    assert json.loads(value) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:a:b",
                "permissionType": "Deny",
                "operation": "DescribeConfigs",
                "host": "10.0.0.1",
            }
        ],
    }
    assert acl_nodes.decode_entries("/p", value) == {entry}
    assert acl_nodes.decode_entries("/p", b"") == frozenset()


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b"[]",
        b'{"version":2,"acls":[]}',
        b'{"version":1}',
        b'{"version":1,"acls":[{"principal":"alice","host":"*","operation":"Read",'
        b'"permissionType":"Allow"}]}',
    ],
)
def test_broken_values_are_refused_with_their_path(value: bytes) -> None:
    with pytest.raises(CoordinationError, match="/kafka-acl/Topic/x does not hold ACLs"):
        acl_nodes.decode_entries("/kafka-acl/Topic/x", value)


def test_changes_are_announced_as_kafka_does() -> None:
    path, value = acl_nodes.encode_change(LITERAL)
    assert (path, value) == ("/kafka-acl-changes/acl_changes_", b"TRANSACTIONAL_ID:pay")
    assert acl_nodes.decode_change(path + "1", value) == LITERAL
    path, value = acl_nodes.encode_change(PREFIXED)
    assert path == "/kafka-acl-extended-changes/acl_changes_"
    assert json.loads(value) == {
        "version": 1,
        "resourceType": "TOPIC",
        "name": "orders-",
        "patternType": "PREFIXED",
    }
    assert acl_nodes.decode_change(path + "1", value) == PREFIXED


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/kafka-acl-changes/acl_changes_1", b"TOPIC"),
        ("/kafka-acl-changes/acl_changes_1", b"PLANET:earth"),
        ("/kafka-acl-extended-changes/acl_changes_1", b"{}"),
        ("/kafka-acl-extended-changes/acl_changes_1", b'{"version":2}'),
    ],
)
def test_broken_announcements_are_refused(path: str, value: bytes) -> None:
    with pytest.raises(CoordinationError, match="does not announce a change of ACLs"):
        acl_nodes.decode_change(path, value)
