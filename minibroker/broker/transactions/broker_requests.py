"""Requests of coordinators and partition leaders to other brokers, minibroker's or Apache Kafka's.

WriteTxnMarkers goes from a coordinator to the leaders of a transaction's partitions,
AddPartitionsToTxn from a leader to the coordinator of a batch (KIP-890), each in the newest version
that both brokers know (`broker.peers`). Every failure on the way becomes a code that asks for a
retry.

Source: Kafka TransactionMarkerChannelManager, AddPartitionsToTxnManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition, by_topic
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from minibroker.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.partitions.markers import EndOfTransaction
    from minibroker.broker.peers import PeerClient

    Codes = dict[TopicPartition, ErrorCode]

logger = logging.getLogger(__name__)

BROKERS_SINCE: Final = 4
"""First version of AddPartitionsToTxn that is for brokers: several transactions, verify only."""
_FAILURES: Final = (OSError, ProtocolError, KafkaError, ValueError)


class BrokerRequests:
    """Asks brokers by their id."""

    __slots__ = ("_client",)

    def __init__(self, client: PeerClient) -> None:
        self._client = client

    async def send_markers(
        self, broker_id: int, marker: EndOfTransaction, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return one code for each of `partitions`; raise only when cancelled."""
        codes = dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            answer = await self._client.call(
                broker_id, _marker_request(marker, partitions), WriteTxnMarkersResponse
            )
            return _codes_in_order(codes, _marker_codes(answer))
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
        """Return the coordinator's code for each of `partitions`; raise only when cancelled."""
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in by_topic(partitions).items()
            ],
        )
        codes = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        try:
            answer = await self._client.call(
                broker_id,
                AddPartitionsToTxnRequest(transactions=[transaction]),
                AddPartitionsToTxnResponse,
                oldest=BROKERS_SINCE,
            )
            if answer.error_code:
                return dict.fromkeys(partitions, ErrorCode(answer.error_code))
            return _codes_in_order(codes, _verified_codes(answer))
        except _FAILURES as error:
            logger.warning("broker %d does not verify: %r", broker_id, error)
            if isinstance(error, KafkaError) and verify_only:
                # Kafka before 3.5 coordinates and cannot be asked: nothing is verified, as there.
                return dict.fromkeys(partitions, ErrorCode.NONE)
            return codes


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
                transaction_version=marker.transaction_version,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in by_topic(partitions).items()
                ],
            )
        ]
    )


def _codes_in_order(codes: Codes, answered_codes: Codes) -> Codes:
    """Return `codes` with those of the answer; other partitions of the answer are left out."""
    return {name: answered_codes.get(name, code) for name, code in codes.items()}


def _verified_codes(answer: AddPartitionsToTxnResponse) -> Codes:
    return {
        TopicPartition(topic.name, result_of_partition.partition_index): ErrorCode(
            result_of_partition.partition_error_code
        )
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for result_of_partition in topic.results_by_partition
    }


def _marker_codes(answer: WriteTxnMarkersResponse) -> Codes:
    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
