"""The authorizer: what every request asks before it does something, and the changes of ACLs.

`Authorizer.allows` is the authorize station's answer; `RequestContext.authorize` calls it, each
handler in Kafka's order of checks. Decisions are kept until an ACL changes, so a
request that repeats costs one look-up. Produce and Fetch pay less: a connection has the topics that
its client may use at hand (`permitted_names`). `rules.py` decides, `acl_store.py` keeps the ACLs.

Each decision is one log line of this module's logger, as Kafka's `kafka.authorizer.logger` has it:
refused at INFO, allowed at DEBUG; a question that only filters an answer is at DEBUG (TRACE in
Kafka), and one that only lists authorized operations is not logged.

Source: Kafka Authorizer, AclAuthorizer, StandardAuthorizer, AclControlManager, AclApis.
"""

from __future__ import annotations

import logging
from sys import getsizeof
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakValueDictionary

from minibroker.broker.config.authorizers import STANDARD_AUTHORIZER
from minibroker.broker.security.acl_entries import Acl, AclFilter, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import SUPPORTED_OPERATIONS, WILDCARD, Operation, ResourceType
from minibroker.broker.security.rules import Decision, Rules, StandardRules, parse_network
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.protocol.api_keys import APIS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from minibroker.broker.config.authorizers import AuthorizerSettings
    from minibroker.broker.security.acl_entries import Entry

    Edit: TypeAlias = Callable[[frozenset[Entry]], frozenset[Entry]]
    Update: TypeAlias = Callable[[Pattern, Edit], Awaitable[None]]
    Question: TypeAlias = tuple[str, str, int, int, str | None]
    """Principal, host, operation, type and name of a resource; None: any resource of the type."""
    Deletions: TypeAlias = list[tuple[Acl, KafkaError | None]]
    """The ACLs of one filter, each with what kept it from being deleted."""

logger = logging.getLogger(__name__)

DECISIONS_BYTES_MAX: Final = 8 * 1024 * 1024
"""Decisions are forgotten all at once beyond this."""
DECISION_BYTES: Final = 400
"""The memory of one decision, without the name and the principal that it is about."""


