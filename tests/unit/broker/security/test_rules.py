"""Decisions by ACLs, and the same by a slow model that asks each ACL every question."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.rules import Rules, StandardRules, is_in_network, parse_network

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY


def acl(
    name: str = "orders",
    operation: Operation = Operation.READ,
    permission: Permission = ALLOW,
    *,
    pattern_type: PatternType = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> Acl:
    return Acl(Pattern(TOPIC, name, pattern_type), Entry(principal, host, operation, permission))


def rules_of(*acls: Acl, kind: type[Rules] = Rules, allows_unlisted: bool = False) -> Rules:
    rules = kind(["User:root"], allows_unlisted=allows_unlisted)
    for each in acls:
        rules.put(each.pattern, rules.entries_of(each.pattern) | {each.entry})
    return rules


def may(
    rules: Rules,
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    principal: str = "User:alice",
    host: str = "10.0.0.1",
) -> bool:
    return rules.decide(principal, host, operation, TOPIC, name).is_allowed


def test_nothing_is_allowed_without_acls_but_to_super_users() -> None:
    assert not may(rules_of())
    assert may(rules_of(), principal="User:root")
    assert may(rules_of(acl("*", Operation.ALL, DENY, principal="User:*")), principal="User:root")


def test_resources_without_acls_are_open_if_the_setting_says_so() -> None:
    rules = rules_of(acl("ord", principal="User:bob", pattern_type=PREFIXED), allows_unlisted=True)
    assert may(rules, name="payments")
    assert not may(rules, name="orders")
    assert not may(rules_of(acl("*", principal="User:bob"), allows_unlisted=True))


def test_a_deny_wins_over_every_allow() -> None:
    allow = acl("*", Operation.ALL, principal="User:*")
    assert may(rules_of(allow))
    for deny in (
        acl(permission=DENY),
        acl("o", permission=DENY, pattern_type=PREFIXED),
        acl("*", Operation.ALL, DENY),
        acl(permission=DENY, host="10.0.0.1"),
    ):
        assert not may(rules_of(allow, deny))
    assert may(rules_of(allow, acl(permission=DENY, host="10.0.0.2")))


@pytest.mark.parametrize(
    "operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALL]
)
def test_describe_is_implied_by_an_allow_and_not_denied_with_a_deny(operation: Operation) -> None:
    assert may(rules_of(acl(operation=operation)), Operation.DESCRIBE)
    denied = rules_of(acl(operation=operation, permission=DENY), acl("*", Operation.DESCRIBE))
    assert may(denied, Operation.DESCRIBE) is (operation is not Operation.ALL)


def test_describe_configs_is_implied_by_alter_configs_alone() -> None:
    assert may(rules_of(acl(operation=Operation.ALTER_CONFIGS)), Operation.DESCRIBE_CONFIGS)
    assert not may(rules_of(acl(operation=Operation.ALTER)), Operation.DESCRIBE_CONFIGS)
    assert not may(rules_of(acl(operation=Operation.ALTER_CONFIGS)), Operation.DESCRIBE)


def test_a_prefix_covers_longer_names_and_itself() -> None:
    rules = rules_of(acl("ord", pattern_type=PREFIXED))
    assert [name for name in ("o", "ord", "orders", "Orders") if may(rules, name=name)] == [
        "ord",
        "orders",
    ]


def test_a_wildcard_prefix_is_a_prefix_like_any_other() -> None:
    rules = rules_of(acl("*", pattern_type=PREFIXED))
    assert not may(rules)
    assert may(rules, name="*stars")


def test_only_the_standard_authorizer_knows_networks() -> None:
    allow = acl(host="10.0.0.0/8")
    assert not may(rules_of(allow))
    assert may(rules_of(allow, kind=StandardRules))
    assert not may(rules_of(allow, kind=StandardRules), host="11.0.0.1")


def test_networks() -> None:
    assert is_in_network("10.1.2.3", "10.1.0.0/16")
    assert is_in_network("0:0:0:0:0:0:0:1", "::/64")
    assert not is_in_network("10.1.2.3", "10.1.2.3")
    assert not is_in_network("10.1.2.3", "::/64")
    assert not is_in_network("10.1.2.3", "10.1.0.0/255.255.0.0")
    with pytest.raises(ValueError, match=r"1\.2\.3\.4/33"):
        parse_network("1.2.3.4/33")


def test_any_resource_of_a_type() -> None:
    for kind in (Rules, StandardRules):

        def may_any(*acls: Acl, kind: type[Rules] = kind, allows_unlisted: bool = False) -> bool:
            rules = rules_of(*acls, kind=kind, allows_unlisted=allows_unlisted)
            return rules.decide_on_any("User:alice", "h", Operation.READ, TOPIC).is_allowed

        assert not may_any()
        assert may_any(allows_unlisted=True)
        assert may_any(acl())
        assert may_any(acl("ord", pattern_type=PREFIXED), acl("orders", permission=DENY))
        assert not may_any(acl(), acl(permission=DENY))
        assert not may_any(acl(), acl("ord", permission=DENY, pattern_type=PREFIXED))
        assert not may_any(acl(), acl("*", permission=DENY))
        assert may_any(acl("*"), acl("ord", permission=DENY, pattern_type=PREFIXED))
        assert not may_any(acl(operation=Operation.WRITE))


def test_the_authorizers_differ_where_kafka_asks_about_any_resource() -> None:
    only_listed = acl("*", principal="User:bob")

    def decide(kind: type[Rules], operation: Operation = Operation.READ) -> bool:
        rules = rules_of(only_listed, acl("*", Operation.WRITE), kind=kind, allows_unlisted=True)
        return rules.decide_on_any("User:alice", "h", operation, TOPIC).is_allowed

    assert decide(Rules)
    assert not decide(StandardRules)
    assert decide(StandardRules, Operation.DESCRIBE)


# A model: each ACL is asked by itself, in the words of Kafka's documentation.

_names = st.sampled_from(["*", "a", "ab", "abc", "b", "ba"])
_operations = st.sampled_from(list(Operation)[2:])
_hosts = st.sampled_from(["*", "h1", "h2"])
_principals = st.sampled_from(["User:*", "User:a", "User:b"])
_acls = st.builds(
    lambda kind, name, pattern_type, entry: Acl(Pattern(kind, name, pattern_type), entry),
    st.sampled_from([TOPIC, GROUP]),
    _names,
    st.sampled_from([LITERAL, PREFIXED]),
    st.builds(Entry, _principals, _hosts, _operations, st.sampled_from([ALLOW, DENY])),
)


def covers(pattern: Pattern, resource_type: ResourceType, name: str) -> bool:
    if pattern.resource_type != resource_type:
        return False
    if pattern.pattern_type is PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in ("*", name)


def gives(granted: Operation, operation: Operation) -> bool:
    if granted in (operation, Operation.ALL):
        return True
    if operation is Operation.DESCRIBE:
        return granted in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    return operation is Operation.DESCRIBE_CONFIGS and granted is Operation.ALTER_CONFIGS


@settings(max_examples=400, deadline=None)
@given(
    st.lists(_acls, max_size=8),
    _operations,
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from(["*", "a", "ab", "abcd", "b", "c"]),
    st.booleans(),
    st.sampled_from([Rules, StandardRules]),
)
def test_decisions_are_those_of_the_model(  # noqa: PLR0917  what Hypothesis gives
    acls: list[Acl],
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    allows_unlisted: bool,
    kind: type[Rules],
) -> None:
    rules = rules_of(*acls, kind=kind, allows_unlisted=allows_unlisted)
    about = [each for each in acls if covers(each.pattern, resource_type, name)]
    for principal, host in (("User:a", "h1"), ("User:c", "h2")):
        mine = [
            each.entry
            for each in about
            if each.entry.principal in ("User:*", principal) and each.entry.host in ("*", host)
        ]
        denied = any(e.permission is DENY and e.operation in (operation, 2) for e in mine)
        allowed = any(e.permission is ALLOW and gives(e.operation, operation) for e in mine)
        expected = (allowed and not denied) or (not about and allows_unlisted)
        decision = rules.decide(principal, host, operation, resource_type, name)
        assert decision.is_allowed is expected
        assert decision.reason


@pytest.mark.parametrize("kind", [Rules, StandardRules])
def test_a_long_name_costs_no_more_than_the_prefixes_that_have_acls(kind: type[Rules]) -> None:
    prefixes = ["x", "xx", "y" * 100]
    rules = rules_of(*(acl(name, pattern_type=PREFIXED) for name in prefixes), kind=kind)
    tracemalloc.start()
    try:
        assert may(rules, name="x" * 32_000)
        assert not may(rules, name="z" * 32_000)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_a_prefix_without_acls_is_not_asked_about_any_more() -> None:
    rules = rules_of(acl("or", pattern_type=PREFIXED), acl("xy", pattern_type=PREFIXED))
    rules.put(Pattern(TOPIC, "xy", PREFIXED), ())
    rules.put(Pattern(TOPIC, "xy", PREFIXED), ())
    assert may(rules, name="orders")
    rules.put(Pattern(TOPIC, "or", PREFIXED), ())
    assert not may(rules, name="orders")
