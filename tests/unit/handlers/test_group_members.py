"""What the handlers of group membership share."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.groups.group import CLASSIC, CONSUMER
from minibroker.handlers.group_members import Waiter, client_host, manager_of

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("127.0.0.1:5000", "/127.0.0.1"),
        ("::1:5000", "/0:0:0:0:0:0:0:1"),
        ("[::1]:5000", "/0:0:0:0:0:0:0:1"),
        ("fe80::12ab%eth0:5000", "/fe80:0:0:0:0:0:0:12ab"),
    ],
)
def test_addresses_are_shown_as_java_shows_them(address: str, shown: str) -> None:
    context: Any = SimpleNamespace(client_address=address)
    assert client_host(context) == shown


class Partitions:
    """Whoever asks when everything is synced is called when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[bool], None]] = []

    def when_synced(self, then: Callable[[bool], None]) -> None:
        self.waiting.append(then)


SYNCED: Any = SimpleNamespace(when_synced=lambda then: then(True))


async def test_an_answer_at_once_makes_no_future() -> None:
    waiter = Waiter(str.upper, SYNCED)
    waiter("answer")
    assert waiter.outcome() == "ANSWER"


async def test_a_later_answer_is_waited_for() -> None:
    waiter = Waiter(str.upper, SYNCED)
    outcome = waiter.outcome()
    assert isinstance(outcome, asyncio.Future)
    waiter("answer")
    assert await outcome == "ANSWER"


async def test_a_later_answer_leaves_after_the_fsync_of_what_led_to_it() -> None:
    partitions: Any = Partitions()
    waiter = Waiter(str.upper, partitions)
    outcome = waiter.outcome()
    waiter("answer")
    assert not outcome.done()
    partitions.waiting.pop()(True)
    assert await outcome == "ANSWER"


async def test_a_later_answer_is_an_error_where_the_fsync_failed() -> None:
    partitions: Any = Partitions()
    waiter = Waiter(str.upper, partitions)
    outcome = waiter.outcome()
    waiter("answer")
    partitions.waiting.pop()(False)
    with pytest.raises(KafkaError) as caught:
        await outcome
    assert caught.value.code == ErrorCode.NOT_COORDINATOR


async def test_who_has_gone_hears_nothing() -> None:
    """The connection cancels what it waits for when it is closed."""
    waiter = Waiter(str.upper, SYNCED)
    waiter.outcome().cancel()
    waiter("answer")


@pytest.mark.parametrize(
    ("type_name", "is_empty", "manager"),
    [
        (CLASSIC, False, "classic"),
        (CONSUMER, False, "consumer"),
        (CONSUMER, True, "classic"),
        (None, True, "classic"),
    ],
)
def test_who_answers_for_a_group(type_name: str | None, is_empty: bool, manager: str) -> None:
    groups: Any = SimpleNamespace(classic="classic", consumer="consumer")
    there = {"g": SimpleNamespace(type_name=type_name, is_empty=is_empty)} if type_name else {}
    shard: Any = SimpleNamespace(groups=there)
    assert manager_of(groups, shard, "g") == manager
