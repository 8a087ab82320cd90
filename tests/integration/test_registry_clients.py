"""Serializers of real clients round trip through the schema registry and the broker."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from schema_registry.client import SchemaRegistryClient as PythonClient
from schema_registry.client.schema import AvroSchema, JsonSchema
from schema_registry.serializers import AvroMessageSerializer, JsonMessageSerializer

from minibroker.testing import Broker
from tests.support.build_files import BUILD, required
from tests.support.java import SPRING_REGISTRY, compiled, java_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]
NODE_CLIENT = ROOT / "tests/support/node/registry_client.js"
CONFLUENT_NODE_CLIENT = ROOT / "tests/support/node/confluent_registry_client.js"
NODE_MODULES = BUILD / "node"
GO_CLIENT = BUILD / "registry-client"

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
ORDER_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"],
}
ORDER_PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  int64 id = 1;\n}\n'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(registry=True) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[SchemaRegistryClient]:
    broker.reset()
    with SchemaRegistryClient({"url": broker.registry_url}) as client:
        yield client


def through_a_topic(broker: Broker, topic: str, value: bytes) -> bytes:
    """Return a value that was written to a topic and read from it."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value)
    assert producer.flush(SECONDS) == 0
    settings = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None, message.error()
        content = message.value()
        assert content is not None
        return bytes(content)
    finally:
        consumer.close()


def round_trip(broker: Broker, topic: str, serializer: Any, deserializer: Any, value: Any) -> Any:
    context = SerializationContext(topic, MessageField.VALUE)
    return deserializer(through_a_topic(broker, topic, serializer(value, context)), context)


