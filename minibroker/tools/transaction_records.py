"""`dump-log --transaction-log-decoder`: the records of `__transaction_state`.

Source: Kafka TransactionLog.formatRecordKeyAndValue. Differs: the partitions are in the order of
their names (Kafka: of their hashes).
"""

from typing import Final

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.protocol.stored.transaction_log import TransactionLogKey, TransactionLogValue
from minibroker.kafka.protocol.versioned import version_of
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import LogRecord

_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


def decode_transaction_record(record: LogRecord) -> Decoded:
    """Return the transactional id and its state. Raises CorruptionError, ProtocolError."""
    if record.key is None:
        raise CorruptionError(f"the record at offset {record.offset} has no key")
    version = version_of(record.key)
    first, last = TransactionLogKey.VERSIONS
    if not first <= version <= last:
        return Decoded(f"unknown::version={version}", None)
    key = TransactionLogKey.from_bytes(record.key)
    shown = f"transaction_metadata::transactionalId={key.transactional_id}"
    if record.value is None:
        return Decoded(shown, "<DELETE>")
    return Decoded(shown, _state(TransactionLogValue.from_bytes(record.value), record.offset))


def _state(value: TransactionLogValue, offset: int) -> str:
    if not 0 <= value.transaction_status < len(_STATES):
        raise CorruptionError(
            f"the record at offset {offset} has transaction state {value.transaction_status}, "
            f"expected 0 to {len(_STATES) - 1}"
        )
    partitions = sorted(
        (topic.topic, partition)
        for topic in value.transaction_partitions or ()
        for partition in topic.partition_ids
    )
    shown = ",".join(f"{topic}-{partition}" for topic, partition in partitions)
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={_STATES[value.transaction_status]},partitions=[{shown}],"
        f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
        f"txnTimeoutMs={value.transaction_timeout_ms}"
    )
