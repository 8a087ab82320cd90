"""The words of Kafka's ACLs: resources, operations, patterns, entries, filters. Pure.

An ACL says that a principal may, or may not, do an operation from a host to the resources that a
pattern names. `rules.py` decides with ACLs, `acl_store.py` keeps them in the tree.

Source: Kafka ResourceType, PatternType, AclOperation, AclPermissionType (codes), ResourcePattern,
ResourcePatternFilter, AccessControlEntry, AccessControlEntryFilter, SecurityUtils (names).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

WILDCARD: Final = "*"
"""As the name of a literal pattern: every resource of the type. As a host: every host."""
WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class ResourceType(IntEnum):
    """The kinds of resources. Values are Kafka's codes."""

    __hash__ = int.__hash__  # the one of enumerations is Python: it counts on the hot path

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The ways in which a pattern names resources. ANY and MATCH stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """The operations on resources. ALL stands in ACLs, ANY in filters."""

    __hash__ = int.__hash__  # the one of enumerations is Python: it counts on the hot path

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """The two things that an ACL may say. ANY stands in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


Word = TypeVar("Word", ResourceType, PatternType, Operation, Permission)

RESOURCE_TYPES: Final = tuple(t for t in ResourceType if t >= ResourceType.TOPIC)
"""The types that an ACL may name."""

SUPPORTED_OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
}
"""Type → the operations that "authorized operations" of an answer name (Kafka AclEntry)."""

IMPLYING_OPERATIONS: Final[dict[Operation, frozenset[Operation]]] = {
    Operation.DESCRIBE: frozenset(
        {
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
        }
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""Operation → the operations whose permission to do them gives this one too."""


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
