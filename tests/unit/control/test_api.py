"""Each path of the control API with a client beside it."""

from __future__ import annotations

import inspect
import json
import logging
import socket
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from minibroker.control import description, views
from minibroker.control.access import Access
from minibroker.control.api import OPERATIONS, ControlApi
from minibroker.control.bodies import advance_ms, fault_of, fault_view, parse_body
from minibroker.control.messages import HttpError
from minibroker.control.server import HttpServer
from minibroker.control.shapes import Advance, FaultRule, RequestsQuery
from minibroker.rig.faults import BROKER_FAULTS, LOGIN_FAULTS
from minibroker.testing import Cluster, Fault
from tests.support.readme import ROOT
from tests.unit.control.conftest import Control, serve, serve_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.testing import Broker


QUIET = {"log_level": 0, "retry.backoff.ms": 10, "linger.ms": 0}
QUICK_LOGIN = {"log_level": 0, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20}


def producer_for(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "client.id": "mine", **QUIET})


@pytest.mark.kafka(topics=["orders:2"])
def test_topics_groups_and_requests(control: Control) -> None:
    producer = producer_for(control.broker)
    producer.produce("orders", b"v", partition=1)
    assert producer.flush(60) == 0
    assert control.ask("GET", "/groups") == (200, [])
    settings = {"bootstrap.servers": control.broker.bootstrap, "group.id": "g", **QUIET}
    consumer = Consumer(settings)
    consumer.commit(offsets=[TopicPartition("orders", 1, 1)], asynchronous=False)
    consumer.close()

    status, topics = control.ask("GET", "/topics")
    (orders,) = [topic for topic in topics if not topic["internal"]]
    assert (status, orders["name"]) == (200, "orders")
    assert [partition["high_watermark"] for partition in orders["partitions"]] == [0, 1]
    assert control.ask("GET", "/groups") == (
        200,
        [
            {
                "group": "g",
                "kind": "classic",
                "broker_id": 0,
                "state": "Empty",
                "members": 0,
                "lag": 0,
                "committed": [{"topic": "orders", "partition": 1, "offset": 1}],
            }
        ],
    )
    _, headers, lines = control.raw("GET", "/requests?api=Produce&limit=1&client_id=mine")
    (request,) = [json.loads(line) for line in lines.splitlines()]
    assert headers["Content-Type"] == "application/x-ndjson"
    assert (request["api"], request["client_id"], request["error"]) == ("Produce", "mine", None)


@pytest.mark.kafka(topics=["orders"])
def test_a_fault_from_any_language(control: Control) -> None:
    rule = {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "topic": "orders", "times": 2}
    status, headers, _ = control.raw("POST", "/faults", rule)
    assert (status, headers["Location"]) == (201, "/faults/1")
    producer = producer_for(control.broker)
    producer.produce("orders", b"v")
    assert producer.flush(60) == 0
    assert control.ask("GET", "/faults/1") == (200, {"id": 1, "hits": 2, "broker_id": 0, **rule})
    assert control.ask("GET", "/faults") == (200, [{"id": 1, "hits": 2, "broker_id": 0, **rule}])
    assert control.ask("DELETE", "/faults/1")[0] == 200
    assert control.ask("GET", "/faults/1")[0] == 404
    control.ask("POST", "/faults", {"hold": True})
    assert control.ask("DELETE", "/faults") == (200, [])
    assert list(control.broker.faults) == []


@pytest.mark.kafka(topics=["orders"])
async def test_a_broker_that_is_killed_over_http(control: Control) -> None:
    import asyncio  # noqa: PLC0415  beside its one use

    ask = control.ask
    async with AIOKafkaProducer(
        bootstrap_servers=control.broker.bootstrap, retry_backoff_ms=20
    ) as producer:
        await producer.send_and_wait("orders", b"1")
        assert (await asyncio.to_thread(ask, "POST", "/faults", {"broker": "killed"}))[0] == 201
        for path in ("/topics", "/groups"):
            status, sentence = await asyncio.to_thread(ask, "GET", path)
            assert status == 503
            assert "killed" in sentence["error"]
        assert (await asyncio.to_thread(ask, "GET", "/health/ready"))[0] == 503
        delivery = asyncio.create_task(producer.send_and_wait("orders", b"2"))
        assert (await asyncio.to_thread(ask, "DELETE", "/faults/1"))[0] == 200
        await delivery
    assert [record.value for record in control.broker.records("orders")] == [b"1", b"2"]
    assert (await asyncio.to_thread(ask, "GET", "/health/ready"))[0] == 200


