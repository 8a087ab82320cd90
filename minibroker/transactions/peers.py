"""What coordinators and partition leaders ask of other brokers: minibroker's, or Apache Kafka's.

WriteTxnMarkers goes from a coordinator to the leaders of a transaction's partitions,
AddPartitionsToTxn from a leader to the coordinator of a batch (KIP-890). Both are rare here, as a
broker is usually alone, so every request has a connection of its own. Whatever goes wrong on the
way is a code that says: come again.

Versions: 1 and 4, which Kafka 3.9 and 4 have in common with the releases between 3.5 and 4.4.
Source: Kafka TransactionMarkerChannelManager, AddPartitionsToTxnManager.
"""

from __future__ import annotations

import asyncio
import logging
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import ProtocolError
from minibroker.ids import TopicPartition
from minibroker.protocol.header import response_header_version, write_request_header
from minibroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from minibroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from minibroker.protocol.primitives import Reader, Writer

if TYPE_CHECKING:
    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.image import Endpoint
    from minibroker.partitions.markers import EndOfTransaction

logger = logging.getLogger(__name__)

MARKERS_VERSION: Final = 1
ADD_PARTITIONS_VERSION: Final = 4
TIMEOUT_S: Final = 30.0
"""Kafka's request.timeout.ms of brokers."""
ANSWER_BYTES_MAX: Final = 16 << 20
CLIENT_ID: Final = "minibroker-transactions"
_SIZE: Final = Struct(">i")
_CORRELATION_ID: Final = 1
_FAILURES: Final = (OSError, TimeoutError, EOFError, ProtocolError, ValueError)


class BrokerRequests:
    """Asks brokers by their id."""

    __slots__ = ("_cluster", "_listener")

    def __init__(self, cluster: Cluster, listener: str) -> None:
        """`listener`: name of the listener that brokers use among each other."""
        self._cluster = cluster
        self._listener = listener

    async def send_markers(
        self, broker_id: int, marker: EndOfTransaction, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """One code for each of `partitions`; never raises but for cancellation."""
        codes = dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            answer = await self._call(
                broker_id,
                _marker_request(marker, partitions),
                MARKERS_VERSION,
                WriteTxnMarkersResponse,
            )
            return codes | _marker_codes(answer)
        except _FAILURES as error:
            logger.warning("broker %d does not take markers: %r", broker_id, error)
            return codes

    async def add_partitions(
        self,
        broker_id: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
        *,
        verify_only: bool,
    ) -> dict[TopicPartition, ErrorCode]:
        """The coordinator's code for each of `partitions`; never raises but for cancellation."""
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in _by_topic(partitions).items()
            ],
        )
        codes = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        try:
            answer = await self._call(
                broker_id,
                AddPartitionsToTxnRequest(transactions=[transaction]),
                ADD_PARTITIONS_VERSION,
                AddPartitionsToTxnResponse,
            )
            if answer.error_code:
                return dict.fromkeys(partitions, ErrorCode(answer.error_code))
            return codes | {
                TopicPartition(topic.name, found.partition_index): ErrorCode(
                    found.partition_error_code
                )
                for result in answer.results_by_transaction
                for topic in result.topic_results
                for found in topic.results_by_partition
            }
        except _FAILURES as error:
            logger.warning("broker %d does not verify: %r", broker_id, error)
            return codes

    async def _call(self, broker_id: int, request: Any, version: int, response: Any) -> Any:
        """Raises OSError, TimeoutError, EOFError, ProtocolError."""
        broker = self._cluster.image.brokers.get(broker_id)
        endpoint = broker.endpoint(self._listener) if broker is not None else None
        if endpoint is None:
            raise ConnectionError(f"broker {broker_id} has no listener {self._listener}")
        writer = Writer()
        write_request_header(writer, request.API_KEY, version, _CORRELATION_ID, CLIENT_ID)
        request.write(writer, version)
        async with asyncio.timeout(TIMEOUT_S):
            frame = await _exchange(endpoint, writer.to_bytes())
        position = 4 + response_header_version(request.API_KEY, version)
        return response.read(Reader(memoryview(frame), position), version)


async def _exchange(endpoint: Endpoint, body: bytes) -> bytes:
    """Send one request over a connection of its own, give back the answer without its size."""
    incoming, outgoing = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        outgoing.write(_SIZE.pack(len(body)) + body)
        (size,) = _SIZE.unpack(await incoming.readexactly(_SIZE.size))
        if not 4 <= size <= ANSWER_BYTES_MAX:
            raise ProtocolError(f"an answer of {size} bytes, expected 4 to {ANSWER_BYTES_MAX}")
        return await incoming.readexactly(size)
    finally:
        outgoing.close()


def _by_topic(partitions: list[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


def _marker_request(
    marker: EndOfTransaction, partitions: list[TopicPartition]
) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.is_commit,
                coordinator_epoch=marker.coordinator_epoch,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in _by_topic(partitions).items()
                ],
            )
        ]
    )


def _marker_codes(answer: WriteTxnMarkersResponse) -> dict[TopicPartition, ErrorCode]:
    """Raises ValueError for a code that Kafka does not have."""
    return {
        TopicPartition(topic.name, found.partition_index): ErrorCode(found.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for found in topic.partitions
    }
