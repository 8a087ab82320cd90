"""A broker whose logins stand in a JAAS file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer

from minibroker.broker.config.sources import from_environment
from minibroker.testing import Broker

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 180
FILE = """
KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin"
        password="admin-secret"
        user_admin="admin-secret"
        user_alice="alice-secret";
};
"""


def test_users_of_a_jaas_file_log_in(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(FILE)
    settings = {
        **from_environment({"KAFKA_OPTS": f"-Djava.security.auth.login.config={file}"}),
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    with Broker(config=settings) as broker:
        client: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
        }
        assert Producer(client).list_topics(timeout=SECONDS).brokers
        with pytest.raises(KafkaException):
            Producer({**client, "sasl.password": "wrong"}).list_topics(timeout=2)