@pytest.mark.kafka(topics=["orders"], security="SASL_PLAINTEXT", users={"alice": "secret"})
def test_logins_that_are_refused_over_http(control: Control) -> None:
    rule = {"login": "wrong_password", "user": "alice", "times": 2}
    assert control.ask("POST", "/faults", rule)[0] == 201
    refused: list[KafkaError] = []
    login = control.broker.client_config("confluent-kafka")
    producer = Producer({**login, **QUICK_LOGIN, "error_cb": refused.append})
    producer.produce("orders", b"v")
    assert producer.flush(60) == 0
    assert sum(error.code() == KafkaError._AUTHENTICATION for error in refused) == 2
    assert control.ask("GET", "/faults/1") == (200, {"id": 1, "hits": 2, "broker_id": 0, **rule})
    status, sentence = control.ask("POST", "/faults", {"login": "tls_cut"})
    assert status == 409
    assert "no listener of this broker has TLS" in sentence["error"]
    status, sentence = control.ask("POST", "/faults", {"login": "slow"})
    assert status == 400
    assert "expected one of expired_token" in sentence["error"]


def test_faults_that_cannot_happen_to_this_broker(control: Control) -> None:
    status, sentence = control.ask("POST", "/faults", {"broker": "zookeeper_session_lost"})
    assert status == 409
    assert "no ZooKeeper" in sentence["error"]


@pytest.mark.kafka(topics=["orders"])
def test_time_and_reset(control: Control) -> None:
    _, old_time = control.ask("GET", "/clock")
    status, after = control.ask("POST", "/clock", {"hours": 1, "milliseconds": 5})
    assert status == 200
    assert 3_600_005 <= after["now_ms"] - old_time["now_ms"] < 3_660_000
    control.broker.produce("orders", b"v")
    control.ask("POST", "/faults", {"hold": True})
    assert control.ask("POST", "/reset")[0] == 200
    assert control.broker.records("orders") == []
    assert control.ask("GET", "/faults") == (200, [])


@pytest.mark.parametrize(
    ("request_line", "body", "status", "subject"),
    [
        ("POST /faults", {"tpic": "a"}, 400, "'tpic'"),
        ("POST /faults", {"topic": 5}, 400, "'topic'"),
        ("POST /faults", {"api": "Prodce", "hold": True}, 400, "api 'Prodce'"),
        ("POST /faults", {"error": "NO_SUCH"}, 400, "error 'NO_SUCH'"),
        ("POST /faults", {}, 400, "needs an effect"),
        ("POST /faults", b"{", 400, "not JSON"),
        ("POST /faults", b"[" * 60_000, 400, "not JSON"),
        ("POST /faults", [], 400, "JSON object"),
        ("POST /faults", b"x" * 70_000, 413, "larger than 65536"),
        ("POST /clock", {}, 400, "minutes"),
        ("POST /clock", {"minutes": -1}, 400, "'minutes'"),
        ("POST /clock", {"days": 1e9}, 400, "days"),
        ("GET /requests?limit=many", None, 400, "'limit'"),
        ("GET /requests?topic=a", None, 400, "'topic'"),
        ("GET /faults/x", None, 404, "no fault x"),
        ("GET /elsewhere", None, 404, "/elsewhere"),
        ("DELETE /topics", None, 405, "expected GET"),
    ],
)
def test_bad_input_is_told_what_is_wrong(
    control: Control, request_line: str, body: object, status: int, subject: str
) -> None:
    method, _, path = request_line.partition(" ")
    answered, sentence = control.ask(method, path, body)
    assert answered == status
    assert subject in sentence["error"]


def test_a_token_is_asked_for(kafka_broker: Broker) -> None:
    control, server = serve(kafka_broker, Access("secret"))
    right = {"Authorization": "Bearer secret", "Host": "broker.example"}
    assert control.ask("GET", "/clock", None, right)[0] == 200
    status, headers, _ = control.raw("GET", "/clock", None, {"Authorization": "Bearer secre"})
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
    assert control.ask("GET", "/health/ready")[0] == 200
    kafka_broker.await_node(lambda _: server.close())


