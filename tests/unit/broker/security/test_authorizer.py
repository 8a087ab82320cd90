"""The authorizer: decisions that are kept until an ACL changes, its log, changes of ACLs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.authorizers import (
    ACL_AUTHORIZER,
    STANDARD_AUTHORIZER,
    AuthorizerSettings,
)
from minibroker.broker.security import authorizer as module
from minibroker.broker.security.acl_entries import Acl, AclFilter, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.authorizer import Authorizer
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.protocol.api_keys import PRODUCE
from tests.support.counted_work import CountedWork

if TYPE_CHECKING:
    from minibroker.broker.security.authorizer import Edit

TOPIC = Pattern(ResourceType.TOPIC, "orders", PatternType.LITERAL)
WRITE = Entry("User:alice", "*", Operation.WRITE, Permission.ALLOW)
READ = WRITE._replace(operation=Operation.READ)
EVERYTHING = AclFilter(
    ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY
)


class Nodes:
    """The ACLs of a cluster, kept here."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.entries: dict[Pattern, frozenset[Entry]] = {}
        self.authorizer = authorizer
        self.is_lost = False

    async def update(self, pattern: Pattern, edit: Edit) -> None:
        new = edit(self.entries.get(pattern, frozenset()))
        if self.is_lost:
            raise CoordinationError("no connection")
        if "//" in pattern.name:
            raise ValueError(pattern.name)
        self.entries[pattern] = new
        self.authorizer.put(pattern, new)


def new_authorizer(class_name: str = ACL_AUTHORIZER) -> tuple[Authorizer, Nodes]:
    authorizer = Authorizer(
        AuthorizerSettings(class_name, frozenset({"User:root"}), allows_unlisted=False)
    )
    nodes = Nodes(authorizer)
    authorizer.begin(nodes.update)
    return authorizer, nodes


def may_write(
    authorizer: Authorizer, principal: str = "User:alice", *, quiet: bool = False
) -> bool:
    return authorizer.allows(
        principal, "10.0.0.1", Operation.WRITE, ResourceType.TOPIC, "orders", PRODUCE, quiet
    )


def test_a_changed_acl_decides_about_the_next_request() -> None:
    authorizer, _ = new_authorizer()
    assert not may_write(authorizer)
    authorizer.put(TOPIC, frozenset({WRITE}))
    assert may_write(authorizer)
    authorizer.put(TOPIC, frozenset())
    assert not may_write(authorizer)


def test_a_resource_without_a_name_is_not_any_resource() -> None:
    """Some requests may name the empty topic: its refusal says nothing about other topics."""
    authorizer, _ = new_authorizer()
    authorizer.put(TOPIC, frozenset({WRITE}))
    question = ("User:alice", "10.0.0.1", Operation.WRITE, ResourceType.TOPIC)
    assert not authorizer.allows(*question, "", PRODUCE)
    assert authorizer.allows_any(*question, PRODUCE)
    assert not authorizer.allows(*question, "", PRODUCE)


def test_decisions_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DECISIONS_BYTES_MAX", 100_000)
    authorizer, _ = new_authorizer()
    for number in range(1_000):
        may_write(authorizer, f"User:{number}")
        assert len(authorizer._decisions) <= 250
    for number in range(10):
        may_write(authorizer, f"User:{number}" + "x" * 32_000)
        assert sum(len(principal) for principal, *_ in authorizer._decisions) <= 100_000


def test_operations_are_a_bit_field() -> None:
    authorizer, _ = new_authorizer()
    authorizer.put(TOPIC, frozenset({WRITE}))
    bits = authorizer.operations("User:alice", "h", ResourceType.TOPIC, "orders")
    assert bits == 1 << Operation.WRITE | 1 << Operation.DESCRIBE
    assert authorizer.operations("User:root", "h", ResourceType.GROUP, "g") == 0b110101001000
    assert authorizer.operations("User:bob", "h", ResourceType.CLUSTER, "kafka-cluster") == 0


def test_the_log_says_who_what_from_where_and_why(caplog: pytest.LogCaptureFixture) -> None:
    authorizer, _ = new_authorizer()
    with caplog.at_level(logging.INFO, module.__name__):
        may_write(authorizer)
        may_write(authorizer, quiet=True)
        authorizer.put(TOPIC, frozenset({WRITE}))
        may_write(authorizer)
    assert caplog.messages == [
        "User:alice from 10.0.0.1 may not WRITE TOPIC orders (request Produce),"
        " because no ACL is about the resource"
    ]
    caplog.clear()
    with caplog.at_level(logging.DEBUG, module.__name__):
        may_write(authorizer)
        authorizer.allows_any("User:bob", "10.0.0.1", Operation.WRITE, ResourceType.TOPIC, PRODUCE)
    assert caplog.messages == [
        "User:alice from 10.0.0.1 may WRITE TOPIC orders (request Produce), because of the ACL:"
        " User:alice from * may WRITE LITERAL TOPIC orders",
        "User:bob from 10.0.0.1 may not WRITE TOPIC of any name (request Produce),"
        " because no ACL allows it for any resource of the type",
    ]


