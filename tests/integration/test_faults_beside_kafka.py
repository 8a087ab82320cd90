"""The same error, answered by a proxy before minibroker and before Kafka 4.4.0: clients react
alike.

The tests of faults beside this one show the reactions on minibroker alone (retries, joins,
fencing). Here they are compared with Kafka: the end of the call, and the kinds of requests that it
took. Each row runs with three libraries. A dropped connection is left out: it is no answer of a
broker, and kafka-python 3.0 forgets to close some sockets, which pytest counts as an error of the
test.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from minibroker.testing import Proxy
from tests.support.reacting import READERS, WRITERS, opened_clients, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.testing import Broker
    from tests.support.peers import KafkaPeer
    from tests.support.reacting import Client

pytestmark = pytest.mark.java
open_client = pytest.fixture(opened_clients)
NUMBERS = itertools.count()


@pytest.fixture
def proxies(kafka: Broker, kafka_44: KafkaPeer) -> Iterator[list[Proxy]]:
    """Yield proxies before both brokers; they live longer than the clients."""
    with Proxy(kafka.bootstrap) as first, Proxy(kafka_44.address) as second:
        yield [first, second]


def asked_after(proxy: Proxy) -> set[str]:
    """Return the kinds of the requests since the error was answered."""
    requests = proxy.requests
    refused = [number for number, request in enumerate(requests) if request.fault is not None]
    return {request.api for request in requests[refused[0] + 1 :]} if refused else set()


class Row(NamedTuple):
    """An error, the request that it answers, and the reaction of a client."""

    api: str
    error: str
    do: Callable[[Side], str]
    """Makes the proxy answer the error and uses a client; returns the end of the call."""
    matters: frozenset[str]
    """The kinds of requests to compare; others come at any time."""


class Side(NamedTuple):
    """One broker behind its proxy, with one library."""

    proxy: Proxy
    client: str
    open_client: Callable[[Client], Any]
    name: str
    """The name of a topic, a group or a transactional id."""
    refuse: Callable[[], object]
    """Makes the proxy answer the next request of the row's kind with the error."""

    def writer(self, *more: str) -> Any:
        return self.open_client(WRITERS[self.client](self.proxy.bootstrap, *more))

    def member(self) -> Any:
        assert settle(self.writer().send(self.name, b"1")) == "done"
        return self.open_client(READERS[self.client](self.proxy.bootstrap, self.name, self.name))


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
    """Refuse a heartbeat of a member that already reads.

    librdkafka sends heartbeats before it has its partitions. It takes a rebalance that is announced
    then for the current one, and goes on when the next heartbeat succeeds.
    """
    member = side.member()
    assert settle(member.read(1)) == "done"
    side.refuse()

    def is_back() -> bool:
        return "SyncGroup" in asked_after(side.proxy) and member.assigned == [0]

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
    proxies: list[Proxy], open_client: Callable[[Client], Any], row: Row, client: str
) -> None:
    def react(proxy: Proxy) -> tuple[str, frozenset[str]]:
        name = f"beside-kafka-{next(NUMBERS)}"
        api: Any = row.api
        refuse = partial(proxy.faults.add, api, error=row.error, times=1)
        outcome = row.do(Side(proxy, client, open_client, name, refuse))
        assert [fault.hits for fault in proxy.faults] == [1]
        return outcome, row.matters.intersection(asked_after(proxy))

    with ThreadPoolExecutor(2) as side_by_side:
        with_minibroker, with_kafka = side_by_side.map(react, proxies)
    assert with_minibroker == with_kafka