def test_a_target_that_is_no_url_is_refused_behind_the_token(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    control, server = serve(kafka_broker, Access("secret"))
    for header, status in (("Bearer secre", b"401"), ("Bearer secret", b"400")):
        request = f"GET http://[::/ HTTP/1.1\r\nHost: a\r\nAuthorization: {header}\r\n"
        with socket.create_connection(("127.0.0.1", control.port), 60) as client:
            client.sendall(f"{request}Connection: close\r\n\r\n".encode())
            with client.makefile("rb") as answer:
                assert answer.readline().split()[1] == status
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    kafka_broker.await_node(lambda _: server.close())


def test_the_description_is_fresh(control: Control) -> None:
    """`make generate` writes both files."""
    assert (
        description.OPENAPI.read_text()
        == json.dumps(description.openapi(), indent=2, ensure_ascii=False) + "\n"
    )
    page = ROOT / "docs" / "reference" / "control-api.md"
    assert page.read_text() == description.page()
    assert control.ask("GET", "/openapi.json") == (200, description.openapi())


def test_the_description_has_every_operation_and_its_tokens() -> None:
    paths = description.openapi()["paths"]
    described = {
        (method.upper(), path): {name for needed in operation["security"] for name in needed}
        for path, methods in paths.items()
        for method, operation in methods.items()
    }
    for operation in OPERATIONS:
        tokens = described.pop((operation.method, operation.path))
        reading = {"token", "readToken"} if operation.method == "GET" else {"token"}
        assert tokens == (set() if operation.is_open else reading)
        assert operation.is_open == operation.path.startswith(("/health/", "/console/"))
    assert described == {}


def test_the_root_lists_what_there_is(control: Control) -> None:
    status, answer = control.ask("GET", "/")
    assert status == 200
    assert {(row["method"], row["path"]) for row in answer["paths"]} == {
        (operation.method, operation.path) for operation in OPERATIONS
    }


def test_a_broker_alone_is_a_cluster(control: Control) -> None:
    status, cluster = control.ask("GET", "/cluster")
    assert status == 200
    assert (cluster["broker"], cluster["controller"], cluster["not_in_sync"]) == (0, 0, [])
    assert cluster["brokers"] == [{"id": 0, "address": control.broker.bootstrap}]
    assert (cluster["controller_epoch"], cluster["metadata_age_ms"]) == (1, None)
    assert control.ask("POST", "/cluster/controller") == (200, cluster)
    control.broker.create_topic("t")
    assert control.ask("POST", "/cluster/leader", {"topic": "t"})[0] == 200
    for body, expected, sentence in (
        ({}, 400, "field 'topic' is missing"),
        ({"topic": "t", "partition": 1}, 409, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"topic": "t", "broker": 5}, 409, "broker 5 cannot lead t-0"),
    ):
        status, answer = control.ask("POST", "/cluster/leader", body)
        assert status == expected
        assert sentence in answer["error"]
    status, sentence = control.ask("POST", "/cluster/controller", {"broker": 1})
    assert (status, sentence["error"]) == (
        400,
        "field 'broker' is not known; expected none",
    )


def test_apis_of_one_process_reach_the_cluster() -> None:
    with Cluster(3, topics=["t:3"]) as cluster:
        apis = [ControlApi(cluster.node(n), None, cluster._nodes) for n in range(3)]
        served = [HttpServer(api.begin) for api in apis]

        async def listen() -> list[int]:
            return [await server.listen("127.0.0.1", 0) for server in served]

        async def close() -> None:
            for server in served:
                await server.close()

        ports = cluster._await(listen())
        broker: Any = cluster.broker(0)
        controls = [Control(broker, api, port) for api, port in zip(apis, ports, strict=True)]
        assert controls[2].ask("POST", "/cluster/controller")[1]["controller"] == 2
        for partition in range(3):
            body = {"topic": "t", "partition": partition}
            assert controls[1].ask("POST", "/cluster/leader", body)[0] == 200
            assert cluster.leader("t", partition) == 1
        rules = [{"broker": "cut_off", "peer": 1}, {"broker": "slow_follower", "delay_ms": 9}]
        for rule in rules:
            assert controls[0].ask("POST", "/faults", rule)[0] == 201
        assert [fault.peer for fault in cluster.broker(0).faults] == [1, None]
        assert controls[1].ask("POST", "/reset")[0] == 200
        assert controls[0].ask("GET", "/faults") == (200, [])
        assert controls[0].ask("GET", "/cluster")[1]["not_in_sync"] == []
        cluster._await(close())


# JSON bodies, field by field.


def test_every_argument_of_a_fault_is_a_field() -> None:
    fields = set(inspect.signature(Fault).parameters) - {"may_miss"}
    assert set(FaultRule.__struct_fields__) == fields
    rule = description.openapi()["components"]["schemas"]["FaultRule"]["properties"]
    assert set(rule["broker"]["enum"]) == set(BROKER_FAULTS)
    assert set(rule["login"]["enum"]) == set(LOGIN_FAULTS)
    assert all(field["description"] for field in rule.values())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("api", 1),
        ("twice", 1),
        ("partition", -1),
        ("partition", 1.5),
        ("partition", True),
        ("partition", 1 << 70),
        ("times", 0),
        ("delay_ms", "1"),
        ("delay_ms", 1e15),
        ("seed", 0.5),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(HttpError, match=field) as caught:
        parse_body(json.dumps({field: value}).encode(), FaultRule)
    assert caught.value.status == 400