class Authorizer:
    """Decides by the ACLs of the cluster, and changes them. Belongs to the loop."""

    def __init__(self, settings: AuthorizerSettings) -> None:
        """Begin without ACLs, with the rules that the settings name."""
        self.is_standard = settings.class_name == STANDARD_AUTHORIZER
        """True if Kafka's StandardAuthorizer is followed, not its AclAuthorizer. Constant."""
        kind = StandardRules if self.is_standard else Rules
        self._rules = kind(settings.super_users, allows_unlisted=settings.allows_unlisted)
        self._decisions: dict[Question, Decision] = {}
        self._decision_bytes = 0
        """The memory of these decisions, about."""
        self._permitted_names: WeakValueDictionary[tuple[str, str, int], set[str]]
        self._permitted_names = WeakValueDictionary()
        """Principal, host and operation → topics, while a connection has the set."""
        self._update: Update | None = None
        self.changes = 0
        """How often ACLs changed, or were read."""

    def begin(self, update: Update) -> None:
        """Change ACLs with `update` from now on (`AclStore.update`)."""
        self._update = update

    def put(self, pattern: Pattern, entries: frozenset[Entry]) -> None:
        """Take in the ACLs that a pattern has now. The next request is decided by them."""
        self._rules.put(pattern, entries)
        self._forget_decisions()
        for names in self._permitted_names.values():
            names.clear()
        self.changes += 1

    # Decisions

    @property
    def logs_all(self) -> bool:
        """Return whether a yes is logged, too."""
        return logger.isEnabledFor(logging.DEBUG)

    def permitted_names(self, principal: str, host: str, operation: Operation) -> set[str]:
        """Return the topics that a client may do this to, as far as it asked. Its connections share
        the set and add to it. A change of an ACL empties it.
        """
        return self._permitted_names.setdefault((principal, host, operation), set())

    def allows(  # noqa: PLR0917  one call for each resource of every request
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        api_key: int,
        is_filter: bool = False,
    ) -> bool:
        """Return whether the principal may do this, and log it.

        `is_filter`: a refusal only leaves something out of the answer, nobody asked for it.
        """
        question = (principal, host, operation, resource_type, name)
        decision = self._decisions.get(question) or self._decide(question, name)
        if decision.is_allowed:
            if logger.isEnabledFor(logging.DEBUG):
                self._log(logging.DEBUG, question, decision, api_key)
            return True
        self._log(logging.DEBUG if is_filter else logging.INFO, question, decision, api_key)
        return False

    def allows_any(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        api_key: int,
    ) -> bool:
        """Return whether the principal may do this to at least one resource of the type."""
        question = (principal, host, operation, resource_type, None)
        decision = self._decisions.get(question)
        if decision is None:
            decision = self._rules.decide_on_any(principal, host, operation, resource_type)
            self._keep(question, decision)
        level = logging.DEBUG if decision.is_allowed else logging.INFO
        self._log(level, question, decision, api_key)
        return decision.is_allowed

    def operations(self, principal: str, host: str, resource_type: ResourceType, name: str) -> int:
        """Return the operations that the principal may do to a resource, as Kafka's bit field."""
        bits = 0
        for operation in SUPPORTED_OPERATIONS[resource_type]:
            question = (principal, host, operation, resource_type, name)
            decision = self._decisions.get(question) or self._decide(question, name)
            bits |= decision.is_allowed << operation
        return bits

    def _decide(self, question: Question, name: str) -> Decision:
        principal, host, operation, resource_type, _ = question
        decision = self._rules.decide(
            principal, host, Operation(operation), ResourceType(resource_type), name
        )
        self._keep(question, decision)
        return decision

    def _keep(self, question: Question, decision: Decision) -> None:
        size_bytes = DECISION_BYTES + getsizeof(question[0]) + getsizeof(question[4])
        if self._decision_bytes + size_bytes > DECISIONS_BYTES_MAX:
            self._forget_decisions()
        self._decisions[question] = decision
        self._decision_bytes += size_bytes

    def _forget_decisions(self) -> None:
        self._decisions.clear()
        self._decision_bytes = 0

    @staticmethod
    def _log(level: int, question: Question, decision: Decision, api_key: int) -> None:
        if not logger.isEnabledFor(level):
            return
        principal, host, operation, resource_type, name = question
        api = APIS.get(api_key)
        logger.log(
            level,
            "%s from %s %s %s %s %s (request %s), because %s",
            principal,
            host,
            "may" if decision.is_allowed else "may not",
            Operation(operation).name,
            ResourceType(resource_type).name,
            "of any name" if name is None else name,
            api.name if api else api_key,
            decision.reason,
        )

    # ACLs

    def find(self, acl_filter: AclFilter) -> list[Acl]:
        """Return the ACLs that the filter asks for, sorted."""
        return sorted(acl for acl in self._rules.acls() if acl_filter.matches(acl))

    async def create(
        self, acls: Sequence[Acl], *, allows_networks: bool
    ) -> list[KafkaError | None]:
        """Add ACLs; return what was wrong with each, None where it stands now.

        `allows_networks`: whether the metadata version lets hosts be networks.
        """
        results: list[KafkaError | None] = [None] * len(acls)
        indexes_by_pattern: dict[Pattern, list[int]] = {}
        turn = TimeSlice()
        for index, acl in enumerate(acls):
            if turn.is_over:
                await turn.pause()
            try:
                if self.is_standard:
                    _check_standard(acl, allows_networks=allows_networks)
                else:
                    _check(acl)
            except KafkaError as refused:
                results[index] = refused
            else:
                indexes_by_pattern.setdefault(acl.pattern, []).append(index)
        for pattern, indexes in indexes_by_pattern.items():
            entries = frozenset(acls[index].entry for index in indexes)
            error = await self._change(pattern, entries.union)
            for index in indexes:
                results[index] = error
            if turn.is_over:
                await turn.pause()
        return results

    async def delete(self, filters: Sequence[AclFilter]) -> list[Deletions]:
        """Remove the ACLs that match a filter; return them, for each filter.

        With AclAuthorizer an ACL is an answer to the first filter that it matches, with
        StandardAuthorizer to each of them.
        """
        results: list[Deletions] = [[] for _ in filters]
        turn = TimeSlice()
        by_name, general = _split_filters(filters)
        with_acls = frozenset(self._rules.patterns)
        for pattern in sorted(with_acls | _named_patterns(filters)):
            # Only a filter with its name finds a pattern whose ACLs were not read yet.
            candidates = by_name.get(pattern.name, [])
            if pattern in with_acls:
                candidates = sorted(candidates + general)
            filter_indexes = [
                index for index in candidates if filters[index].matches_pattern(pattern)
            ]
            if filter_indexes:
                await self._delete_from(pattern, filters, filter_indexes, results)
            if turn.is_over:
                await turn.pause()
        return results

    async def _delete_from(
        self,
        pattern: Pattern,
        filters: Sequence[AclFilter],
        filter_indexes: list[int],
        results: list[Deletions],
    ) -> None:
        """Remove the ACLs of one pattern that match the filters with these indexes."""
        indexes_by_entry: dict[Entry, list[int]] = {}

        def edit(entries: frozenset[Entry]) -> frozenset[Entry]:
            indexes_by_entry.clear()
            for entry in entries:
                indexes = [index for index in filter_indexes if filters[index].matches_entry(entry)]
                if indexes:
                    indexes_by_entry[entry] = indexes
            return entries - indexes_by_entry.keys()

        error = await self._change(pattern, edit)
        for entry in sorted(indexes_by_entry):
            indexes = indexes_by_entry[entry] if self.is_standard else indexes_by_entry[entry][:1]
            for index in indexes:
                results[index].append((Acl(pattern, entry), error))

    async def _change(self, pattern: Pattern, edit: Edit) -> KafkaError | None:
        """Change the ACLs of one pattern; return what kept them from being changed."""
        assert self._update is not None, "no request comes before the authorizer began"
        try:
            await self._update(pattern, edit)
        except (CoordinationError, ValueError) as error:
            logger.warning("the ACLs of %s are not changed: %s", pattern, error)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return None


