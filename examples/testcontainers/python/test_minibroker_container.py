"""The container as a user has it, without Docker: see `local_engine`."""

from io import BytesIO

import pytest
from confluent_kafka import Producer
from minibroker_container import MinibrokerContainer
from minibroker_control.api.default import (
    add_fault,
    advance_clock,
    clock,
    load_seed,
    read_records,
    remove_fault,
)
from minibroker_control.models import Advance, FaultRule
from minibroker_control.types import File


@pytest.fixture
def kafka(engine):
    with MinibrokerContainer(topics=["orders:3", "names:1:cleanup.policy=compact"]) as kafka:
        yield kafka


def test_the_container_has_its_image_ports_variables_and_command(engine, kafka):
    created = engine.created
    assert created["image"] == "minibroker:latest"
    assert set(created["ports"]) == {"9092", "9644"}
    assert created["environment"].keys() == {
        "KAFKA_LISTENERS",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
        "KAFKA_INTER_BROKER_LISTENER_NAME",
        "KAFKA_CREATE_TOPICS",
        "KAFKA_CREATE_TOPICS_SEPARATOR",
        "MINIBROKER_CONTROL",
        "MINIBROKER_CONTROL_TOKEN",
    }
    assert created["command"][-1].endswith("exec /etc/kafka/minibroker-start.sh")


def test_the_start_script_advertises_the_published_port(engine, kafka):
    host_and_port = f"PLAINTEXT://{kafka.bootstrap},NETWORK://$(hostname):19092"
    assert f"export KAFKA_ADVERTISED_LISTENERS={host_and_port}\n" in engine.script
    assert engine.script.endswith("exec /etc/kafka/docker/run\n")


def test_other_containers_use_the_alias_of_the_network(engine):
    with MinibrokerContainer().with_network_aliases("kafka"):
        assert ",NETWORK://kafka:19092\n" in engine.script


def test_a_fault_meets_a_client(kafka):
    rule = FaultRule(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    fault = add_fault.sync(client=kafka.control, body=rule)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 10})
    delivered = []
    producer.produce(
        "orders", b"v", partition=0, on_delivery=lambda *report: delivered.append(report)
    )
    assert producer.flush(60) == 0
    ((error, message),) = delivered
    assert (error, message.offset()) == (None, 0)
    assert remove_fault.sync(fault.id, client=kafka.control).hits == 2


def test_the_clock_moves(kafka):
    before_ms = clock.sync(client=kafka.control).now_ms
    after_ms = advance_clock.sync(client=kafka.control, body=Advance(minutes=10)).now_ms
    assert (after_ms - before_ms) // 60_000 == 10


def test_a_seed_is_loaded(kafka):
    seed = File(BytesIO(b'{"topic": "orders", "value": "first", "partition": 0}\n'))
    loaded = load_seed.sync(client=kafka.control, body=seed)
    assert loaded.records.additional_properties == {"orders": 1}
    (record,) = read_records.sync("orders", client=kafka.control).records
    assert record.value == "first"
