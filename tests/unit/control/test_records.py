"""Records of topics over HTTP: read, written, waited for."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from msgspec import Raw

from minibroker.control import records, waiting
from minibroker.control.access import Access
from minibroker.control.api import ControlApi
from minibroker.control.server import HttpServer
from minibroker.control.shapes import NewRecord, RawRecords, RecordView
from minibroker.seeds.items import _OF_RECORD
from minibroker.testing import Cluster
from tests.support.turns import Turns
from tests.support.waiting import eventually
from tests.unit.control.conftest import Control, serve

if TYPE_CHECKING:
    from minibroker.testing import Broker

RECORDS = "/topics/orders/records"


def values(control: Control, query: str = "") -> list[Any]:
    status, answer = control.ask("GET", f"{RECORDS}?{query}")
    assert status == 200, answer
    return [record.get("value", record.get("value_base64")) for record in answer["records"]]


def test_a_record_has_the_fields_of_a_seed() -> None:
    fields = RecordView.__struct_fields__
    assert fields[: len(_OF_RECORD)] == _OF_RECORD
    assert fields[len(_OF_RECORD) :] == ("key_size", "value_size", "cut", "schema_id")
    assert set(NewRecord.__struct_fields__) == set(_OF_RECORD)


@pytest.mark.kafka(topics=["orders:2"])
def test_records_of_every_kind_come_back_as_they_were_sent(control: Control) -> None:
    originals = [
        {"key": "k", "value": "text", "partition": 0, "timestamp": 1_700_000_000_000},
        {"key": None, "value": '{"a": [1]}', "headers": [["h", "x"], ["n", None]], "partition": 1},
        {"key_base64": "/w==", "value": None, "partition": 1},
        {"key": "", "value_base64": "//8=", "headers": [["b", {"base64": "/w=="}]], "partition": 1},
    ]
    status, answer_of_write = control.ask("POST", RECORDS, {"records": originals})
    assert (status, answer_of_write["records"]) == (
        200,
        [{"partition": p, "offset": n} for p, n in ((0, 0), (1, 0), (1, 1), (1, 2))],
    )
    now_ms = control.ask("GET", "/clock")[1]["now_ms"]
    status, answer = control.ask("GET", RECORDS)
    assert status == 200
    for record, place, original in zip(
        answer["records"], answer_of_write["records"], originals, strict=True
    ):
        assert now_ms - 60_000 < record["timestamp"] <= now_ms or "timestamp" in original
        assert record == {"timestamp": record["timestamp"], **original, **place, "topic": "orders"}
    assert answer["positions"] == [
        {"partition": 0, "next_offset": 1, "end_offset": 1},
        {"partition": 1, "next_offset": 3, "end_offset": 3},
    ]
    # Lines are a seed, and a record that was read can be written as it is.
    _, headers, lines = control.raw("GET", RECORDS, None, {"Accept": "application/x-ndjson"})
    assert headers["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.splitlines()] == answer["records"]
    assert control.ask("POST", RECORDS, {"records": answer["records"]})[0] == 200
    assert len(control.broker.records("orders")) == 8


@pytest.mark.kafka(topics=["orders"])
def test_places_and_limits(control: Control) -> None:
    day_ms = 86_400_000
    now_ms = control.ask("GET", "/clock")[1]["now_ms"]
    originals = [{"value": str(n), "timestamp": now_ms - (9 - n) * day_ms} for n in range(10)]
    control.ask("POST", RECORDS, {"records": originals})
    assert values(control, "limit=2") == ["0", "1"]
    assert values(control, "offset=7") == ["7", "8", "9"]
    assert values(control, "tail=1") == ["9"]
    assert values(control, "since=-50h") == ["7", "8", "9"]
    assert values(control, f"since={now_ms + day_ms}") == []
    assert values(control, "offset=3&max_bytes=1") == ["3"]
    assert values(control, "format=base64&limit=1") == ["MA=="]
    assert values(control, "offset=10&wait_ms=1") == []


@pytest.mark.kafka(topics=["orders"])
def test_json_that_is_none_is_base64(control: Control) -> None:
    originals = [{"value": text} for text in ('{"a":1}', "null", "no JSON", '"text"')]
    control.ask("POST", RECORDS, {"records": [*originals, {"value": None}]})
    _, answer = control.ask("GET", f"{RECORDS}?format=json")
    views = [(record.get("value"), record.get("value_base64")) for record in answer["records"]]
    assert views == [
        ({"a": 1}, None),
        (None, "bnVsbA=="),
        (None, "bm8gSlNPTg=="),
        ("text", None),
        (None, None),
    ]


@pytest.mark.kafka(topics=["orders"])
def test_an_aborted_transaction_is_left_out(control: Control) -> None:
    settings = {"bootstrap.servers": control.broker.bootstrap, "log_level": 0, "linger.ms": 0}
    producer = Producer({**settings, "transactional.id": "t"})
    producer.init_transactions(60)
    for value in ("gone", "kept"):
        producer.begin_transaction()
        producer.produce("orders", value)
        assert producer.flush(60) == 0
        (producer.abort_transaction if value == "gone" else producer.commit_transaction)(60)
    assert values(control) == ["kept"]
    assert values(control, "isolation=read_uncommitted") == ["gone", "kept"]
    assert values(control, "tail=2") == ["kept"]  # a marker has an offset, too


@pytest.mark.parametrize(
    ("request_line", "body", "status", "subject"),
    [
        ("GET /topics/none/records", None, 404, "no topic 'none'"),
        (f"GET {RECORDS}?partition=2", None, 404, "has 2 partitions, there is no 2"),
        (f"GET {RECORDS}?offset=0", None, 400, "needs 'partition'"),
        (f"GET {RECORDS}?partition=0&offset=5", None, 400, "orders-0 has 0 to 0"),
        (f"GET {RECORDS}?tail=1&since=-1h", None, 400, "since and tail are given"),
        (f"GET {RECORDS}?since=soon", None, 400, "soon"),
        (f"GET {RECORDS}?limit=1001", None, 400, "query 'limit' is '1001'"),
        (f"GET {RECORDS}?format=avro", None, 400, "expected one of base64, json, registry, text"),
        (f"POST {RECORDS}", {"record": []}, 400, "field 'record' is not known"),
        (f"POST {RECORDS}", {"records": []}, 400, "a list of length from 1"),
        (f"POST {RECORDS}", {"records": [{"value": 1}, {"vaule": 1}]}, 400, "records:1: 'vaule'"),
        (f"POST {RECORDS}", {"records": [{"value": 1}, {"value": 1, "partition": 2}]}, 400, "n: 2"),
        (f"POST {RECORDS}", b"x" * (1 << 18 | 1), 413, "larger than 262144 bytes"),
        (f"POST {RECORDS}", {"records": ["x"]}, 400, "records:0: 'x'"),
        (f"POST {RECORDS}", b'{"record": [}', 400, "the body is not JSON"),
        (f"POST {RECORDS}", b"[]", 400, "the body is [], expected an object"),
        (f"POST {RECORDS}", b'{"records": [{"value": "\xee"}]}', 400, "records:0: it is not JSON"),
    ],
)
@pytest.mark.kafka(topics=["orders:2"])
def test_wrong_requests_write_nothing(
    control: Control, request_line: str, body: object, status: int, subject: str
) -> None:
    method, _, path = request_line.partition(" ")
    answered, sentence = control.ask(method, path, body)
    assert (answered, subject in sentence["error"]) == (status, True), sentence
    assert control.broker.records("orders") == []


@pytest.mark.kafka(topics=["orders"])
async def test_a_long_poll_ends_with_the_record(control: Control) -> None:
    polls = asyncio.gather(
        *(
            asyncio.to_thread(values, control, f"wait_ms=30000&at_least=2&isolation={level}")
            for level in ("read_committed", "read_uncommitted")
        )
    )
    partition = control.broker._node.app.partitions.find("orders", 0)
    assert partition is not None
    await eventually(lambda: len(partition.waiters or ()) == 2)
    for value in ("1", "2"):
        await asyncio.to_thread(control.ask, "POST", RECORDS, {"records": [{"value": value}]})
    assert await polls == [["1", "2"], ["1", "2"]]
    assert not partition.waiters


@pytest.mark.kafka(topics=["orders"])
async def test_waits_are_counted_and_end_with_their_client(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "WAITS_MAX", 1)
    target = f"GET {RECORDS}?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    api = control.api
    with socket.create_connection(("127.0.0.1", control.port), 60) as client:
        client.sendall(target.encode())
        await eventually(lambda: api.scope.waiting._count == 1)
        status, sentence = await asyncio.to_thread(control.ask, "GET", "/groups/g/ready")
        assert (status, sentence["error"]) == (429, "1 requests wait already: try again")
    await eventually(lambda: api.scope.waiting._count == 0)


@pytest.mark.kafka(topics=["orders"])
def test_many_records_give_way_to_others(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minibroker.broker.slices.SLICE_S", 0.0)
    raw = RawRecords(records=[Raw(b'{"value": "v"}')] * 50)

    async def write(_: object) -> int:
        turns = Turns()
        await records.TopicWriting(control.api.scope.nodes, "orders").run(raw)
        return turns.stop()

    assert control.broker.await_node(write) >= 50


def test_every_broker_of_a_process_reads_and_writes_every_partition() -> None:
    with Cluster(3, topics=["orders:3"]) as cluster:
        api = ControlApi(cluster.node(0), None, cluster._nodes)
        server = HttpServer(api.begin)
        port = cluster._await(server.listen("127.0.0.1", 0))
        broker: Any = cluster.broker(0)
        control = Control(broker, api, port)
        originals = [{"value": str(n), "partition": n} for n in range(3)]
        assert control.ask("POST", RECORDS, {"records": originals})[0] == 200
        assert values(control) == ["0", "1", "2"]
        cluster._await(server.close())


@pytest.mark.kafka(topics=["orders"], security="SASL_PLAINTEXT", users={"alice": "secret"})
def test_records_of_a_secured_broker_need_a_token(kafka_broker: Broker) -> None:
    for access, headers, reading, writing in (
        (Access(is_secured=lambda: True), {}, 403, 403),
        (
            Access("full", "read", is_secured=lambda: True),
            {"Authorization": "Bearer read"},
            200,
            403,
        ),
        (
            Access("full", "read", is_secured=lambda: True),
            {"Authorization": "Bearer full"},
            200,
            200,
        ),
    ):
        control, server = serve(kafka_broker, access)
        assert control.ask("GET", "/topics", None, headers)[0] == 200
        assert control.ask("GET", RECORDS, None, headers)[0] == reading
        body = {"records": [{"value": "v"}]}
        assert control.ask("POST", RECORDS, body, headers)[0] == writing
        kafka_broker.await_node(lambda _, server=server: server.close())
