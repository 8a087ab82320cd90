"""The nodes of ACLs in the tree: paths, values and change notifications, as Kafka 3.9 writes them.

    /kafka-acl/Topic/orders                      ACLs of literal patterns, `*` included
    /kafka-acl-extended/prefixed/Topic/orders-   ACLs of prefixed patterns
    /kafka-acl-changes/acl_changes_0000000001    "TOPIC:orders": the ACLs of this pattern changed
    /kafka-acl-extended-changes/acl_changes_…    the same as JSON, for prefixed patterns

Source: Kafka ZkData (ZkAclStore, ZkAclChangeStore, ResourceZNode), AclEntry.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.codecs import load_json
from minibroker.broker.security.acl_entries import Entry, Pattern
from minibroker.broker.security.acl_words import (
    PatternType,
    Permission,
    from_stored_name,
    stored_name,
)
from minibroker.broker.security.acls import RESOURCE_TYPES, Operation, ResourceType
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Iterable

ACLS: Final = {
    PatternType.LITERAL: "/kafka-acl",
    PatternType.PREFIXED: "/kafka-acl-extended/prefixed",
}
"""Pattern type → the node that has a node for each resource type."""
CHANGES: Final = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
"""Pattern type → the node below which changes are announced."""
CHANGE_NAME: Final = "acl_changes_"
"""A number follows."""
PERSISTENT: Final = (
    *(f"{root}/{stored_name(kind)}" for root in ACLS.values() for kind in RESOURCE_TYPES),
    *CHANGES.values(),
)
"""Nodes that a broker with an authorizer makes at its start, parents included."""

_VERSION: Final = 1


def path_of(pattern: Pattern) -> str:
    """Return the node that has the ACLs of a pattern."""
    kind = stored_name(pattern.resource_type)
    return f"{ACLS[pattern.pattern_type]}/{kind}/{pattern.name}"


def pattern_of(path: str) -> Pattern | None:
    """Return the pattern whose ACLs a node has; None for a node that has none, or whose type of
    resource is not known.
    """
    for pattern_type, root in ACLS.items():
        if path.startswith(root + "/"):
            kind, _, name = path[len(root) + 1 :].partition("/")
            resource_type = from_stored_name(ResourceType, kind)
            if name and resource_type in RESOURCE_TYPES:
                return Pattern(resource_type, name, pattern_type)
    return None


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """Return the value of a node with these ACLs."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": stored_name(entry.permission),
            "operation": stored_name(entry.operation),
            "host": entry.host,
        }
        for entry in sorted(entries)
    ]
    return json.dumps({"version": _VERSION, "acls": acls}, separators=(",", ":")).encode()


def decode_entries(path: str, value: bytes) -> frozenset[Entry]:
    """Return the ACLs that a node has. Raises CoordinationError for a value that is none."""
    if not value:
        return frozenset()
    try:
        content = load_json(value)
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']}")
        return frozenset(_decode_entry(acl) for acl in content["acls"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CoordinationError(f"{path} does not hold ACLs: {error}") from error


def _decode_entry(acl: dict[str, Any]) -> Entry:
    principal, host = acl["principal"], acl["host"]
    if not isinstance(principal, str) or ":" not in principal or not isinstance(host, str):
        raise ValueError(f"expected a principal as type:name, and a host, not {acl!r}")
    return Entry(
        principal,
        host,
        from_stored_name(Operation, acl["operation"]),
        from_stored_name(Permission, acl["permissionType"]),
    )


def encode_change(pattern: Pattern) -> tuple[str, bytes]:
    """Return the path (without number) and the value of the node that announces a change."""
    path = f"{CHANGES[pattern.pattern_type]}/{CHANGE_NAME}"
    if pattern.pattern_type is PatternType.LITERAL:
        return path, f"{pattern.resource_type.name}:{pattern.name}".encode()
    change = {
        "version": _VERSION,
        "resourceType": pattern.resource_type.name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
    }
    return path, json.dumps(change, separators=(",", ":")).encode()


def decode_change(path: str, value: bytes) -> Pattern:
    """Return the pattern whose ACLs changed. Raises CoordinationError for a value that is none."""
    try:
        if path.startswith(CHANGES[PatternType.LITERAL] + "/"):
            kind, colon, name = value.decode().partition(":")
            if not colon:
                raise ValueError("expected type:name")
            return Pattern(ResourceType[kind.upper()], name, PatternType.LITERAL)
        change = load_json(value)
        if change["version"] > _VERSION:
            raise ValueError(f"version {change['version']}")
        if PatternType[change["patternType"].upper()] is not PatternType.PREFIXED:
            raise ValueError(f"pattern type {change['patternType']}")
        return Pattern(
            ResourceType[change["resourceType"].upper()], change["name"], PatternType.PREFIXED
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CoordinationError(f"{path} does not announce a change of ACLs: {error}") from error
