"""`TransactionMetadata` ↔ the records of `__transaction_state`.

Key: version 0, the transactional id. Value: version 0, or 1 from `transaction.version` 1 on, which
adds tagged fields (previous and next producer id, the client's version). A null value: the id has
expired. Kafka 2.0 and later read version 0, Kafka 3.5 and later both.

Source: Kafka TransactionLog, TransactionLogKey, TransactionLogValue; KIP-915, KIP-890.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.transactions.state import EMPTY, TransactionMetadata, TransactionState
from minibroker.kafka.errors import CorruptionError, ProtocolError
from minibroker.kafka.ids import TopicPartition, by_topic
from minibroker.kafka.protocol.stored.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from minibroker.kafka.protocol.versioned import version_of

if TYPE_CHECKING:
    from minibroker.kafka.protocol.primitives import Buffer


def encode_key(transactional_id: str) -> bytes:
    """Return the key of everything that is stored for this id."""
    return TransactionLogKey(transactional_id=transactional_id).to_bytes(0)


def encode_value(metadata: TransactionMetadata, broker_version: int) -> bytes:
    """Return the value; `broker_version` is the cluster's `transaction.version`.

    Version 0 has no room for what the second protocol adds. It is left out: after a restart the id
    goes on as one of the first protocol, with the epochs it has. (Kafka fails to write the state of
    an id that a client used with the second protocol before the cluster's version was taken back.)
    """
    version = 1 if broker_version >= 1 else 0
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=int(metadata.state),
        transaction_partitions=None if metadata.state == EMPTY else _partitions_by_topic(metadata),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if version >= 1:
        value.client_transaction_version = metadata.client_version
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
    return value.to_bytes(version)


def _partitions_by_topic(metadata: TransactionMetadata) -> list[PartitionsSchema]:
    """Return the partitions by topic, both in order, so that the same state is the same bytes."""
    topics = by_topic(sorted(metadata.partitions))
    return [PartitionsSchema(topic=name, partition_ids=ids) for name, ids in topics.items()]


def decode(
    key: Buffer | None, value: Buffer | None
) -> tuple[str, TransactionMetadata | None] | None:
    """Return the transactional id and its state, which is None for a tombstone.

    Returns None for a record of a kind that no release up to Kafka 4.4 writes: the caller passes
    over it and warns, as Kafka does.

    Raises CorruptionError.
    """
    try:
        if key is None:
            raise CorruptionError("record of __transaction_state without a key")
        if version_of(key) != 0:
            return None
        transactional_id = TransactionLogKey.from_bytes(key).transactional_id
        if value is None:
            return transactional_id, None
        if not 0 <= version_of(value) <= TransactionLogValue.VERSIONS[1]:
            return None
        log_value = TransactionLogValue.from_bytes(value)
        state = TransactionState(log_value.transaction_status)
    except (ProtocolError, ValueError) as error:
        raise CorruptionError(f"record of __transaction_state: {error}") from error
    partitions = frozenset(
        TopicPartition(topic.topic, index)
        for topic in log_value.transaction_partitions or ()
        for index in topic.partition_ids
    )
    return transactional_id, TransactionMetadata(
        transactional_id,
        log_value.producer_id,
        log_value.producer_epoch,
        previous_producer_id=log_value.previous_producer_id,
        next_producer_id=log_value.next_producer_id,
        timeout_ms=log_value.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        start_ms=log_value.transaction_start_timestamp_ms,
        last_update_ms=log_value.transaction_last_update_timestamp_ms,
        client_version=log_value.client_transaction_version,
    )