def _split_filters(filters: Sequence[AclFilter]) -> tuple[dict[str, list[int]], list[int]]:
    """Return name → indexes of the filters for exactly this name, and the indexes of the others."""
    by_name: dict[str, list[int]] = {}
    general: list[int] = []
    for index, acl_filter in enumerate(filters):
        if acl_filter.name is None or acl_filter.pattern_type is PatternType.MATCH:
            general.append(index)
        else:
            by_name.setdefault(acl_filter.name, []).append(index)
    return by_name, general


def _named_patterns(filters: Iterable[AclFilter]) -> set[Pattern]:
    """Return the patterns that the filters name: they may have ACLs that were not read yet."""
    patterns: set[Pattern] = set()
    for acl_filter in filters:
        if acl_filter.name and acl_filter.resource_type >= ResourceType.TOPIC:
            for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
                if acl_filter.pattern_type in (pattern_type, PatternType.ANY):
                    patterns.add(Pattern(acl_filter.resource_type, acl_filter.name, pattern_type))
    return patterns


def _check(acl: Acl) -> None:
    """Raise KafkaError for an ACL that AclAuthorizer refuses."""
    pattern, entry = acl
    is_unknown = 0 in (
        pattern.resource_type,
        pattern.pattern_type,
        entry.operation,
        entry.permission,
    )
    if is_unknown or "/" in pattern.name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to create ACL")
    if ":" not in entry.principal:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _check_standard(acl: Acl, *, allows_networks: bool) -> None:
    """Raise KafkaError for an ACL that StandardAuthorizer refuses."""
    pattern, entry = acl
    error = None
    if pattern.resource_type is ResourceType.UNKNOWN:
        error = "Invalid resourceType UNKNOWN"
    elif pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        error = f"Invalid patternType {pattern.pattern_type.name}"
    elif entry.operation is Operation.UNKNOWN:
        error = "Invalid operation UNKNOWN"
    elif entry.permission is Permission.UNKNOWN:
        error = "Invalid permissionType UNKNOWN"
    elif ":" not in entry.principal:
        error = (
            f"Could not parse principal from `{entry.principal}` (no colon is present separating"
            " the principal type from the principal name)"
        )
    elif not entry.host:
        error = "Host pattern cannot be null or empty"
    if error is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error)
    if entry.host != WILDCARD and "/" in entry.host:
        _check_network(entry.host, allows_networks=allows_networks)


def _check_network(host: str, *, allows_networks: bool) -> None:
    if not allows_networks:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
        )
    try:
        parse_network(host)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Invalid CIDR notation '{host}': {error}"
        ) from error
