"""Records the golden files of `tests/golden/wire`: frames of Apache Kafka and real clients.

    python -m tests.golden.record_wire

Starts Kafka 3.9.1 (with ZooKeeper) and 4.4.0 from `build/jars` behind a recording proxy.
confluent-kafka and kafka-python produce and consume through it; then every API that the broker
advertises is asked in every version. Needs Java; takes about three minutes. Ids and times change
with every run.
"""

from __future__ import annotations

import json
import socket
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, PRODUCE, load_messages
from minibroker.kafka.protocol.header import parse_request_header, write_request_header
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.codec import codec_of
from tests.support.connection import receive_exactly
from tests.support.peers import KafkaPeer, ZooKeeper
from tests.support.recording_proxy import Recorded, RecordingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = Path(__file__).parent / "wire"
TOPIC = "golden"
PER_VERSION_MAX = 2
FRAME_BYTES_MAX = 6000
TIMEOUT_SECONDS = 10.0
UNKNOWN_VERSION = 99

RECORDS = build_batch([Record(0, 1_700_000_000_000, b"key", b"value", (("header", b"text"),))])
NOT_ASKED = {"produce", "fetch", "sasl_authenticate"}
"""APIs left out:

Produce and Fetch come in a fixed order; SaslAuthenticate closes the connection.
"""

FIELDS: dict[str, dict[str, Any]] = {
    "metadata": {"topics": [{"name": TOPIC}]},
    "list_offsets": {
        "replica_id": -1,
        "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    },
    "find_coordinator": {"key": "rdk", "coordinator_keys": ["rdk"]},
    "offset_fetch": {
        "group_id": "rdk",
        "topics": [{"name": TOPIC, "partition_indexes": [0]}],
        "groups": [{"group_id": "rdk", "topics": None}],
    },
    "create_topics": {
        "timeout_ms": 5000,
        "topics": [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}],
    },
    "delete_topics": {"timeout_ms": 5000, "topic_names": ["not-there"], "topics": []},
    "describe_configs": {
        "resources": [
            {"resource_type": 2, "resource_name": TOPIC, "configuration_keys": ["retention.ms"]}
        ]
    },
    "describe_log_dirs": {"topics": [{"topic": TOPIC, "partitions": [0]}]},
    "offset_for_leader_epoch": {
        "replica_id": -1,
        "topics": [{"topic": TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
    },
    "init_producer_id": {"transactional_id": None, "transaction_timeout_ms": 60000},
    "api_versions": {"client_software_name": "golden", "client_software_version": "1.0"},
    "describe_groups": {"groups": ["rdk"]},
    "unregister_broker": {"broker_id": 77},
    "unregister_controller": {"controller_id": 77},
    "describe_topic_partitions": {"topics": [{"name": TOPIC}]},
}


def main() -> None:
    """Record both brokers."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        zookeeper = ZooKeeper(directory / "zookeeper")
        zookeeper.start()
        try:
            _record("3.9.1", directory, zookeeper.connect)
        finally:
            zookeeper.stop()
        _record("4.4.0", directory, None)


def _record(version: str, directory: Path, zookeeper: str | None) -> None:
    proxy = RecordingProxy(_needs_answer)
    settings = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
    if zookeeper is None:
        settings["unstable.api.versions.enable"] = "true"
    kafka = KafkaPeer(version, directory / version, zookeeper=zookeeper, settings=settings)
    proxy.target_port = kafka.port
    try:
        kafka.start()
        rows = []
        for client, play in (("confluent-kafka", _librdkafka), ("kafka-python", _kafka_python)):
            proxy.take()
            play(proxy.address)
            rows += [_row(client, exchange) for exchange in _few_of_each(proxy.take())]
        rows += [_row("raw", exchange) for exchange in _ask_everything(kafka.port)]
    finally:
        kafka.kill()
        proxy.close()
    rows = [row for row in rows if len(row["request"] + (row["answer"] or "")) < FRAME_BYTES_MAX]
    text = ",\n".join(json.dumps(row) for row in rows)
    (TARGET / f"kafka-{version}.json").write_text(f"[\n{text}\n]\n")


def _needs_answer(frame: bytes) -> bool:
    """Return whether a request has an answer: only Produce with acks = 0 has none."""
    key, version = struct.unpack_from(">hh", frame)
    if key != PRODUCE:
        return True
    position = parse_request_header(frame)[4]
    return bool(load_messages(key)[0].read(Reader(frame, position), version).acks)


def _ask_everything(port: int) -> Iterator[Recorded]:
    """Yield every advertised API in every version, each on a connection of its own."""
    first = _ask(port, "api_versions", 3, FIELDS["api_versions"])
    assert first is not None
    assert first.answer is not None
    answer = load_messages(API_VERSIONS)[1].read(Reader(first.answer, 4), 3)
    ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    body = Writer()
    write_request_header(body, API_VERSIONS, UNKNOWN_VERSION, 7, "golden")
    yield from _present(_exchange(port, body.to_bytes()))
    for key, (low, high) in sorted(ranges.items()):
        if key not in APIS or APIS[key].module in NOT_ASKED:
            continue
        for version in range(low, min(high, APIS[key].max_version) + 1):
            name = APIS[key].module
            yield from _present(_ask(port, name, version, FIELDS.get(name, {})))
    topic_id = _topic_id(port)
    for version in range(max(ranges[0][0], 3), ranges[0][1] + 1):
        yield from _present(_ask(port, "produce", version, _produce_fields(version, topic_id)))
    for version in range(ranges[1][0], ranges[1][1] + 1):
        yield from _present(_ask(port, "fetch", version, _fetch_fields(version, topic_id)))


def _present(exchange: Recorded | None) -> list[Recorded]:
    return [] if exchange is None else [exchange]


def _ask(port: int, name: str, version: int, fields: dict[str, Any]) -> Recorded | None:
    codec = codec_of(name)
    plain_fields = {key: value for key, value in fields.items() if key in codec.request.__slots__}
    writer = Writer()
    write_request_header(writer, codec.api_key, version, 7, "golden")
    try:
        body = codec.encode_request(version, plain_fields)
    except ValueError:  # this version has no place for one of the fields
        body = codec.encode_request(version, {})
    return _exchange(port, writer.to_bytes() + body)


def _exchange(port: int, request: bytes) -> Recorded | None:
    """Send a request; return None when the broker closed the connection, or kept silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        try:
            (size,) = struct.unpack(">i", receive_exactly(connection, 4))
            return Recorded(request, receive_exactly(connection, size))
        except (ConnectionError, TimeoutError) as silence:
            print("no answer:", struct.unpack_from(">hh", request), silence)
            return None


def _topic_id(port: int) -> bytes:
    exchange = _ask(port, "metadata", 12, FIELDS["metadata"])
    assert exchange is not None
    assert exchange.answer is not None
    answer = load_messages(3)[1].read(Reader(exchange.answer, 5), 12)
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


def _topic(version: int, first_by_id: int, name: str, topic_id: bytes) -> dict[str, Any]:
    return {"topic_id": topic_id} if version >= first_by_id else {name: TOPIC}


def _produce_fields(version: int, topic_id: bytes) -> dict[str, Any]:
    topic = _topic(version, 13, "name", topic_id)
    topic["partition_data"] = [{"index": 0, "records": bytes(RECORDS)}]
    return {"acks": -1, "timeout_ms": 5000, "topic_data": [topic]}


def _fetch_fields(version: int, topic_id: bytes) -> dict[str, Any]:
    topic = _topic(version, 13, "topic", topic_id)
    topic["partitions"] = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 300}]
    return {"max_wait_ms": 100, "min_bytes": 1, "topics": [topic]}


