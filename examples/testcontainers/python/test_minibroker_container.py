"""The container as a user has it, without Docker: see `local_engine`."""

from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Producer
from minibroker_container import MinibrokerContainer


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


def test_a_fault_over_the_control_api_meets_a_client(kafka):
    rule = b'{"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2}'
    headers = {
        "Authorization": f"Bearer {kafka.control_token}",
        "Content-Type": "application/json",
    }
    with urlopen(Request(f"{kafka.control_address}/faults", rule, headers)) as answer:
        assert answer.status == 201
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 10})
    delivered = []
    producer.produce(
        "orders", b"v", partition=0, on_delivery=lambda *report: delivered.append(report)
    )
    assert producer.flush(60) == 0
    ((error, message),) = delivered
    assert (error, message.offset()) == (None, 0)
