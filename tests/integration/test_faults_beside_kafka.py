"""The same error, answered in the broker's place before minibroker and before Apache Kafka 4.4.0: a
client does the same about both.

What the tests of faults beside this one say of minibroker alone (retries, joins, fencing) is
so compared with Kafka: how the call ended, and which kinds of requests it took. Each row with three
libraries. A connection that is dropped is left out: no broker says anything then, and kafka-python
3.0 forgets to close some sockets, which pytest counts as an error of the test.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.answering_proxy import AnsweringProxy
from tests.support.reacting import READERS, WRITERS, opened_clients, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.testing import Broker
    from tests.support.peers import KafkaPeer
    from tests.support.reacting import Client

pytestmark = pytest.mark.java
opened = pytest.fixture(opened_clients)
NUMBERS = itertools.count()


@pytest.fixture
def proxies(kafka: Broker, kafka_44: KafkaPeer) -> Iterator[list[AnsweringProxy]]:
    """Before both brokers; they are there until the clients are gone."""
    made = [AnsweringProxy(address) for address in (kafka.bootstrap, kafka_44.address)]
    yield made
    for proxy in made:
        proxy.close()


class Row(NamedTuple):
    """An error, whose request it answers, and what a client is seen to do about it."""

    api: str
    error: str
    do: Callable[[Side], str]
    """Has the error answered and uses a client over it; how that ended."""
    matters: frozenset[str]
    """The kinds of requests to compare; others come whenever they come."""


class Side(NamedTuple):
    """One broker behind its proxy, with one library."""

    proxy: AnsweringProxy
    client: str
    opened: Callable[[Client], Any]
    name: str
    """A topic, a group or a transactional id of its own."""
    refuse: Callable[[], None]
    """The next request of the row's kind is the one."""

    def writer(self, *more: str) -> Any:
        return self.opened(WRITERS[self.client](self.proxy.address, *more))

    def member(self) -> Any:
        assert settle(self.writer().send(self.name, b"1")) == "done"
        return self.opened(READERS[self.client](self.proxy.address, self.name, self.name))


def write(side: Side) -> str:
    side.refuse()
    return settle(side.writer().send(side.name, b"1"))


def join(side: Side) -> str:
    side.refuse()
    return settle(side.member().read(1))


def commit(side: Side) -> str:
    member = side.member()
    assert settle(member.read(1)) == "done"
    side.refuse()
    return settle(member.commit())


def rejoin(side: Side) -> str:
    """Refused once it reads: librdkafka beats before it has taken its partitions, holds a rebalance
    that is announced then for the one it is in, and goes on when the next beat is fine.
    """
    member = side.member()
    assert settle(member.read(1)) == "done"
    side.refuse()

    def is_back() -> bool:
        return "SyncGroup" in side.proxy.asked_after and member.assigned == [0]

    return f"{settle(member.poll_until(is_back))}, given up {member.revoked} times"


def transact(side: Side) -> str:
    writer = side.writer(side.name)
    writer.begin()
    assert settle(writer.send(side.name, b"1")) == "done"
    side.refuse()
    return settle(writer.commit())


JOINING = frozenset({"FindCoordinator", "JoinGroup", "SyncGroup"})
ROWS = (
    Row("Produce", "NOT_LEADER_OR_FOLLOWER", write, frozenset({"Produce"})),
    Row("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", join, JOINING),
    Row("JoinGroup", "NOT_COORDINATOR", join, JOINING),
    Row("SyncGroup", "NOT_COORDINATOR", join, JOINING),
    # FindCoordinator is left out: librdkafka asks for it on a timer as well.
    Row("Heartbeat", "REBALANCE_IN_PROGRESS", rejoin, frozenset({"JoinGroup", "SyncGroup"})),
    Row("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", commit, frozenset({"OffsetCommit"})),
    Row("EndTxn", "INVALID_PRODUCER_EPOCH", transact, frozenset({"EndTxn"})),
)


@pytest.mark.parametrize("client", list(WRITERS))
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.api}-{row.error}")
def test_a_client_does_as_with_kafka(
    proxies: list[AnsweringProxy], opened: Callable[[Client], Any], row: Row, client: str
) -> None:
    def react(proxy: AnsweringProxy) -> tuple[str, frozenset[str]]:
        name = f"beside-kafka-{next(NUMBERS)}"
        refuse = partial(proxy.refuse, row.api, row.error)
        outcome = row.do(Side(proxy, client, opened, name, refuse))
        assert proxy.has_refused.is_set()
        return outcome, row.matters.intersection(proxy.asked_after)

    with ThreadPoolExecutor(2) as side_by_side:
        with_minibroker, with_kafka = side_by_side.map(react, proxies)
    assert with_minibroker == with_kafka
