"""The words of ACLs besides resources and operations, and the names of all of them in the tree.

Source: Kafka PatternType, AclPermissionType (codes), SecurityUtils (names).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from minibroker.broker.security.acls import Operation, ResourceType


class PatternType(IntEnum):
    """The ways in which a pattern names resources. ANY and MATCH stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """The two things that an ACL may say. ANY stands in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


Word = TypeVar("Word", ResourceType, PatternType, Operation, Permission)


def word_of(kind: type[Word], code: int) -> Word:
    """Return what the code of a request stands for; UNKNOWN for a code of a later Kafka."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def stored_name(word: ResourceType | Operation | Permission) -> str:
    """Return the name in the tree: `TRANSACTIONAL_ID` → `TransactionalId`."""
    return "".join(part.capitalize() for part in word.name.split("_"))


def from_stored_name(kind: type[Word], name: str) -> Word:
    """Return what a name in the tree stands for, in any case; UNKNOWN for an unknown name."""
    for word in kind:
        if word.name.replace("_", "") == name.upper():
            return word
    return kind(0)
