"""Groups over HTTP, as the console shows and changes them, with consumers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from minibroker.testing import Cluster
from tests.unit.control.conftest import serve_of

if TYPE_CHECKING:
    from minibroker.testing import Broker
    from tests.unit.control.conftest import Control

READ = "/groups/readers"


def consumer_of(broker: Broker, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "client.id": "mine",
            "log_level": 0,
            **settings,
        }
    )


def read(consumer: Consumer, count: int) -> None:
    consumer.subscribe(["orders"])
    while count:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None, message.error()
        count -= 1


@pytest.mark.kafka(topics=["orders:2"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_in_full_has_members_offsets_and_lag(control: Control, protocol: str) -> None:
    for partition in (0, 1, 1):
        control.broker.produce("orders", b"v", partition=partition)
    consumer = consumer_of(control.broker, **{"group.protocol": protocol})
    read(consumer, 3)
    consumer.commit(asynchronous=False)
    control.broker.produce("orders", b"v", partition=1)
    status, group = control.ask("GET", READ)
    (member,) = group["members"]
    assert (status, group["kind"], group["broker_id"], group["lag"]) == (200, protocol, 0, 1)
    assert (member["client_id"], member["subscription"]) == ("mine", ["orders"])
    assert member["partitions"] == [
        {"topic": "orders", "partition": 0},
        {"topic": "orders", "partition": 1},
    ]
    first, second = group["offsets"]
    assert (first["offset"], first["lag"], first["member_id"]) == (1, 0, member["member_id"])
    assert (second["offset"], second["end_offset"], second["lag"]) == (2, 3, 1)
    (row,) = control.ask("GET", "/groups")[1]
    assert (row["kind"], row["lag"], row["members"]) == (protocol, 1, 1)

    for method, path, body in (
        ("POST", f"{READ}/offsets", {"to": "earliest"}),
        ("DELETE", READ, None),
    ):
        status, answer = control.ask(method, path, body)
        assert status == 409
        assert "stop its consumers first" in answer["error"]
    consumer.close()


@pytest.mark.kafka(topics=["orders:2"])
def test_offsets_are_reset_to_each_kind_of_place(control: Control) -> None:
    for partition in (0, 0, 0, 1):
        control.broker.produce("orders", b"v", partition=partition)
    consumer = consumer_of(control.broker)
    consumer.commit(
        offsets=[TopicPartition("orders", 0, 1), TopicPartition("orders", 1, 1)],
        asynchronous=False,
    )
    for body, offsets in (
        ({"to": "earliest"}, [0, 0]),
        ({"to": "latest"}, [3, 1]),
        ({"to": "shift", "shift": -1}, [2, 0]),
        ({"to": "shift", "shift": -100}, [0, 0]),
        ({"to": "offset", "offset": 2}, [2, 1]),  # never outside of the partition
        ({"to": "time", "time": "-1h"}, [0, 0]),
        ({"to": "time", "time": "+1h"}, [3, 1]),
        ({"to": "offset", "offset": 1, "topic": "orders", "partition": 0}, [1]),
    ):
        dry = control.ask("POST", f"{READ}/offsets", {**body, "dry_run": True})
        status, places = control.ask("POST", f"{READ}/offsets", body)
        assert (status, [place["new_offset"] for place in places]) == (200, offsets)
        assert dry == (200, places)  # and it changed nothing
    committed = consumer.committed([TopicPartition("orders", 0), TopicPartition("orders", 1)], 60)
    assert [place.offset for place in committed] == [1, 1]
    consumer.close()


@pytest.mark.kafka(topics=["orders"])
@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"to": "latest"}, 404, "has no offset: name a topic"),
        ({"to": "offset", "topic": "orders"}, 400, "field 'offset' is missing"),
        ({"to": "time", "topic": "orders"}, 400, "field 'time' is missing"),
        ({"to": "time", "time": "never", "topic": "orders"}, 400, "never"),
        ({"to": "latest", "partition": 1}, 400, "field 'partition' needs 'topic'"),
        ({"to": "latest", "topic": "orders", "partition": 1}, 404, "has 1 partitions"),
        ({"to": "latest", "topic": "other"}, 404, "there is no topic"),
        ({"to": "middle"}, 400, "expected one of earliest, latest"),
    ],
)
def test_a_reset_that_cannot_be_is_refused(
    control: Control, body: dict[str, Any], status: int, sentence: str
) -> None:
    answered, answer = control.ask("POST", "/groups/new/offsets", body)
    assert answered == status
    assert sentence in answer["error"]


@pytest.mark.kafka(topics=["orders"])
def test_a_group_that_does_not_exist_yet_gets_offsets(control: Control) -> None:
    control.broker.produce("orders", b"v")
    body = {"to": "latest", "topic": "orders"}
    assert control.ask("POST", "/groups/new/offsets", body) == (
        200,
        [{"topic": "orders", "partition": 0, "old_offset": None, "new_offset": 1}],
    )
    assert control.broker.committed("new") == {("orders", 0): 1}


@pytest.mark.kafka(topics=["orders:2"])
def test_offsets_and_groups_are_deleted(control: Control) -> None:
    control.ask("POST", f"{READ}/offsets", {"to": "latest", "topic": "orders"})
    path = f"{READ}/offsets?topic=orders&partition=1"
    assert control.ask("DELETE", path) == (
        200,
        [{"topic": "orders", "partition": 1, "offset": 0}],
    )
    assert control.ask("DELETE", path)[0] == 404
    assert control.broker.committed("readers") == {("orders", 0): 0}
    assert control.ask("DELETE", READ) == (200, {"group": "readers"})
    assert control.ask("DELETE", READ)[0] == 404
    assert control.ask("GET", READ)[0] == 404


def test_a_group_is_shown_and_changed_at_whichever_broker_coordinates_it() -> None:
    with Cluster(3, topics=["orders:3"]) as cluster:
        for partition in range(3):
            cluster.make_leader(partition, "orders", partition)
            cluster.broker(partition).produce("orders", b"v", partition=partition)
        for number in range(3):
            with serve_of(cluster, number) as control:
                path = f"/groups/g{number}"
                body = {"to": "earliest", "topic": "orders"}
                assert control.ask("POST", f"{path}/offsets", body)[0] == 200
                assert control.ask("GET", path)[1]["lag"] == 3
                groups = control.ask("GET", "/groups")[1]
                assert [(group["group"], group["lag"]) for group in groups] == [
                    (f"g{earlier}", 3) for earlier in range(number + 1)
                ]


def test_the_first_group_of_a_new_cluster_gets_offsets() -> None:
    """The topic of offsets is made by the request, and its replicas take a moment."""
    settings = {"offsets.topic.num.partitions": "20", "offsets.topic.replication.factor": "3"}
    with Cluster(3, topics=["orders:3"], config=settings) as cluster, serve_of(cluster) as control:
        body = {"to": "earliest", "topic": "orders"}
        for number in range(5):
            assert control.ask("POST", f"/groups/g{number}/offsets", body)[0] == 200
            assert control.ask("GET", f"/groups/g{number}")[1]["lag"] == 0