def _librdkafka(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number in range(3):
        producer.produce(TOPIC, f"value {number}".encode(), key=b"key")
    producer.flush(TIMEOUT_SECONDS)
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "rdk", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    consumer.consume(3, TIMEOUT_SECONDS)
    consumer.commit(asynchronous=False)
    consumer.close()


def _kafka_python(address: str) -> None:
    producer = KafkaProducer(bootstrap_servers=address)
    for number in range(3):
        producer.send(TOPIC, f"value {number}".encode(), key=b"key")
    producer.flush(TIMEOUT_SECONDS)
    producer.close()
    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=address, group_id="kafka-python", auto_offset_reset="earliest"
    )
    consumer.poll(timeout_ms=10_000, max_records=3)
    consumer.commit()
    consumer.close()


def _few_of_each(exchanges: list[Recorded]) -> Iterator[Recorded]:
    """Yield two of every API and version, without requests between brokers."""
    counts: dict[bytes, int] = {}
    for exchange in exchanges:
        kind = exchange.request[:4]
        counts[kind] = counts.get(kind, 0) + 1
        (key,) = struct.unpack_from(">h", kind)
        if key in APIS and counts[kind] <= PER_VERSION_MAX:
            yield exchange


def _row(client: str, exchange: Recorded) -> dict[str, Any]:
    key, version = struct.unpack_from(">hh", exchange.request)
    answer = None if exchange.answer is None else exchange.answer.hex()
    name = APIS[key].module
    return {
        "client": client,
        "api": name,
        "version": version,
        "request": exchange.request.hex(),
        "answer": answer,
    }


if __name__ == "__main__":
    main()
