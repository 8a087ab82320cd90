"""Schema registries of several brokers: one writes, the others forward, all have the same."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.registry.forwarding import URLS
from minibroker.testing import Cluster
from tests.support.broker import Minibroker, wait_until_acquainted
from tests.support.processes import free_port
from tests.support.registry_calls import RegistryAnswer, ask, posted, record, register

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.peers import ZooKeeper

CLIENTS = 3


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, registry=True) as cluster:
        yield cluster


def urls(cluster: Cluster) -> list[str]:
    return [broker.registry_url for broker in cluster.brokers]


def test_answer_of_a_registry_holds_for_all(cluster: Cluster) -> None:
    for number, url in enumerate(urls(cluster)):
        schema_id = register(url, "orders-value", record("a", f"b{number}?"))
        assert schema_id == number + 1
        # The one that forwarded has it at once; another one may lag behind a moment.
        assert ask(url, "GET", f"/schemas/ids/{schema_id}").status == 200
        assert ask(url, "GET", "/subjects/orders-value/versions").body[-1] == number + 1


def test_refusals_come_from_the_registry_that_writes(cluster: Cluster) -> None:
    register(cluster.registry_url, "a", '"int"')
    follower = (cluster.leader("_schemas") + 1) % 3
    url = cluster.broker(follower).registry_url
    answer = ask(url, "POST", "/subjects/a/versions", posted('"string"'))
    assert (answer.status, answer.code) == (409, 409)
    assert ask(url, "DELETE", "/subjects/none").code == 40401
    assert ask(url, "PUT", "/config/a", {"compatibility": "NONE"}).body["compatibility"] == "NONE"


def test_clients_of_all_registries_get_one_id_for_one_schema(cluster: Cluster) -> None:
    ids: dict[str, set[int]] = {}

    def register_all(url: str, client: int) -> None:
        for number in range(12):
            name = f"R{number}"
            schema_id = register(url, f"s{client}-{number}", record("x", name=name))
            ids.setdefault(name, set()).add(schema_id)

    threads = [
        threading.Thread(target=register_all, args=(url, client))
        for client in range(CLIENTS)
        for url in urls(cluster)[client : client + 1]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(each) for each in ids.values()] == [1] * 12
    assert sorted(number for each in ids.values() for number in each) == list(range(1, 13))


def test_another_registry_writes_when_the_leader_is_killed(cluster: Cluster) -> None:
    first = register(cluster.registry_url, "a", '"int"')
    leader = cluster.leader("_schemas")
    other = (leader + 1) % 3
    cluster.kill(leader)
    url = cluster.broker(other).registry_url
    cluster.wait_until("_schemas", in_sync={0, 1, 2} - {leader})
    assert register(url, "a", '"long"') == first + 1
    down = ask(cluster.broker(leader).registry_url, "GET", "/subjects")
    assert (down.status, down.code) == (500, 50001)
    cluster.restart(leader)
    cluster.wait_until_in_sync()
    again = cluster.broker(leader).registry_url
    assert ask(again, "GET", "/subjects/a/versions").body == [1, 2]
    assert register(again, "a", '"float"') == first + 2


def test_broker_without_a_replica_asks_one_that_has_it() -> None:
    with Cluster(2, registry=True) as cluster:
        cluster.create_topic("_schemas", config={"cleanup.policy": "compact"}, replication_factor=1)
        leader = cluster.leader("_schemas")
        url = cluster.broker(1 - leader).registry_url
        schema_id = register(url, "a/b", '"int"')
        assert ask(url, "GET", "/subjects/a%2Fb/versions/latest").body["id"] == schema_id
        assert ask(url, "GET", "/subjects?limit=5").body == ["a/b"]
        assert ask(url, "GET", "/subjects/b/versions").code == 40401


def test_leader_without_a_registry_is_an_error_that_says_so(cluster: Cluster) -> None:
    register(cluster.registry_url, "a", '"int"')
    leader = cluster.leader("_schemas")
    node = cluster.node(leader)
    cluster._await(node.app.cluster.tree.delete(f"{URLS}/{leader}"))
    url = cluster.broker((leader + 1) % 3).registry_url
    answer = ask(url, "POST", "/subjects/a/versions", posted('"long"'))
    assert (answer.status, answer.code) == (500, 50004)
    assert f"broker {leader}" in answer.body["message"]
    assert ask(url, "GET", "/subjects").body == ["a"]


def test_registry_that_makes_the_topic_leads_it(cluster: Cluster) -> None:
    register(cluster.broker(2).registry_url, "a", '"int"')
    assert cluster.leader("_schemas") == 2
    assert cluster.in_sync("_schemas") == [0, 1, 2]


def test_request_is_forwarded_once(cluster: Cluster) -> None:
    register(cluster.registry_url, "a", '"int"')
    url = cluster.broker((cluster.leader("_schemas") + 1) % 3).registry_url
    body, forwarded = posted('"long"'), {"X-Forward": "true"}
    answer = ask(url, "POST", "/subjects/a/versions", body, headers=forwarded)
    assert (answer.status, answer.code) == (500, 50004)


@pytest.mark.java
def test_brokers_of_a_zookeeper_share_one_registry(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    ports = [free_port(), free_port()]
    brokers = [
        Minibroker(
            tmp_path / f"data-{number}",
            tmp_path / f"log-{number}",
            zookeeper=f"{zookeeper.connect}/registries",
            settings={"broker.id": str(number)},
            arguments=["--registry", f"127.0.0.1:{port}"],
        )
        for number, port in enumerate(ports)
    ]
    first, second = (f"http://127.0.0.1:{port}" for port in ports)
    try:
        for broker in brokers:
            broker.start()
        wait_until_acquainted(brokers)
        assert register(first, "a", '"int"') == 1
        assert register(second, "a", '"long"') == 2
        assert register(first, "b", '"long"') == 2
        assert ask(second, "GET", "/subjects/a/versions").body == [1, 2]
        brokers[0].stop()
        answers: list[RegistryAnswer] = []

        def leads() -> bool:
            answers.append(ask(second, "POST", "/subjects/a/versions", posted('"float"')))
            return answers[-1].status == 200

        assert brokers[1].process is not None
        brokers[1].process.wait_until(leads, 60, "broker 1 leads _schemas")
        assert answers[-1].body == {"id": 3}
    finally:
        for broker in brokers:
            broker.kill()
