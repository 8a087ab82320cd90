"""The client beside brokers of fifteen years, which minibroker passes for."""

from __future__ import annotations

import socket
import threading

import pytest

from minibroker.client import admin
from minibroker.client.client import Client
from minibroker.client.connection import BlockingConnection
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.settings import client_settings
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.testing import Broker

RELEASES = ("0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.11", "1.0", "2.3", "2.8", "3.9", "4.4")


@pytest.mark.parametrize("release", RELEASES)
def test_topics_and_offsets_of_any_release(release: str) -> None:
    """A broker before 0.10 closes the connection that asks for its versions."""
    with Broker(config={"minibroker.advertised.kafka.version": release}) as broker:
        client = Client(client_settings({"bootstrap.servers": broker.bootstrap}))
        broker.produce("t", [b"1", b"2", b"3"])
        place, missing = TopicPartition("t", 0), "missing"
        cluster = admin.describe(client, ["t", missing])
        assert cluster.topics["t"].partition_count == 1
        assert cluster.topics[missing].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert missing not in admin.describe(client).topics, "asking makes no topic"
        for time_ms, offset in ((-1, 3), (-2, 0)):
            offsets = admin.list_offsets(client, {place: time_ms}, is_committed=True)
            assert offsets.offsets == {place: offset}
        if release in ("0.8.2", "0.9.0", "0.10.0"):
            with pytest.raises(BrokerRefusedError, match="does not know CreateTopics"):
                admin.create_topic(client, "made", 2, {}, timeout_s=10)
        else:
            admin.create_topic(client, "made", 2, {"retention.ms": "5"}, timeout_s=10)
            assert admin.describe(client, ["made"]).topics["made"].partition_count == 2


def test_a_server_that_always_closes_is_no_old_broker() -> None:
    """It is asked for its versions twice, then what an old broker would answer, and no more."""
    accepted = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_all() -> None:
            for _ in range(3):
                connection, _ = server.accept()
                accepted.append(connection.recv(4096)[4:6])
                connection.close()

        closing = threading.Thread(target=close_all)
        closing.start()
        address = server.getsockname()[:2]
        settings = client_settings({"bootstrap.servers": "{}:{}".format(*address)})
        with pytest.raises(ConnectionResetError):
            BlockingConnection.open(settings, address)
        closing.join(10)
    assert accepted == [b"\x00\x12", b"\x00\x12", b"\x00\x02"]
