"""Kafka's ConfigCommand sets, lists and deletes quotas: over a broker, and through ZooKeeper."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support import java
from tests.support.broker import Minibroker
from tests.support.kafka_tools import run_commands, tool_session
from tests.support.peers import KafkaPeer
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.peers import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]

CONFIGS = "kafka.admin.ConfigCommand"
ALICE = ("--entity-type", "users", "--entity-name", "al ice")
A_CLIENT = ("--entity-type", "clients", "--entity-name", "c 1")
EVERY_USER = ("--entity-type", "users", "--entity-default")
EVERY_CLIENT = ("--entity-type", "clients", "--entity-default")
LOCALHOST = ("--entity-type", "ips", "--entity-name", "localhost")
EVERY_IP = ("--entity-type", "ips", "--entity-default")
SHA_256, SHA_512 = 1, 2


def configs(broker: KafkaPeer, *arguments: str) -> str:
    """Return the output of the tool."""
    bootstrap = ("--bootstrap-server", broker.address)
    return java.run_java(java.KAFKA_39, CONFIGS, *bootstrap, *arguments)


def test_config_command_sets_lists_and_deletes(new_broker: Callable[..., Minibroker]) -> None:
    """Users, client ids, both together, addresses, and the default of each."""
    entities = [
        (ALICE, "producer_byte_rate=1024,request_percentage=200", "request_percentage=200.0"),
        (A_CLIENT, "consumer_byte_rate=2048", "client-id 'c 1' are consumer_byte_rate=2048.0"),
        (ALICE + A_CLIENT, "controller_mutation_rate=2.5", "controller_mutation_rate=2.5"),
        (EVERY_USER, "producer_byte_rate=1000000000", "default user-principal are producer_byte"),
        (EVERY_CLIENT, "consumer_byte_rate=1000000000", "default client-id are consumer_byte_ra"),
        (LOCALHOST, "connection_creation_rate=1000", "ip 'localhost' are connection_creation_r"),
        (EVERY_IP, "connection_creation_rate=2000", "the default ip are connection_creation_rat"),
    ]
    base = (CONFIGS, "--bootstrap-server", new_broker().address)
    types = (("users",), ("clients",), ("users", "clients"), ("ips",))
    describe = [
        (
            *base,
            "--describe",
            *(word for entity_type in kind for word in ("--entity-type", entity_type)),
        )
        for kind in types
    ]
    sets = [(*base, "--alter", "--add-config", config, *entity) for entity, config, _ in entities]
    deletions = []
    for entity, config, _ in entities:
        keys = ",".join(pair.partition("=")[0] for pair in config.split(","))
        deletions.append((*base, "--alter", "--delete-config", keys, *entity))
    outcomes = run_commands(java.KAFKA_39, *sets, *describe, *deletions, *describe)
    assert [outcome.failure for outcome in outcomes] == [None] * len(outcomes)
    old_text = "\n".join(outcome.text for outcome in outcomes[len(sets) : len(sets) + len(types)])
    after = "\n".join(outcome.text for outcome in outcomes[-len(types) :])
    for _, _, line in entities:
        assert line in old_text
        assert line not in after


def test_config_command_in_zookeeper_mode(
    zookeeper: ZooKeeper, new_broker: Callable[..., Minibroker]
) -> None:
    """minibroker follows the tool's changes in ZooKeeper, and the tool reads minibroker's.

    In this mode Kafka 3.9 alters only credentials of users; it lists quotas.
    """
    connect = f"{zookeeper.connect}/config-command"
    ours = new_broker(zookeeper=connect)
    broker = (CONFIGS, "--bootstrap-server", ours.address)
    tree = (CONFIGS, "--zookeeper", connect)
    scram = "SCRAM-SHA-512=[iterations=8192,password=secret]"
    with tool_session(java.KAFKA_39) as run:
        for command in (
            (*broker, "--alter", "--add-config", "producer_byte_rate=1024", *ALICE),
            (*broker, "--alter", "--add-config", "SCRAM-SHA-256=[password=secret]", *ALICE),
            (*broker, "--alter", "--add-config", "consumer_byte_rate=2048", *EVERY_USER),
            (*tree, "--alter", "--add-config", scram, *ALICE),
        ):
            assert run(*command).failure is None
        in_tree = run(*tree, "--describe", *ALICE)
        every_user = run(*tree, "--describe", "--entity-type", "users")
        wait_until(lambda: mechanisms_of_alice(ours) == [SHA_256, SHA_512], "it is followed")
        described = run(*broker, "--describe", *ALICE)
        deleted = run(*tree, "--alter", "--delete-config", "SCRAM-SHA-256", *ALICE)
        wait_until(lambda: mechanisms_of_alice(ours) == [SHA_512], "it is followed")
        after = run(*broker, "--describe", *ALICE)
        refused = run(*tree, "--alter", "--add-config", "producer_byte_rate=1", *ALICE)
        no_user = run(*tree, "--describe", *A_CLIENT)
    good = (in_tree, every_user, described, deleted, after)
    assert [outcome.failure for outcome in good] == [None] * len(good)
    assert refused.failure  # the tool's own refusals
    assert no_user.failure
    assert "producer_byte_rate=1024" in in_tree.text
    assert "SCRAM-SHA-256=salt=" in in_tree.text
    assert "consumer_byte_rate=2048" in every_user.text
    assert "producer_byte_rate=1024.0" in described.text
    assert "SCRAM-SHA-256=iterations=4096" in described.text
    assert "SCRAM-SHA-512=iterations=8192" in described.text
    assert "SCRAM-SHA-256" not in after.text


def mechanisms_of_alice(broker: Minibroker) -> list[int]:
    """Return the mechanisms of the credentials that the broker itself knows."""
    with WireClient(broker.host, broker.port) as client:
        answer = client.call("describe_user_scram_credentials", 0, users=[{"name": "al ice"}])
    (user,) = answer["results"]
    return sorted(info["mechanism"] for info in user["credential_infos"])


async def test_quotas_set_through_kafka_hold_on_minibroker(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """Kafka's tool sets them at Kafka; minibroker on the same ZooKeeper follows."""
    connect = f"{zookeeper.connect}/quotas"
    kafka = KafkaPeer("3.9.1", tmp_path / "kafka", zookeeper=connect)
    await asyncio.to_thread(kafka.start)
    ours = Minibroker(
        tmp_path / "data", tmp_path / "log", zookeeper=connect, settings={"broker.id": "5"}
    )
    try:
        await asyncio.to_thread(ours.start)
        await asyncio.to_thread(
            configs, kafka, "--alter", "--add-config", "request_percentage=0.0001",
            "--entity-type", "users", "--entity-default",
        )  # fmt: skip
        await asyncio.to_thread(wait_until, lambda: throttle_ms(ours) != 0, "it hears of them")
        assert await asyncio.to_thread(throttle_ms, ours) == 1000
    finally:
        ours.kill()
        await asyncio.to_thread(kafka.kill)


def throttle_ms(broker: Minibroker) -> int:
    """Return how long a client has to wait after one small request."""
    with WireClient(broker.host, broker.port, client_id="any") as client:
        return int(client.call("api_versions", 3)["throttle_time_ms"])
