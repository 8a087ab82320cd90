"""`dump-log --remote-log-metadata-decoder`: the records of `__remote_log_metadata`.

Kafka prints the Java object of such a record, and so does this module.

Source: Kafka RemoteLogMetadataSerde; toString of RemoteLogSegmentMetadata and its like.
"""

from typing import Any, Final

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.ids import TopicId, topic_id_to_text
from minibroker.kafka.protocol.stored.remote_log_metadata import (
    RECORDS,
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataSnapshotRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    TopicIdPartitionEntry,
)
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import LogRecord
from minibroker.tools.metadata_records import read_framed

_SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES: Final = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)


def decode_remote_record(record: LogRecord) -> Decoded:
    """Return the value in the form of Kafka's `toString`; there are no keys."""
    try:
        message, _ = read_framed(record.value, RECORDS)
        return Decoded(None, _TO_TEXT[type(message)](message))
    except ProtocolError as error:
        return Decoded(None, f"Error at offset {record.offset}, skipping. {error}")


def _object(name: str, **fields: object) -> str:
    inner = ", ".join(f"{field}={value}" for field, value in fields.items())
    return f"{name}{{{inner}}}"


def _segment(record: RemoteLogSegmentMetadataRecord) -> str:
    start, end = record.start_offset, record.end_offset
    if not 0 <= start <= end:
        raise ProtocolError(f"no segment begins at offset {start} and ends at {end}")
    return _object(
        "RemoteLogSegmentMetadata",
        remoteLogSegmentId=_segment_id(record.remote_log_segment_id),
        startOffset=start,
        endOffset=end,
        brokerId=record.broker_id,
        maxTimestampMs=record.max_timestamp_ms,
        eventTimestampMs=record.event_timestamp_ms,
        **_last_facts(record),
    )


def _snapshot(record: RemoteLogSegmentMetadataSnapshotRecord) -> str:
    return _object(
        "RemoteLogSegmentMetadataSnapshot",
        segmentId=topic_id_to_text(TopicId(record.segment_id)),
        startOffset=record.start_offset,
        endOffset=record.end_offset,
        maxTimestampMs=record.max_timestamp_ms,
        **_last_facts(record),
    )


def _last_facts(
    record: RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataSnapshotRecord,
) -> dict[str, object]:
    epochs = {entry.leader_epoch: entry.offset for entry in record.segment_leader_epochs}
    if not epochs:
        raise ProtocolError("the segment has no leader epoch")
    epochs_text = ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs))
    return {
        "segmentLeaderEpochs": f"{{{epochs_text}}}",
        "segmentSizeInBytes": record.segment_size_in_bytes,
        "customMetadata": _custom(record.custom_metadata),
        "state": _state(_SEGMENT_STATES, record.remote_log_segment_state),
        "txnIdxEmpty": "true" if record.txn_index_empty else "false",
    }


def _update(record: RemoteLogSegmentMetadataUpdateRecord) -> str:
    return _object(
        "RemoteLogSegmentMetadataUpdate",
        remoteLogSegmentId=_segment_id(record.remote_log_segment_id),
        customMetadata=_custom(record.custom_metadata),
        state=_state(_SEGMENT_STATES, record.remote_log_segment_state),
        eventTimestampMs=record.event_timestamp_ms,
        brokerId=record.broker_id,
    )


def _partition_delete(record: RemotePartitionDeleteMetadataRecord) -> str:
    return _object(
        "RemotePartitionDeleteMetadata",
        topicPartition=_partition(record.topic_id_partition),
        state=_state(_PARTITION_STATES, record.remote_partition_delete_state),
        eventTimestampMs=record.event_timestamp_ms,
        brokerId=record.broker_id,
    )


_TO_TEXT: Final[dict[Any, Any]] = {
    RemoteLogSegmentMetadataRecord: _segment,
    RemoteLogSegmentMetadataUpdateRecord: _update,
    RemotePartitionDeleteMetadataRecord: _partition_delete,
    RemoteLogSegmentMetadataSnapshotRecord: _snapshot,
}
"""Class of a record → function that returns its text."""


def _segment_id(entry: RemoteLogSegmentIdEntry) -> str:
    return _object(
        "RemoteLogSegmentId",
        topicIdPartition=_partition(entry.topic_id_partition),
        id=topic_id_to_text(TopicId(entry.id)),
    )


def _partition(entry: TopicIdPartitionEntry) -> str:
    return f"{topic_id_to_text(TopicId(entry.id))}:{entry.name}-{entry.partition}"


def _custom(data: bytes | None) -> str:
    """Return the size of the plugin's bytes."""
    if data is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(names: tuple[str, ...], number: int) -> str:
    if not 0 <= number < len(names):
        raise ProtocolError(f"there is no state {number}")
    return names[number]
