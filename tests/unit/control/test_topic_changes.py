"""Topics and settings over HTTP, as the console changes them, with an admin client beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from minibroker.testing import Broker, Cluster
from tests.support.late_news import result_after_news
from tests.unit.control.conftest import serve, serve_of

if TYPE_CHECKING:
    from tests.unit.control.conftest import Control


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def own_settings(settings: list[dict[str, Any]]) -> dict[str, str]:
    return {
        setting["name"]: setting["value"]
        for setting in settings
        if setting["source"] == "DYNAMIC_TOPIC_CONFIG"
    }


def test_a_topic_is_made_as_an_admin_client_makes_it(control: Control) -> None:
    body = {"name": "orders", "partitions": 2, "configs": {"retention.ms": "1000"}}
    status, headers, _ = control.raw("POST", "/topics", body)
    assert (status, headers["Location"]) == (201, "/topics/orders")
    topics = admin_of(control.broker).list_topics().topics
    assert len(topics["orders"].partitions) == 2
    status, settings = control.ask("GET", "/topics/orders/configs")
    assert (status, own_settings(settings)) == (200, {"retention.ms": "1000"})
    (retention,) = [setting for setting in settings if setting["name"] == "retention.ms"]
    assert (retention["type"], retention["sensitive"]) == ("LONG", False)
    assert "segment" in retention["documentation"]


@pytest.mark.kafka(topics=["orders"])
@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"name": "orders"}, 409, "TOPIC_ALREADY_EXISTS"),
        ({"name": "no/name"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "x", "replicas": 3}, 400, "INVALID_REPLICATION_FACTOR"),
        ({"name": "x", "partitions": 0}, 400, "field 'partitions' is 0, expected"),
        ({"name": "x", "configs": {"retention.ms": "soon"}}, 400, "INVALID_CONFIG"),
        ({"name": "x", "configs": {"nonsense": "1"}}, 400, "INVALID_CONFIG"),
        ({}, 400, "field 'name' is missing"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_with_kafkas_sentence(
    control: Control, body: dict[str, Any], status: int, sentence: str
) -> None:
    answered, answer = control.ask("POST", "/topics", body)
    assert answered == status
    assert sentence in answer["error"]


@pytest.mark.kafka(topics=["orders:2"])
def test_a_topic_in_full_has_its_offsets_and_sizes(control: Control) -> None:
    control.broker.produce("orders", b"value", partition=1)
    status, topic = control.ask("GET", "/topics/orders")
    assert (status, topic["name"], len(topic["topic_id"])) == (200, "orders", 22)
    _, second = topic["partitions"]
    assert (second["high_watermark"], second["last_stable_offset"]) == (1, 1)
    assert (second["segments"], second["size_bytes"] > 0) == (1, True)
    assert (second["leader"], second["replicas"], second["in_sync"]) == (0, [0], [0])
    assert control.ask("GET", "/topics/other")[0] == 404


@pytest.mark.kafka(topics=["orders"])
def test_a_topic_is_deleted_and_made_larger(control: Control) -> None:
    status, topic = control.ask("POST", "/topics/orders/partitions", {"count": 3})
    assert (status, len(topic["partitions"])) == (200, 3)
    assert control.ask("POST", "/topics/orders/partitions", {"count": 2})[0] == 400
    assert control.ask("DELETE", "/topics/orders") == (200, {"name": "orders"})
    assert "orders" not in admin_of(control.broker).list_topics().topics
    assert control.ask("DELETE", "/topics/orders")[0] == 404
    assert control.ask("POST", "/topics/orders/partitions", {"count": 3})[0] == 404


@pytest.mark.kafka(topics=["orders"])
def test_settings_of_a_topic_are_set_and_reset_together(control: Control) -> None:
    path = "/topics/orders/configs"
    change: dict[str, Any] = {"set": {"cleanup.policy": "compact", "retention.ms": "5"}}
    assert own_settings(control.ask("POST", path, change)[1]) == change["set"]
    change = {"set": {"retention.ms": "6"}, "reset": ["cleanup.policy"]}
    assert own_settings(control.ask("POST", path, change)[1]) == {"retention.ms": "6"}
    resource = ConfigResource(ResourceType.TOPIC, "orders")
    admin = admin_of(control.broker)
    (future,) = admin.describe_configs([resource]).values()
    assert future.result(60)["retention.ms"].value == "6"
    for wrong in (
        {},
        {"set": {"retention.ms": "6"}, "reset": ["retention.ms"]},
        {"set": {"retention.ms": "soon"}, "reset": ["cleanup.policy"]},
        {"set": {"retention.ms": 6}},
    ):
        assert control.ask("POST", path, wrong)[0] == 400
    assert own_settings(control.ask("GET", path)[1]) == {"retention.ms": "6"}
    assert control.ask("GET", "/topics/other/configs")[0] == 404


def test_settings_of_a_broker_are_changed_while_it_runs(control: Control) -> None:
    def connections_max(settings: list[dict[str, Any]]) -> tuple[str, str]:
        (setting,) = [part for part in settings if part["name"] == "max.connections"]
        return setting["value"], setting["source"]

    change = {"set": {"max.connections": "77"}}
    status, settings = control.ask("POST", "/configs", change)
    assert (status, connections_max(settings)) == (200, ("77", "DYNAMIC_BROKER_CONFIG"))
    assert (
        control.broker.call(lambda: control.broker._node.app.dynamic.broker.max_connections) == 77
    )
    assert control.ask("POST", "/configs", {"set": {"broker.id": "7"}})[0] == 400
    assert control.ask("GET", "/configs?broker_id=7")[0] == 404


def test_a_change_needs_no_permission_of_a_client() -> None:
    """A token says who may ask; the ACLs of the broker are for its clients."""
    with Broker(acls=[]) as broker:
        control, server = serve(broker)
        assert control.ask("POST", "/topics", {"name": "orders"})[0] == 201
        assert control.ask("GET", "/topics/orders/configs")[0] == 200
        broker.await_node(lambda _: server.close())


def test_a_topic_is_made_by_the_controller_whichever_broker_is_asked() -> None:
    with Cluster(3) as cluster:
        other = (cluster.controller + 1) % 3
        with serve_of(cluster, other) as control:
            body = {"name": "orders", "partitions": 3, "replicas": 3}
            assert control.ask("POST", "/topics", body)[0] == 201
            _, topic = control.ask("GET", "/topics/orders")
            assert {partition["leader"] for partition in topic["partitions"]} == {0, 1, 2}
            assert all(partition["high_watermark"] == 0 for partition in topic["partitions"])
            assert control.ask("DELETE", "/topics/orders")[0] == 200
            images = [node.app.cluster.image for node in cluster._nodes.all]
            assert all("orders" not in image.topics for image in images)


def test_a_change_is_known_to_every_broker_when_it_is_answered() -> None:
    with Cluster(3) as cluster, serve_of(cluster, 0) as control, serve_of(cluster, 2) as other:
        cluster.make_controller(0)

        def change(path: str, body: Any) -> Any:
            status, answer = result_after_news(cluster, 2, lambda: control.ask("POST", path, body))
            assert status in (200, 201), answer
            return answer

        change("/topics", {"name": "orders", "partitions": 3, "replicas": 3})
        assert all(
            part["leader"] >= 0 for part in other.ask("GET", "/topics/orders")[1]["partitions"]
        )
        settings = change("/topics/orders/configs", {"set": {"retention.ms": "60000"}})
        assert other.ask("GET", "/topics/orders/configs") == (200, settings)
        quotas = change("/quotas", {"client_id": "c", "set": {"producer_byte_rate": 1000}})
        assert other.ask("GET", "/quotas") == (200, quotas)
        change("/topics/new/records", {"records": [{"value": "v"}]})
        assert other.ask("GET", "/topics/new")[0] == 200


def test_each_way_names_a_topic_that_is_not_there(control: Control) -> None:
    """The console asks several of them at once, and shows what one of them says."""
    for method, path, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("POST", "/partitions", {"count": 3}),
        ("GET", "/configs", None),
        ("POST", "/configs", {"set": {"retention.ms": "1"}}),
        ("GET", "/records", None),
    ):
        status, answer = control.ask(method, f"/topics/other{path}", body)
        assert status == 404, (method, path)
        assert "topic 'other'" in answer["error"], (method, path)