def test_numbers_that_are_none() -> None:
    for text in (b'{"delay_ms": NaN}', b'{"delay_ms": Infinity}', b'{"delay_ms": 1e999}'):
        with pytest.raises(HttpError, match="the body is not JSON"):
            parse_body(text, FaultRule)


def test_null_is_as_if_it_were_not_there() -> None:
    assert parse_body(b'{"topic": null, "group": "g"}', FaultRule) == FaultRule(group="g")
    assert parse_body(b"", FaultRule) == FaultRule()


def test_a_fault_comes_back_as_it_was_given() -> None:
    rule = {"error": "UNKNOWN_SERVER_ERROR", "partition": 0, "probability": 0.5, "times": 3}
    fault = fault_of(parse_body(json.dumps(rule).encode(), FaultRule))
    assert msgspec.to_builtins(fault_view(7, fault)) == {"id": 7, "hits": 0, **rule}


def test_times_add_up() -> None:
    assert advance_ms(Advance(hours=0.5, seconds=2, milliseconds=3)) == 1_802_003


# Lists of topics and groups, as JSON.


def lines_of(broker: Broker, pieces_of: Callable[[Any], Iterable[str]]) -> list[Any]:
    """Each line's value."""
    text = broker.call(lambda: "".join(pieces_of(broker._node)))
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.kafka(topics=["b:2", "a"])
def test_topics_by_name_with_their_partitions(kafka_broker: Broker) -> None:
    kafka_broker.produce("b", b"value", partition=1)
    (topics,) = lines_of(kafka_broker, lambda node: views.topics_of([node.app]))
    assert [(topic["name"], topic["internal"]) for topic in topics] == [("a", False), ("b", False)]
    first, second = topics[1]["partitions"]
    offsets = {"leader": 0, "replicas": [0], "in_sync": [0], "log_start_offset": 0}
    assert first == {"partition": 0, **offsets, "high_watermark": 0, "size_bytes": 0}
    assert second.pop("size_bytes") > 0
    assert second == {"partition": 1, **offsets, "high_watermark": 1}


def test_without_topics_there_are_empty_lists(kafka_broker: Broker) -> None:
    assert lines_of(kafka_broker, lambda node: views.topics_of([node.app])) == [[]]
    assert lines_of(kafka_broker, lambda node: views.groups_of([node.app])) == [[]]


@pytest.mark.kafka(topics=["b:2", "a"])
def test_groups_by_name_with_what_they_committed(kafka_broker: Broker) -> None:
    names = [f'group "{number}" \\ \N{SNOWMAN}' for number in range(8)]  # in several shards
    for name in reversed(names):
        settings = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": name, "log_level": 0}
        consumer = Consumer(settings)
        commits = [TopicPartition("b", 1, 7), TopicPartition("b", 0, 6), TopicPartition("a", 0, 5)]
        consumer.commit(offsets=commits, asynchronous=False)
        consumer.close()
    (groups,) = lines_of(kafka_broker, lambda node: views.groups_of([node.app]))
    assert [group["group"] for group in groups] == names
    places = [("a", 0, 5), ("b", 0, 6), ("b", 1, 7)]
    committed = [
        dict(zip(("topic", "partition", "offset"), place, strict=True)) for place in places
    ]
    expected = {"group": names[3], "kind": "classic", "broker_id": 0, "state": "Empty"}
    expected |= {"members": 0, "lag": 0, "committed": committed}
    assert groups[3] == expected


def test_the_last_requests_oldest_first(kafka_broker: Broker) -> None:
    AdminClient({"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0}).list_topics()
    requests = lines_of(
        kafka_broker, lambda node: views.requests_of({0: node.request_log}, RequestsQuery())
    )
    assert len(requests) >= 2
    assert requests[0]["api"] == "ApiVersions"
    assert (
        lines_of(
            kafka_broker,
            lambda node: views.requests_of({0: node.request_log}, RequestsQuery(limit=0)),
        )
        == []
    )


def test_a_fault_is_added_to_another_broker_of_the_process() -> None:
    with Cluster(2) as cluster, serve_of(cluster, 0) as control:
        status, fault = control.ask("POST", "/brokers/1/faults", {"api": "Fetch", "delay_ms": 1})
        assert (status, fault["broker_id"]) == (201, 1)
        assert [len(cluster.node(number).faults) for number in range(2)] == [0, 1]
        assert control.ask("DELETE", f"/faults/{fault['id']}")[0] == 200
        assert len(cluster.node(1).faults) == 0
        for broker in ("2", "x", "9" * 400):
            assert control.ask("POST", f"/brokers/{broker}/faults", {"delay_ms": 1})[0] == 404
