"""Kafka 3.9's own tools through TLS: they write and read, and replace the broker's certificate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Broker
from tests.golden.record_sslscan import RECORDED
from tests.support import java
from tests.support.certificates import authority_pem, broker_certificate, pem_of, tls_settings
from tests.support.kafka_tools import run_commands
from tests.support.scanning import KEYS, missing_scanner, scan, scanned_settings

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.java, pytest.mark.slow]
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
CONFIGS = "kafka.admin.ConfigCommand"


def test_java_writes_reads_and_replaces_the_certificate(tmp_path: Path) -> None:
    stores = [tmp_path / f"{number}.pem" for number in range(2)]
    for number, store in enumerate(stores):
        store.write_text(pem_of(broker_certificate(number)))
    trusted = tmp_path / "ca.pem"
    trusted.write_text(authority_pem(0) + authority_pem(1))
    settings = tls_settings()
    del settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"]
    config = {**settings, "ssl.keystore.location": str(stores[0])}
    client = tmp_path / "client.properties"
    client.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={trusted}\n"
    )
    with Broker(config=config, topics=["t"]) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        key = "listener.name.ssl.ssl.keystore.location"
        production, consumption, altered, described = run_commands(
            java.KAFKA_39,
            (
                PERFORMANCE, "--topic", "t", "--num-records", "500", "--record-size", "1000",
                "--throughput", "-1", "--producer.config", str(client),
                "--producer-props", f"bootstrap.servers={broker.bootstrap}",
            ),
            (
                CONSUMER_PERFORMANCE, *server, "--topic", "t", "--messages", "500",
                "--consumer.config", str(client),
            ),
            (
                CONFIGS, *server, "--command-config", str(client), "--alter",
                "--entity-type", "brokers", "--entity-name", "0",
                "--add-config", f"{key}={stores[1]}",
            ),
            (
                CONFIGS, *server, "--command-config", str(client), "--describe",
                "--entity-type", "brokers", "--entity-name", "0",
            ),
        )  # fmt: skip
        assert "500 records sent" in production.text, production
        assert consumption.failure is None, consumption
        assert altered.failure is None, altered
        assert key in described.text, described
        assert len(broker.records("t")) == 500


# A scanner of TLS finds at a listener what it finds at one of Apache Kafka 3.9.1, and no more.


KAFKA: dict[str, list[str]] = json.loads(RECORDED.read_text())


def test_a_scanner_finds_no_more_than_at_kafka(tmp_path: Path) -> None:
    reason = missing_scanner()
    if reason is not None:
        pytest.skip(reason)
    settings = {
        **scanned_settings(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0,EC://127.0.0.1:0,RSA://127.0.0.1:0",
    }
    with Broker(config=settings) as broker:
        findings_of = {key: set(scan(broker._node.app.ports[key])) for key in KEYS}
    for key, findings in findings_of.items():
        assert "protocol tls 1.3" in findings
        assert findings - set(KAFKA[key]) == set()