@pytest.mark.parametrize("class_name", [ACL_AUTHORIZER, STANDARD_AUTHORIZER])
async def test_acls_are_created_found_and_deleted(class_name: str) -> None:
    authorizer, nodes = new_authorizer(class_name)
    acls = [Acl(TOPIC, WRITE), Acl(TOPIC, READ), Acl(TOPIC, WRITE)]
    assert await authorizer.create(acls, allows_networks=False) == [None, None, None]
    assert nodes.entries == {TOPIC: {READ, WRITE}}
    assert authorizer.find(EVERYTHING) == [Acl(TOPIC, READ), Acl(TOPIC, WRITE)]
    reads = EVERYTHING._replace(operation=Operation.READ)
    assert await authorizer.delete([reads]) == [[(Acl(TOPIC, READ), None)]]
    assert authorizer.find(EVERYTHING) == [Acl(TOPIC, WRITE)]


async def test_an_acl_of_two_filters_is_answered_as_each_authorizer_does() -> None:
    for class_name, expected in ((ACL_AUTHORIZER, [1, 0]), (STANDARD_AUTHORIZER, [1, 1])):
        authorizer, _ = new_authorizer(class_name)
        await authorizer.create([Acl(TOPIC, WRITE)], allows_networks=False)
        assert [len(acls) for acls in await authorizer.delete([EVERYTHING] * 2)] == expected


@pytest.mark.parametrize(
    ("class_name", "acl", "code", "message"),
    [
        (ACL_AUTHORIZER, Acl(TOPIC._replace(name="a/b"), WRITE), 42, "Failed to create ACL"),
        (
            ACL_AUTHORIZER,
            Acl(TOPIC, WRITE._replace(operation=Operation.UNKNOWN)),
            42,
            "Failed to create ACL",
        ),
        (ACL_AUTHORIZER, Acl(TOPIC, WRITE._replace(principal="alice")), -1, None),
        (STANDARD_AUTHORIZER, Acl(TOPIC._replace(name="a//b"), WRITE), -1, None),
        (
            STANDARD_AUTHORIZER,
            Acl(TOPIC._replace(pattern_type=PatternType.UNKNOWN), WRITE),
            42,
            "Invalid patternType UNKNOWN",
        ),
        (
            STANDARD_AUTHORIZER,
            Acl(TOPIC, WRITE._replace(principal="alice")),
            42,
            "Could not parse principal from `alice` (no colon is present separating the principal"
            " type from the principal name)",
        ),
        (
            STANDARD_AUTHORIZER,
            Acl(TOPIC, WRITE._replace(host="10.0.0.0/8")),
            35,
            "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
        ),
    ],
)
async def test_wrong_acls_are_refused(
    class_name: str, acl: Acl, code: int, message: str | None
) -> None:
    authorizer, nodes = new_authorizer(class_name)
    refused, created = await authorizer.create([acl, Acl(TOPIC, READ)], allows_networks=False)
    assert created is None
    assert refused is not None
    assert (refused.code, refused.detail) == (code, message)
    assert nodes.entries == {TOPIC: {READ}}


async def test_hosts_may_be_networks_from_a_metadata_version_on() -> None:
    authorizer, _ = new_authorizer(STANDARD_AUTHORIZER)
    acls = [Acl(TOPIC, WRITE._replace(host=host)) for host in ("10.0.0.0/8", "10.0.0.0/99")]
    created, refused = await authorizer.create(acls, allows_networks=True)
    assert created is None
    assert refused is not None
    assert refused.code == ErrorCode.INVALID_REQUEST
    assert may_write(authorizer)


async def test_a_lost_tree_is_an_error_of_each_acl() -> None:
    authorizer, nodes = new_authorizer()
    await authorizer.create([Acl(TOPIC, WRITE)], allows_networks=False)
    nodes.is_lost = True
    (error,) = await authorizer.create([Acl(TOPIC, READ)], allows_networks=False)
    assert error is not None
    assert error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    (((acl, error),),) = await authorizer.delete([EVERYTHING])
    assert acl == Acl(TOPIC, WRITE)
    assert error is not None


@pytest.mark.parametrize("class_name", [ACL_AUTHORIZER, STANDARD_AUTHORIZER])
async def test_the_work_of_a_deletion_grows_as_the_number_of_filters(class_name: str) -> None:
    async def count_lines(filter_count: int) -> int:
        authorizer, _ = new_authorizer(class_name)
        authorizer.put(TOPIC, frozenset({WRITE}))
        of_topics = EVERYTHING._replace(resource_type=ResourceType.TOPIC)
        filters = [
            of_topics._replace(name=f"t{number}")
            if number % 2
            else of_topics._replace(principal="User:x")
            for number in range(filter_count)
        ]
        with CountedWork() as work:
            await authorizer.delete(filters)
        return work.lines

    small = await count_lines(250)
    assert await count_lines(1_000) < 5 * small
