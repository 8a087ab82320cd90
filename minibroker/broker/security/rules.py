"""The decision of an authorizer: may this principal do this? Pure; two rule sets of Kafka.

A matching DENY wins over every ALLOW. Permission for READ, WRITE, DELETE or ALTER gives DESCRIBE,
permission for ALTER_CONFIGS gives DESCRIBE_CONFIGS; a DENY forbids only the operation it names. If
no ACL is about a resource at all, `allow.everyone.if.no.acl.found` decides.

`Rules` are those of AclAuthorizer (Kafka 3.9 with ZooKeeper), `StandardRules` those of
StandardAuthorizer (KRaft). They differ in three things: StandardAuthorizer of 4.4 knows networks
(`10.0.0.0/8`) as hosts, asks differently whether some resource of a type is allowed, and answers
overlapping filters of DeleteAcls one by one (`authorizer.py`).

Source: Kafka AclAuthorizer, StandardAuthorizerData, Authorizer.authorizeByResourceType, CidrUtils.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import (
    IMPLYING_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Operation,
    ResourceType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ANY_NAME: Final = "hardcode"
"""The name that StandardAuthorizer asks about first when any resource of a type would do."""
_NETWORK: Final = re.compile(r"[0-9a-fA-F.:]+/[0-9]{1,3}")


class Decision(NamedTuple):
    """Yes or no, and the reason."""

    is_allowed: bool
    reason: str


class Rules:
    """The ACLs of a cluster, found by resource, and AclAuthorizer's rules. Belongs to the loop."""

    knows_networks: ClassVar[bool] = False
    """True if a host may be a network."""

    def __init__(self, super_users: Iterable[str] = (), *, allows_unlisted: bool = False) -> None:
        """Begin without ACLs. `allows_unlisted`: the value of allow.everyone.if.no.acl.found."""
        self._super_users = frozenset(super_users)
        self._allows_unlisted = allows_unlisted
        self._entries: dict[Pattern, frozenset[Entry]] = {}
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {}
        """Type → length of a prefix in characters → how many prefixed patterns have that length.
        A name of any length is compared with these prefixes only.
        """

    # ACLs

    def put(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replace the ACLs of a pattern; none removes it."""
        new_entries = frozenset(entries)
        had_entries = pattern in self._entries
        if new_entries:
            self._entries[pattern] = new_entries
        else:
            self._entries.pop(pattern, None)
        if pattern.pattern_type is PatternType.PREFIXED and bool(new_entries) is not had_entries:
            self._count_prefix(pattern, 1 if new_entries else -1)

    def _count_prefix(self, pattern: Pattern, change: int) -> None:
        lengths = self._prefix_lengths.setdefault(pattern.resource_type, Counter())
        lengths[len(pattern.name)] += change
        if not lengths[len(pattern.name)]:
            del lengths[len(pattern.name)]

    def entries_of(self, pattern: Pattern) -> frozenset[Entry]:
        """Return the ACLs of a pattern, empty if there are none."""
        return self._entries.get(pattern, frozenset())

    @property
    def patterns(self) -> list[Pattern]:
        """Return the patterns that have ACLs."""
        return list(self._entries)

    def acls(self) -> Iterator[Acl]:
        """Yield every ACL."""
        for pattern, entries in self._entries.items():
            for entry in entries:
                yield Acl(pattern, entry)

    # Decisions

    def decide(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> Decision:
        """Return whether `principal` from `host` may do `operation` to the resource."""
        if principal in self._super_users:
            return Decision(True, "it is a super user")
        allow_acl: Acl | None = None
        is_listed = False
        for acl in self._about(resource_type, name):
            is_listed = True
            entry = acl.entry
            if not self._is_about(entry, principal, host):
                continue
            if entry.permission is Permission.DENY:
                if entry.operation in (operation, Operation.ALL):
                    return Decision(False, f"of the ACL: {acl}")
            elif allow_acl is None and entry.permission is Permission.ALLOW:
                operations = IMPLYING_OPERATIONS.get(operation, (operation,))
                if entry.operation is Operation.ALL or entry.operation in operations:
                    allow_acl = acl
        if allow_acl is not None:
            return Decision(True, f"of the ACL: {allow_acl}")
        if is_listed:
            return Decision(False, "no ACL allows it")
        if self._allows_unlisted:
            return Decision(True, "no ACL is about the resource")
        return Decision(False, "no ACL is about the resource")

    def decide_on_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decision:
        """Return whether `principal` may do `operation` to at least one resource of the type."""
        if principal in self._super_users:
            return Decision(True, "it is a super user")
        if self._has_denied_all(principal, host, operation, resource_type):
            return Decision(False, "an ACL denies it for every resource of the type")
        if self._allows_unlisted:
            return Decision(True, "a resource without ACLs is open to everyone")
        return self._find_allowed(principal, host, operation, resource_type)

    def _find_allowed(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decision:
        """Return whether an ACL allows something that no other ACL takes away as a whole.

        A literal ALLOW is taken away by a DENY of the same name or of a prefix of it, a prefixed
        one by a prefixed DENY that covers all of it. Implied operations do not count.
        """
        denied_names: set[str] = set()
        denied_prefixes: set[str] = set()
        patterns: list[Pattern] = []
        for acl in self._of_type(principal, host, operation, resource_type):
            is_literal = acl.pattern.pattern_type is PatternType.LITERAL
            if acl.entry.permission is Permission.ALLOW:
                patterns.append(acl.pattern)
            elif is_literal:
                denied_names.add(acl.pattern.name)
            else:
                denied_prefixes.add(acl.pattern.name)
        for pattern in patterns:
            if pattern.pattern_type is PatternType.LITERAL:
                if pattern.name == WILDCARD:
                    return Decision(True, f"an ACL allows it for {pattern}")
                if pattern.name in denied_names:
                    continue
            if not any(pattern.name.startswith(prefix) for prefix in denied_prefixes):
                return Decision(True, f"an ACL allows it for {pattern}")
        return Decision(False, "no ACL allows it for any resource of the type")

    def _has_denied_all(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        pattern = Pattern(resource_type, WILDCARD, PatternType.LITERAL)
        return any(
            entry.permission is Permission.DENY
            and entry.operation in (operation, Operation.ALL)
            and self._matches_exactly(entry, principal, host)
            for entry in self.entries_of(pattern)
        )

    def _about(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """Yield every ACL about a resource: of its prefixes, of all names, of its name."""
        patterns = [
            Pattern(resource_type, name[:length], PatternType.PREFIXED)
            for length in sorted(self._prefix_lengths.get(resource_type, ()))
            if 0 < length <= len(name)
        ]
        patterns.append(Pattern(resource_type, WILDCARD, PatternType.LITERAL))
        if name != WILDCARD:
            patterns.append(Pattern(resource_type, name, PatternType.LITERAL))
        for pattern in patterns:
            for entry in self._entries.get(pattern, ()):
                yield Acl(pattern, entry)

    def _of_type(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Iterator[Acl]:
        """Yield the ACLs of a type that name exactly this operation, or ALL, for the principal."""
        for acl in self.acls():
            if (
                acl.pattern.resource_type is resource_type
                and acl.entry.operation in (operation, Operation.ALL)
                and self._matches_exactly(acl.entry, principal, host)
            ):
                yield acl

    def _is_about(self, entry: Entry, principal: str, host: str) -> bool:
        """Return whether the ACL is about this principal at this host."""
        if entry.principal not in (principal, WILDCARD_PRINCIPAL):
            return False
        if entry.host in (WILDCARD, host):
            return True
        return self.knows_networks and is_in_network(host, entry.host)

    @staticmethod
    def _matches_exactly(entry: Entry, principal: str, host: str) -> bool:
        """Like `_is_about`, but a network as host matches nobody: so is Kafka's check by type."""
        return entry.principal in (principal, WILDCARD_PRINCIPAL) and entry.host in (WILDCARD, host)


class StandardRules(Rules):
    """StandardAuthorizer's rules."""

    knows_networks: ClassVar[bool] = True

    def decide_on_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decision:
        """Return whether `principal` may do `operation` to at least one resource of the type.

        Kafka asks first about a resource with a name that nobody uses. So an ACL for every name
        counts there, and implied operations and `allow.everyone.if.no.acl.found` do, too.
        """
        first = self.decide(principal, host, operation, resource_type, _ANY_NAME)
        if first.is_allowed:
            return first
        if self._has_denied_all(principal, host, operation, resource_type):
            return Decision(False, "an ACL denies it for every resource of the type")
        return self._find_allowed(principal, host, operation, resource_type)


def is_in_network(host: str, network: str) -> bool:
    """Return whether an address lies in a network such as `10.0.0.0/8`; False if it is none."""
    if "/" not in network:
        return False
    try:
        return ipaddress.ip_address(host) in parse_network(network)
    except ValueError:
        return False


def parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return the network. Raises ValueError for a text that is none."""
    if not _NETWORK.fullmatch(text):
        raise ValueError(f"Could not parse [{text}]")
    return ipaddress.ip_network(text, strict=False)
