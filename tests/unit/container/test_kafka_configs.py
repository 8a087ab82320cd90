"""`kafka-configs` of the image gives a user a SCRAM credential."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.container.kafka_configs import main
from minibroker.testing import Broker

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ["--alter", "--zookeeper", "localhost:2181", "--entity-type", "users"]
ALICE = [*WORDS, "--entity-name", "alice", "--add-config", "SCRAM-SHA-512=[password=secret]"]
TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
}


def test_a_user_logs_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listener = tmp_path / "listener"
    with Broker(config=TWO_LISTENERS) as broker:
        listener.write_text(f"{broker.bootstrap} PLAINTEXT")
        assert main(ALICE, str(listener)) == 0
        assert capsys.readouterr().out == "Completed updating config for user alice.\n"
        port = broker._node.app.ports["SASL"]
        login = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": "secret",
        }
        assert Producer(login).list_topics(timeout=60).brokers


@pytest.mark.parametrize(
    ("words", "line", "sentence"),
    [
        (ALICE[1:], "127.0.0.1:1 PLAINTEXT", "only --alter --entity-type users"),
        ([*ALICE[:3], "--entity-type", "topics"], "127.0.0.1:1 PLAINTEXT", "only --alter"),
        (ALICE, "127.0.0.1:1 SASL_SSL", "no listener of this broker is PLAINTEXT"),
        ([*ALICE[:-1], "SCRAM-SHA-512=[password=]"], "127.0.0.1:1", "password=… is missing"),
    ],
)
def test_commands_that_are_not_here(
    words: list[str], line: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "listener").write_text(line)
    assert main(words, str(tmp_path / "listener")) == 1
    told = capsys.readouterr().err
    assert told.startswith("kafka-configs: ")
    assert sentence in told
    assert "secret]" not in told.replace("SECRET]", "")
