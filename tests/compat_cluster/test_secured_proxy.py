"""A proxy before three Apache Kafkas 3.9.1 with SASL_SSL: logins go through, or end here.

`make secure-move` runs it; other runs leave it out (`conftest.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from minibroker.testing import Proxy
from tests.compat_cluster.three_brokers import IDS, SETTINGS
from tests.support.certificates import authority_pem, broker_certificate, write_stores
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.peers import ZooKeeper

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="alice" password="secret" user_alice="secret";'
)
LISTENER = "listener.name.sasl_ssl"
COUNT = 300


@pytest.fixture
def secured(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[list[int]]:
    """Yield the ports of SASL_SSL of three Kafkas, which also use it among each other."""
    stores = write_stores(tmp_path / "stores", broker_certificate(), authority_pem())
    ports, peers = [], []
    for broker_id in IDS:
        listeners = {name: free_port() for name in ("PLAINTEXT", "SASL_SSL")}
        addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items())
        ports.append(listeners["SASL_SSL"])
        peers.append(
            KafkaPeer(
                "3.9.1",
                tmp_path / f"kafka-{broker_id}",
                zookeeper=f"{zookeeper.connect}/secured-proxy",
                settings={
                    **SETTINGS,
                    **stores,
                    "broker.id": str(broker_id),
                    "listeners": addresses,
                    "advertised.listeners": addresses,
                    "inter.broker.listener.name": "SASL_SSL",
                    "sasl.mechanism.inter.broker.protocol": "PLAIN",
                    f"{LISTENER}.sasl.enabled.mechanisms": "PLAIN",
                    f"{LISTENER}.plain.sasl.jaas.config": JAAS,
                    "min.insync.replicas": "2",
                },
                log_dir=tmp_path / f"data-{broker_id}",
                port=listeners["PLAINTEXT"],
            )
        )
    for peer in peers:
        peer.start()
    yield ports
    for peer in peers:
        peer.kill()


def write_and_read(proxy: Proxy, settings: dict[str, Any], group: str) -> None:
    """Write to the leaders of all partitions, and read everything as a group."""
    client = {**settings, "bootstrap.servers": proxy.bootstrap}
    admin = AdminClient(client)
    (future,) = admin.create_topics([NewTopic(group, 6, 3)]).values()
    future.result(60)
    producer = Producer({**client, "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce(group, str(number).encode(), partition=number % 6)
    assert producer.flush(120) == 0
    consumer = Consumer({**client, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([group])
    values = [message.value() for message in consumer.consume(COUNT, 120)]
    consumer.close()
    assert sorted(int(value or b"-1") for value in values) == list(range(COUNT))
    assert len(proxy.brokers) == 3
    assert proxy.events == []


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_brokers_are_reached_through_it(secured: list[int], tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text(authority_pem())
    tls = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(authority),
        "ssl.truststore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "",
    }
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "secret"}
    addresses = ",".join(f"127.0.0.1:{port}" for port in secured)
    with Proxy(addresses, tls) as proxy:
        write_and_read(proxy, {"security.protocol": "SASL_PLAINTEXT", **login}, "through")
        assert proxy.wait_for_requests("SaslAuthenticate", 3)
    with Proxy(addresses, {**tls, **login, "security.protocol": "SASL_SSL"}) as proxy:
        write_and_read(proxy, {}, "ended")
        moved = proxy.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=3)
        write_and_read(proxy, {}, "disturbed")
        assert moved.hits == 3
