"""Codes, names and filters of ACLs."""

from __future__ import annotations

import pytest

from minibroker.broker.security.acls import (
    Acl,
    AclFilter,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    from_stored_name,
    stored_name,
    word_of,
)

READ_BY_ALICE = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)


def topic(name: str, pattern_type: PatternType = PatternType.LITERAL) -> Acl:
    return Acl(Pattern(ResourceType.TOPIC, name, pattern_type), READ_BY_ALICE)


def wanted(name: str | None, pattern_type: PatternType, **others: object) -> AclFilter:
    everything = AclFilter(
        ResourceType.TOPIC, name, pattern_type, None, None, Operation.ANY, Permission.ANY
    )
    return everything._replace(**others)


ACLS = (
    topic("*"),
    topic("orders"),
    topic("orders-eu"),
    topic("ord", PatternType.PREFIXED),
    topic("orders", PatternType.PREFIXED),
    topic("pay", PatternType.PREFIXED),
)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (wanted(None, PatternType.ANY), "* orders orders-eu ord~ orders~ pay~"),
        (wanted("orders", PatternType.ANY), "orders orders~"),
        (wanted("orders", PatternType.LITERAL), "orders"),
        (wanted("orders", PatternType.PREFIXED), "orders~"),
        (wanted("orders", PatternType.MATCH), "* orders ord~ orders~"),
        (wanted("*", PatternType.MATCH), "*"),
        (wanted(None, PatternType.PREFIXED), "ord~ orders~ pay~"),
        (wanted("orders", PatternType.LITERAL, resource_type=ResourceType.ANY), "orders"),
        (wanted("orders", PatternType.LITERAL, resource_type=ResourceType.GROUP), ""),
        (wanted("orders", PatternType.UNKNOWN), ""),
        (wanted("orders", PatternType.LITERAL, principal="User:bob"), ""),
        (wanted("orders", PatternType.LITERAL, principal="User:alice"), "orders"),
        (wanted("orders", PatternType.LITERAL, host="10.0.0.1"), ""),
        (wanted("orders", PatternType.LITERAL, operation=Operation.ALL), ""),
        (wanted("orders", PatternType.LITERAL, operation=Operation.UNKNOWN), ""),
        (wanted("orders", PatternType.LITERAL, permission=Permission.DENY), ""),
    ],
)
def test_a_filter_finds_acls(asked: AclFilter, found: str) -> None:
    names = [
        acl.pattern.name + "~" * (acl.pattern.pattern_type is PatternType.PREFIXED)
        for acl in ACLS
        if asked.matches(acl)
    ]
    assert " ".join(names) == found


def test_a_filter_tells_unknown_codes() -> None:
    assert wanted(None, PatternType.UNKNOWN).is_pattern_unknown
    assert wanted(None, PatternType.ANY, permission=Permission.UNKNOWN).is_entry_unknown
    assert not wanted(None, PatternType.ANY).is_pattern_unknown
    assert not wanted(None, PatternType.ANY).is_entry_unknown


def test_codes_of_a_later_kafka_are_unknown() -> None:
    assert word_of(Operation, 8) is Operation.DESCRIBE
    assert word_of(Operation, 99) is Operation.UNKNOWN
    assert word_of(ResourceType, -1) is ResourceType.UNKNOWN


@pytest.mark.parametrize(
    ("word", "name"),
    [
        (ResourceType.TRANSACTIONAL_ID, "TransactionalId"),
        (ResourceType.TOPIC, "Topic"),
        (Operation.DESCRIBE_CONFIGS, "DescribeConfigs"),
        (Permission.ALLOW, "Allow"),
    ],
)
def test_names_in_the_tree_are_kafkas(
    word: ResourceType | Operation | Permission, name: str
) -> None:
    assert stored_name(word) == name
    assert from_stored_name(type(word), name) is word
    assert from_stored_name(type(word), name.upper()) is word
    assert from_stored_name(type(word), "Nonsense").name == "UNKNOWN"


def test_an_acl_reads_as_a_sentence() -> None:
    assert str(topic("orders")) == "User:alice from * may READ LITERAL TOPIC orders"
