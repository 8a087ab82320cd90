"""ACLs as a test writes and reads them: `Allow("alice", "READ", topic="orders")`, `Deny(…)`.

    Broker(security="SASL_PLAINTEXT", users={"alice": "secret"},
           acls=[Allow("alice", "READ", topic="orders")])

    broker.acls.add(Deny("alice", "READ", topic="orders"))     the next request is decided by it

`BrokerAcls` is the list of a running broker or cluster: with the ACLs that clients made. The
authorizer itself is `security/authorizer.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from minibroker.broker.config.authorizers import ACL_AUTHORIZER, SUPER_USERS
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    OperationName: TypeAlias = Literal[
        "ALL",
        "READ",
        "WRITE",
        "CREATE",
        "DELETE",
        "ALTER",
        "DESCRIBE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "CREATE_TOKENS",
        "DESCRIBE_TOKENS",
        "TWO_PHASE_COMMIT",
    ]

BROKER_USER: Final = "broker"
"""The name of the broker itself: of its certificate, and of its login at other brokers."""
_USER: Final = "User:"
_OPERATIONS: Final = tuple(word.name for word in Operation if word >= Operation.ALL)


@dataclass(frozen=True)
class AclRule:
    """An ACL in the words of a test: `Allow` or `Deny`. Raises ValueError for wrong words."""

    PERMISSION: ClassVar[Permission]

    user: str
    """The name of the user, `"*"`: everyone."""
    operation: OperationName
    """As Kafka names it; READ, WRITE, DELETE and ALTER allow DESCRIBE too."""
    topic: str | None = None
    """The resource; `"*"`: all of them. One kind of resource is named, no more."""
    group: str | None = None
    transactional_id: str | None = None
    delegation_token: str | None = None
    other_user: str | None = None
    """The user whose tokens are made or described."""
    cluster: bool = False
    prefixed: bool = False
    """True: every resource whose name begins so."""
    host: str = "*"
    """The address that the client comes from."""

    def __post_init__(self) -> None:
        if not self.user:
            raise ValueError(f"{self}: the user has no name")
        if self.operation not in _OPERATIONS:
            raise ValueError(
                f"operation {self.operation!r}: expected one of {', '.join(_OPERATIONS)}"
            )
        if len(self._resources()) != 1:
            raise ValueError(f"{self}: expected one resource: {', '.join(_RESOURCES)} or cluster")

    def _resources(self) -> list[tuple[ResourceType, str]]:
        """Return the resources that are named."""
        resources = [(kind, getattr(self, key)) for key, kind in _RESOURCES.items()]
        pairs = [(kind, name) for kind, name in resources if name]
        return [*pairs, (ResourceType.CLUSTER, CLUSTER_NAME)] if self.cluster else pairs

    def to_acl(self) -> Acl:
        """Return it in the words of the authorizer."""
        ((resource_type, name),) = self._resources()
        pattern_type = PatternType.PREFIXED if self.prefixed else PatternType.LITERAL
        return Acl(
            Pattern(resource_type, name, pattern_type),
            Entry(_USER + self.user, self.host, Operation[self.operation], self.PERMISSION),
        )

    def __repr__(self) -> str:
        """Return it as a test writes it."""
        words = [repr(self.user), repr(self.operation)]
        words += [
            f"{field.name}={value!r}"
            for field in fields(self)[2:]
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"{type(self).__name__}({', '.join(words)})"


class Allow(AclRule):
    """The user may do this: `Allow("alice", "READ", topic="orders")`."""

    PERMISSION = Permission.ALLOW


class Deny(AclRule):
    """The user may not do this, whatever else is allowed: `Deny("alice", "ALL", group="*")`."""

    PERMISSION = Permission.DENY


_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "other_user": ResourceType.USER,
}
"""Field → the kind of resource that it names."""


def rule_of(acl: Acl) -> AclRule:
    """Return an ACL of a broker as a test writes it."""
    pattern, entry = acl
    kind = Allow if entry.permission is Permission.ALLOW else Deny
    is_cluster = pattern.resource_type is ResourceType.CLUSTER
    resource_names = {
        key: pattern.name for key, of in _RESOURCES.items() if of is pattern.resource_type
    }
    return kind(
        entry.principal.removeprefix(_USER),
        entry.operation.name,  # type: ignore[arg-type]  # ANY and UNKNOWN are in no ACL
        cluster=is_cluster,
        prefixed=pattern.pattern_type is PatternType.PREFIXED,
        host=entry.host,
        **resource_names,
    )


def authorizer_settings(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that turn the authorizer on, over those of the test: the broker itself
    may do everything.
    """
    own = f"{_USER}{BROKER_USER}"
    users = config.get(SUPER_USERS, "").strip()
    return {
        "authorizer.class.name": config.get("authorizer.class.name", ACL_AUTHORIZER),
        SUPER_USERS: f"{users};{own}" if users else own,
    }


class BrokerAcls:
    """The ACLs of a running broker or cluster, for the thread of the test.

    It is read anew each time: `list(broker.acls)`, `Allow(…) in broker.acls`, `len`, `==` a list.
    Every call raises RuntimeError where the broker has no authorizer.
    """

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(
        self,
        find: Callable[[], list[Acl]],
        change: Callable[[list[Acl], list[Acl]], None],
    ) -> None:
        """`find`: returns the ACLs. `change`: adds the first ones, and removes the others."""
        self._find = find
        self._change = change

    def add(self, *rules: AclRule) -> None:
        """Add ACLs. Every broker that runs decides by them when this returns. Raises KafkaError."""
        self._change([rule.to_acl() for rule in rules], [])

    def remove(self, *rules: AclRule) -> None:
        """Remove ACLs, as `add` adds them. Raises ValueError for one that is not there."""
        entries = list(self)
        for rule in rules:
            if rule not in entries:
                raise ValueError(f"there is no {rule}, only {entries}")
        self._change([], [rule.to_acl() for rule in rules])

    def clear(self) -> None:
        """Remove all ACLs: only the broker itself may do something then."""
        self._change([], self._find())

    def __iter__(self) -> Iterator[AclRule]:
        return iter([rule_of(acl) for acl in self._find()])

    def __len__(self) -> int:
        return len(self._find())

    def __eq__(self, other: object) -> bool:
        return list(self) == other

    def __repr__(self) -> str:
        return repr(list(self))
