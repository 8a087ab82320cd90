"""ACLs: patterns of resources, entries, and filters that ask for them. Pure.

An ACL says that a principal may, or may not, do an operation from a host to the resources that a
pattern names. `rules.py` decides with ACLs, `acl_store.py` keeps them in the tree.

Source: Kafka ResourcePattern, ResourcePatternFilter, AccessControlEntry, AccessControlEntryFilter.
"""

from __future__ import annotations

from typing import NamedTuple

from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import WILDCARD, Operation, ResourceType


class Pattern(NamedTuple):
    """The resources that an ACL is about."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return f"{self.pattern_type.name} {self.resource_type.name} {self.name}"


class Entry(NamedTuple):
    """The rest of an ACL: who, from where, what, and whether it is allowed."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


class Acl(NamedTuple):
    """One ACL (Kafka's AclBinding)."""

    pattern: Pattern
    entry: Entry

    def __str__(self) -> str:
        entry = self.entry
        verb = "may" if entry.permission is Permission.ALLOW else "may not"
        return f"{entry.principal} from {entry.host} {verb} {entry.operation.name} {self.pattern}"


class AclFilter(NamedTuple):
    """A question for ACLs; None and ANY match everything, UNKNOWN matches nothing."""

    resource_type: ResourceType
    name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    @property
    def is_pattern_unknown(self) -> bool:
        """Return whether a code of the pattern means nothing to this broker."""
        return (
            self.resource_type is ResourceType.UNKNOWN or self.pattern_type is PatternType.UNKNOWN
        )

    @property
    def is_entry_unknown(self) -> bool:
        """Return whether a code of the entry means nothing to this broker."""
        return self.operation is Operation.UNKNOWN or self.permission is Permission.UNKNOWN

    def matches(self, acl: Acl) -> bool:
        """Return whether the ACL is one of those that the filter asks for."""
        return self.matches_pattern(acl.pattern) and self.matches_entry(acl.entry)

    def matches_pattern(self, pattern: Pattern) -> bool:
        """Return whether ACLs of this pattern may match. MATCH asks for the patterns that cover a
        resource of this name, ANY and the others for patterns of exactly this name.
        """
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        pattern_type = self.pattern_type
        if pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.LITERAL:
            return pattern.name in (self.name, WILDCARD)
        return self.name.startswith(pattern.name)

    def matches_entry(self, entry: Entry) -> bool:
        """Return whether an ACL with this entry may match."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )
