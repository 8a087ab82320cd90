"""The registry under the control API, and values that are shown by its schemas."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from minibroker.control import schema_decoding
from minibroker.control.access import Access
from minibroker.control.messages import Response, Work
from minibroker.control.registry_view import RegistryView, ThreadSchemas
from minibroker.control.schema_decoding import ValueDecoder, decoder_of
from minibroker.testing import Broker
from tests.support.event_stream import EventStreamReader
from tests.unit.control.conftest import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.control.messages import HttpRequest
    from tests.unit.control.conftest import Control

PLACE = {"name": "Place", "type": "record", "fields": [{"name": "city", "type": "string"}]}
ORDER = {
    "name": "Order",
    "type": "record",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "to", "type": "Place"},
        {"name": "data", "type": "bytes"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6}},
    ],
}
CONTEXT = SerializationContext("orders", MessageField.VALUE)
JSON_HEADERS = {"Content-Type": "application/json"}


@pytest.fixture
def control() -> Iterator[Control]:
    """A broker with a registry, and its API."""
    with Broker(topics=["orders"], registry=True) as broker:
        served, server = serve(broker)
        served.api.scope.registry.begin = broker._registries[0].api.begin_within
        yield served
        broker.await_node(lambda _: server.close())


def test_the_registry_answers_under_the_control_api(control: Control) -> None:
    body = {"schema": json.dumps(PLACE)}
    path = "/registry/subjects/places-value/versions"
    status, _, text = control.raw("POST", path, body, JSON_HEADERS)
    assert (status, json.loads(text)) == (200, {"id": 1})
    assert control.ask("GET", "/registry/subjects") == (200, ["places-value"])
    assert control.ask("GET", "/registry/subjects/other/versions")[1]["error_code"] == 40401
    assert "schemas" in control.ask("GET", "/views")[1]["views"]


def test_the_registry_under_the_control_api_needs_its_token(control: Control) -> None:
    served, server = serve(control.broker, Access("full", "read"))
    served.api.scope.registry.begin = control.api.scope.registry.begin
    headers = {"Authorization": "Bearer read"}
    assert served.ask("GET", "/registry/subjects")[0] == 401
    assert served.ask("GET", "/registry/subjects", None, headers) == (200, [])
    body = {"schema": json.dumps(PLACE)}
    assert served.ask("POST", "/registry/subjects/a/versions", body, headers)[0] == 403
    full = {"Authorization": "Bearer full", **JSON_HEADERS}
    assert served.ask("POST", "/registry/subjects/a/versions", body, full)[0] == 200
    control.broker.await_node(lambda _: server.close())


def test_a_login_that_another_registry_refuses_is_no_login_of_the_caller(control: Control) -> None:
    """A page would ask its user for a token if this were a 401."""

    def refuses(_: HttpRequest) -> Work:
        async def run(_: bytearray) -> Response:
            return Response(401, b'{"error_code":401,"message":"Unauthorized"}')

        return Work(0, run)

    control.api.scope.registry.begin = refuses
    status, answer = control.ask("GET", "/registry/subjects")
    assert status == 502
    assert "start both with the same --registry-user" in answer["error"]
    control.broker.produce("orders", b"\x00\x00\x00\x00\x01\x02")
    status, answer = control.ask("GET", "/topics/orders/records?format=registry")
    assert status == 502
    assert "start both with the same --registry-user" in answer["error"]


def test_without_a_registry_there_is_none() -> None:
    with Broker() as broker:
        control, server = serve(broker)
        status, answer = control.ask("GET", "/registry/subjects")
        assert (status, answer["error"]) == (
            404,
            "no schema registry runs here: start one with --registry HOST:PORT",
        )
        assert "schemas" not in control.ask("GET", "/views")[1]["views"]
        broker.await_node(lambda _: server.close())


def test_values_are_shown_by_their_schemas(control: Control) -> None:
    order = {"id": 7, "to": {"city": "Oslo"}, "data": b"\xff", "price": Decimal(12)}
    with SchemaRegistryClient({"url": control.broker.registry_url}) as registry:
        registry.register_schema("place", Schema(json.dumps(PLACE), "AVRO"))
        schema = Schema(json.dumps(ORDER), "AVRO", [SchemaReference("Place", "place", 1)])
        value = AvroSerializer(registry, schema)(order, CONTEXT)
    values = [value, b"text", b'{"a": 1}', b"\x00\x00\x00\x00\x63xx"]
    for value in values:
        control.broker.produce("orders", value)
    views = control.ask("GET", "/topics/orders/records?format=registry")[1]["records"]
    assert views[0]["value"] == {"id": 7, "to": {"city": "Oslo"}, "data": "/w==", "price": "12"}
    assert (views[1]["value"], "schema_id" in views[1]) == ("text", False)
    assert views[2]["value"] == {"a": 1}
    assert (views[3]["schema_id"], "value" in views[3]) == (99, True)  # shown as what it is
    assert views[0]["schema_id"] == 2
    plain = control.ask("GET", "/topics/orders/records?format=json")[1]["records"]
    assert "value_base64" in plain[0]

    with EventStreamReader(control.port, "/live/records?topic=orders&format=registry") as stream:
        records = stream.next("records")["records"]
        assert records[0]["value"]["to"] == {"city": "Oslo"}


def test_a_value_of_json_schema_is_json() -> None:
    decoder_of_json = decoder_of("JSON", '{"type": "object"}', [])
    assert decoder_of_json is not None
    assert decoder_of_json.decode(b'{"a": [1]}') == {"a": [1]}
    with pytest.raises(ValueError, match="it is no JSON"):
        decoder_of_json.decode(b"{")


# Hostile values.


def decoder(schema: Any) -> ValueDecoder:
    new_decoder = decoder_of("AVRO", json.dumps(schema), [])
    assert new_decoder is not None
    return new_decoder


MANY = b"\xe0\xd4\x03"
"""A long of Avro: 30,000."""
MILLION_MILLIONS = b"\x80\x80\xc8\xa1\x97\xb4\x3a"
"""A long of Avro: 10^12."""


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        ({"type": "array", "items": "null"}, MANY, "more than"),
        ({"type": "array", "items": "null"}, MILLION_MILLIONS, "no Avro"),
        (
            {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
            MANY,
            "more than",
        ),
        ("bytes", MILLION_MILLIONS + b"x", "no Avro"),
        ("long", b"", "no Avro"),
        ({"type": "enum", "name": "N", "symbols": ["A"]}, b"\x08", "no Avro"),
        ({"type": "array", "items": "long"}, b"\x01", "no Avro"),
    ],
)
def test_a_value_that_asks_for_much_is_refused(schema: Any, payload: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decoder(schema).decode(payload)


def test_a_value_that_nests_without_end_is_refused() -> None:
    nested = {"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}
    with pytest.raises(ValueError, match=r"no Avro|more than"):
        decoder(nested).decode(b"\x02" * 100_000)


@pytest.mark.parametrize("text", ["{", '"nonsense"', "[]", "7", '{"type": "record"}'])
def test_a_schema_that_the_library_does_not_read_has_no_decoder(text: str) -> None:
    no_decoder = decoder_of("AVRO", text, [])
    assert no_decoder is None or text == "[]"
    assert decoder_of("PROTOBUF", text, []) is None


def test_a_value_of_another_schema_is_shown_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_decoding, "PARTS_MAX", 0)
    schemas = ThreadSchemas({1: decoder("long"), 2: None})
    assert schemas.decoded(b"\x00\x00\x00\x00\x01\x02") == (1, None)
    assert schemas.decoded(b"\x00\x00\x00\x00\x02\x02") == (2, None)
    assert schemas.decoded(b"\x00\x00\x00\x00\x03\x02") == (3, None)
    assert schemas.decoded(b"\x01\x00\x00\x00\x03\x02") == (None, None)
    assert schemas.decoded(b"\x00\xff\xff\xff\xff\x02") == (None, None)
    assert list(schemas.missing) == [3]
    assert not RegistryView().is_shown