def message_class() -> Any:
    """Return the class of a message whose file imports another one."""
    item = descriptor_pb2.FileDescriptorProto(name="shop/item.proto", package="shop")
    order = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop")
    order.dependency.append("shop/item.proto")
    item.syntax = order.syntax = "proto3"
    string, long = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, 3
    item.message_type.add(name="Item").field.add(name="name", number=1, type=string, label=1)
    fields = order.message_type.add(name="Order").field
    fields.add(name="id", number=1, type=long, label=1)
    fields.add(name="item", number=2, type=11, type_name=".shop.Item", label=1)
    pool = descriptor_pool.DescriptorPool()
    for file in (item, order):
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_avro_serializer_of_confluent_round_trips(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    serializer = AvroSerializer(client, json.dumps(ORDER))
    order = {"id": 7, "note": "soon"}
    with SchemaRegistryClient({"url": broker.registry_url}) as reader:
        assert round_trip(broker, "avro", serializer, AvroDeserializer(reader), order) == order
    assert client.get_subjects() == ["avro-value"]


def test_avro_serializer_of_confluent_uses_references(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    client.register_schema("order", Schema(json.dumps(ORDER), "AVRO"))
    bill = {"type": "record", "name": "Bill", "fields": [{"name": "order", "type": "shop.Order"}]}
    schema = Schema(json.dumps(bill), "AVRO", [SchemaReference("shop.Order", "order", 1)])
    serializer = AvroSerializer(client, schema)
    value = {"order": {"id": 1, "note": None}}
    with SchemaRegistryClient({"url": broker.registry_url}) as reader:
        assert round_trip(broker, "bills", serializer, AvroDeserializer(reader), value) == value


def test_client_of_confluent_uses_the_latest_version(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    client.register_schema("orders-value", Schema(json.dumps(ORDER), "AVRO"))
    serializer = AvroSerializer(
        client, None, conf={"auto.register.schemas": False, "use.latest.version": True}
    )
    order = {"id": 7, "note": None}
    assert round_trip(broker, "orders", serializer, AvroDeserializer(client), order) == order


def test_json_serializer_of_confluent_round_trips(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    serializer = JSONSerializer(json.dumps(ORDER_JSON), client)
    with SchemaRegistryClient({"url": broker.registry_url}) as reader:
        deserializer = JSONDeserializer(None, schema_registry_client=reader)
        order = {"id": 7, "note": "soon"}
        assert round_trip(broker, "json", serializer, deserializer, order) == order


def test_protobuf_serializer_of_confluent_round_trips(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    order_class = message_class()
    order = json_format.ParseDict({"id": 7, "item": {"name": "nail"}}, order_class())
    serializer = ProtobufSerializer(order_class, client)
    with SchemaRegistryClient({"url": broker.registry_url}) as reader:
        deserializer = ProtobufDeserializer(order_class, schema_registry_client=reader)
        assert round_trip(broker, "proto", serializer, deserializer, order) == order
    # The file that it imports is a subject of its own, and a reference.
    assert client.get_subjects() == ["proto-value", "shop/item.proto"]
    version = client.get_latest_version("proto-value")
    text = version.schema.schema_str
    assert text is not None
    assert text.startswith('syntax = "proto3";')
    assert [reference.name for reference in version.schema.references or ()] == ["shop/item.proto"]


def test_client_of_confluent_walks_the_whole_api(client: SchemaRegistryClient) -> None:
    first, second = Schema('"int"', "AVRO"), Schema('"string"', "AVRO")
    schema_id = client.register_schema("a", first)
    assert client.get_schema(schema_id).schema_str == '"int"'
    assert client.lookup_schema("a", first).version == 1
    assert client.test_compatibility("a", second) is False
    with pytest.raises(SchemaRegistryError) as refusal:
        client.register_schema("a", second)
    assert refusal.value.http_status_code == 409
    client.set_compatibility("a", "NONE")
    assert client.get_compatibility("a") == "NONE"
    assert client.register_schema("a", second) == schema_id + 1
    assert client.get_versions("a") == [1, 2]
    assert client.get_latest_version("a").version == 2
    assert client.get_subjects_by_schema_id(schema_id) == ["a"]
    assert [each.version for each in client.get_schema_versions(schema_id)] == [1]
    assert client.get_referenced_by("a", 1) == []
    assert client.update_mode("a", "READONLY") == "READONLY"
    assert client.get_mode("a") == "READONLY"
    client.delete_mode("a")
    assert client.get_global_mode() == "READWRITE"
    assert client.get_contexts() == ["."]
    assert client.delete_version("a", 2) == 2
    assert client.delete_subject("a") == [1]
    assert client.delete_subject("a", permanent=True) == [1, 2]


def test_python_schema_registry_client_round_trips(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    writer, reader = PythonClient(broker.registry_url), PythonClient(broker.registry_url)
    for topic, schema, serializer in (
        ("py-avro", AvroSchema(ORDER), AvroMessageSerializer),
        ("py-json", JsonSchema(ORDER_JSON), JsonMessageSerializer),
    ):
        subject, order = f"{topic}-value", {"id": 7, "note": "soon"}
        value = serializer(writer).encode_record_with_schema(subject, schema, order)
        assert serializer(reader).decode_message(through_a_topic(broker, topic, value)) == order
        version = reader.check_version(subject, schema)
        assert version is not None
        assert version.version == 1
        assert reader.test_compatibility(subject, schema)
        assert reader.get_versions(subject) == [1]
    assert writer.update_compatibility("NONE", "py-avro-value")
    assert reader.get_compatibility("py-avro-value") == "NONE"
    assert writer.delete_version("py-avro-value", 1) == 1
    assert writer.delete_subject("py-json-value") == [1]
    assert client.get_subjects() == []


def piped(broker: Broker, command: Sequence[str], **environment: str) -> list[str]:
    """Return the lines of a client, but for those that say `record TOPIC BASE64`: these records
    go through their topic and back to the client.
    """
    lines = []
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if not line.startswith("record "):
                    lines.append(line.strip())
                    continue
                _, topic, record = line.split()
                value = through_a_topic(broker, topic, base64.b64decode(record))
                process.stdin.write(f"{base64.b64encode(value).decode()}\n")
                process.stdin.flush()
            assert process.wait(SECONDS) == 0, lines
        finally:
            process.kill()
    return lines


@pytest.mark.skipif(shutil.which("node") is None, reason="not run: Node is not installed")
def test_client_of_confluent_for_node_round_trips_every_format(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    required(NODE_MODULES / ".done")
    command = ["node", str(CONFLUENT_NODE_CLIENT), broker.registry_url]
    lines = piped(broker, command, NODE_PATH=str(NODE_MODULES / "node_modules"))
    assert [json.loads(line) for line in lines] == [
        {"id": 7},
        {"id": 7},
        {"$typeName": "google.protobuf.Timestamp", "seconds": 7, "nanos": 0},
        ["js-avro-value", "js-json-value", "js-protobuf-value"],
    ]
    # It registers the descriptor in base64, and the registry keeps the text.
    text = client.get_latest_version("js-protobuf-value").schema.schema_str
    assert text is not None
    assert "message Timestamp {" in text


@pytest.mark.java
def test_client_of_spring_cloud_stream_round_trips(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    schema = json.dumps({**ORDER, "fields": ORDER["fields"][:1]}, separators=(",", ":"))
    classes = compiled("SpringRegistry", SPRING_REGISTRY)
    arguments = [broker.registry_url, schema]
    command = java_command(SPRING_REGISTRY, "SpringRegistry", *arguments, classes=classes)
    lines = piped(broker, command)
    assert lines == ["1", "1", schema, schema, "application/vnd.order.v1+avro", "7"]
    assert client.get_subjects() == ["order"]


@pytest.mark.skipif(shutil.which("node") is None, reason="not run: Node is not installed")
def test_registry_of_kafkajs_round_trips_every_format(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    required(NODE_MODULES / ".done")
    schemas = {"AVRO": json.dumps(ORDER), "JSON": json.dumps(ORDER_JSON), "PROTOBUF": ORDER_PROTO}
    types = client.get_schema_types()
    cases = [
        {
            "type": kind,
            "schema": schema,
            "subject": f"js-{kind}",
            "topic": f"js-{kind}",
            "value": {"id": 7},
        }
        for kind, schema in schemas.items()
        if kind in types
    ]
    done = subprocess.run(
        ["node", str(NODE_CLIENT), broker.registry_url, broker.bootstrap],
        input=json.dumps(cases),
        env={**os.environ, "NODE_PATH": str(NODE_MODULES / "node_modules")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get("error") for answer in answers] == [None] * len(cases), done.stdout
    for case, answer in zip(cases, answers, strict=True):
        assert answer["id"] == answer["latest"], case
        assert str(answer["value"]["id"]) == "7", case


@pytest.mark.skipif(
    not GO_CLIENT.exists() and shutil.which("go") is None, reason="not run: Go is not installed"
)
def test_registry_client_of_franz_go_walks_the_whole_api(
    broker: Broker, client: SchemaRegistryClient
) -> None:
    del client  # it empties the registry
    done = subprocess.run(
        [str(required(GO_CLIENT)), broker.registry_url, broker.bootstrap, "go"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    schema = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"created": {"id": 1, "version": 1}},
        {"read": {"schema": schema, "value": 7}},
        {"compatible": False},
        {"refused": 409},
        {"level": "NONE"},
        {"level": "NONE"},
        {"found": 2},
        {"versions": [1, 2]},
        {"usages": 1},
        {"subjects": ["go-value"]},
        {"mode": "READWRITE"},
        {"types": True},
        {"reset": "go-value"},
        {"deleted": [1, 2]},
        {"deleted": [1, 2]},
        {"refused": 40403},
    ]
