"""The schema registry in a cluster with Apache Kafka 3.9.1: `_schemas` has a replica on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Minibroker
from tests.support.clients import confluent_consume
from tests.support.processes import free_port
from tests.support.registry_calls import RegistryAnswer, ask, posted, register

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.peers import KafkaPeer, ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_schemas_are_kept_by_kafka_while_the_broker_is_away(
    tmp_path: Path, zookeeper: ZooKeeper, new_kafka: Callable[[str, Path], KafkaPeer]
) -> None:
    kafka = new_kafka("registry", tmp_path / "kafka")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    broker = Minibroker(
        tmp_path / "data",
        tmp_path / "log",
        zookeeper=f"{zookeeper.connect}/registry",
        settings={"broker.id": "7"},
        arguments=["--registry", f"127.0.0.1:{port}"],
    )
    answers: list[RegistryAnswer] = []

    def registers(schema: str) -> bool:
        answers.append(ask(url, "POST", "/subjects/a/versions", posted(schema)))
        return answers[-1].status == 200

    broker.start()
    try:
        assert broker.process is not None
        broker.process.wait_until(lambda: registers('"int"'), 60, "broker 7 leads _schemas")
        assert register(url, "a", '"long"') == 2
        broker.stop()
        assert len(confluent_consume(kafka.address, "_schemas", 2)) == 2
        broker.start()
        assert ask(url, "GET", "/subjects/a/versions").body == [1, 2]
        # Kafka leads now, and has no registry: the broker asks to lead again, once it is in sync.
        broker.process.wait_until(lambda: registers('"float"'), 60, "broker 7 leads again")
        assert answers[-1].body == {"id": 3}
    finally:
        broker.kill()
