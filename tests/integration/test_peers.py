"""The client between brokers asks Apache Kafka: versions agreed on, codes for each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.broker.transactions.broker_requests import BrokerRequests
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from tests.support.peer_clients import peer_client

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

MISSING = TopicPartition("gone", 0)


@pytest.mark.parametrize(("fixture", "newest_markers"), [("kafka_39", 1), ("kafka_44", 2)])
async def test_kafka_takes_markers_and_verifies(
    request: pytest.FixtureRequest, fixture: str, newest_markers: int
) -> None:
    kafka: KafkaPeer = request.getfixturevalue(fixture)
    async with peer_client({7: (kafka.host, kafka.port)}) as client:
        requests = BrokerRequests(client)
        marker = EndOfTransaction(5, 0, 0, is_commit=False, transaction_version=2)
        codes = await requests.send_markers(7, marker, [MISSING])
        assert codes == {MISSING: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        connection = client._peers[7].connection
        assert connection is not None
        assert connection._dialogue.versions[27][1] == newest_markers
        verified = await requests.add_partitions(7, "nobody", 5, 0, [MISSING], verify_only=True)
        assert verified == {MISSING: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert client._peers[7].connection is connection
