"""Shared code of the handlers of group membership."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.member import Member
from minibroker.broker.groups.group import CLASSIC, CONSUMER
from minibroker.broker.handlers.common.context import RequestContext
from minibroker.broker.handlers.common.group_members import AnswerWaiter, client_host, manager_of


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("127.0.0.1:5000", "/127.0.0.1"),
        ("::1:5000", "/0:0:0:0:0:0:0:1"),
        ("[::1]:5000", "/0:0:0:0:0:0:0:1"),
        ("fe80::12ab%eth0:5000", "/fe80:0:0:0:0:0:0:12ab%eth0"),
    ],
)
def test_addresses_are_shown_as_java_shows_them(address: str, text: str) -> None:
    unused: Any = None
    without_authorizer: Any = SimpleNamespace(authorizer=None)
    context = RequestContext(
        services=without_authorizer, listener=unused, client_address=address, close_connection=print
    )
    assert client_host(context) == text


async def test_an_answer_at_once_makes_no_future() -> None:
    waiter = AnswerWaiter(str.upper)
    waiter("answer")
    assert waiter.outcome() == "ANSWER"


async def test_a_later_answer_is_waited_for() -> None:
    waiter = AnswerWaiter(str.upper)
    outcome = waiter.outcome()
    assert isinstance(outcome, asyncio.Future)
    waiter("answer")
    assert await outcome == "ANSWER"


async def test_a_client_that_has_gone_gets_no_answer() -> None:
    """The connection cancels what it waits for when it is closed."""
    waiter = AnswerWaiter(str.upper)
    waiter.outcome().cancel()
    waiter("answer")


def test_coordinators_that_answer_for_a_group() -> None:
    """A consumer group with members looks after its classic ones; an empty one becomes classic."""
    groups: Any = SimpleNamespace(members=lambda kind: kind)
    with_members = ConsumerGroup("members")
    with_members.put_member(Member("m"))
    all_groups = [ClassicGroup("classic", 0), ConsumerGroup("empty"), with_members]
    shard: Any = SimpleNamespace(groups={group.group_id: group for group in all_groups})
    answering = {name: manager_of(groups, shard, name) for name in (*shard.groups, "nobody")}
    assert answering == {
        "classic": CLASSIC,
        "empty": CLASSIC,
        "members": CONSUMER,
        "nobody": CLASSIC,
    }
