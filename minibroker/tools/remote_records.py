"""`dump-log --remote-log-metadata-decoder`: the records of `__remote_log_metadata`.

Kafka prints the Java object of such a record, and so does this module.

Source: Kafka RemoteLogMetadataSerde; toString of RemoteLogSegmentMetadata and its like.
"""

from typing import Any, Final

from minibroker.kafka.errors import ProtocolError
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import LogRecord
from minibroker.tools.record_schemas import Schema, read_framed

_PARTITION: Final = "topicIdPartition:{name:string id:uuid partition:int32}"
_SEGMENT: Final = "remoteLogSegmentId:{" + _PARTITION + " id:uuid}"
_FACTS: Final = (
    "startOffset:int64 endOffset:int64 brokerId:int32 maxTimestampMs:int64 eventTimestampMs:int64 "
    "segmentLeaderEpochs:[]{leaderEpoch:int32 offset:int64} segmentSizeInBytes:int32 "
    "customMetadata:bytes? remoteLogSegmentState:int8 txnIndexEmpty:bool#0"
)
SCHEMAS: Final = {
    0: Schema("RemoteLogSegmentMetadataRecord", f"{_SEGMENT} {_FACTS}"),
    1: Schema(
        "RemoteLogSegmentMetadataUpdateRecord",
        _SEGMENT + " brokerId:int32 eventTimestampMs:int64 customMetadata:bytes? "
        "remoteLogSegmentState:int8",
    ),
    2: Schema(
        "RemotePartitionDeleteMetadataRecord",
        _PARTITION + " brokerId:int32 eventTimestampMs:int64 remotePartitionDeleteState:int8",
    ),
    3: Schema("RemoteLogSegmentMetadataSnapshotRecord", f"segmentId:uuid {_FACTS}"),
}
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
        kind, _, content = read_framed(record.value, SCHEMAS)
        return Decoded(None, _SHOWN[kind](content))
    except ProtocolError as error:
        return Decoded(None, f"Error at offset {record.offset}, skipping. {error}")


def _object(name: str, **fields: object) -> str:
    inner = ", ".join(f"{field}={value}" for field, value in fields.items())
    return f"{name}{{{inner}}}"


def _segment(content: dict[str, Any]) -> str:
    start, end = content["startOffset"], content["endOffset"]
    if not 0 <= start <= end:
        raise ProtocolError(f"no segment begins at offset {start} and ends at {end}")
    return _object(
        "RemoteLogSegmentMetadata",
        remoteLogSegmentId=_segment_id(content),
        startOffset=start,
        endOffset=end,
        brokerId=content["brokerId"],
        maxTimestampMs=content["maxTimestampMs"],
        eventTimestampMs=content["eventTimestampMs"],
        **_last_facts(content),
    )


def _snapshot(content: dict[str, Any]) -> str:
    return _object(
        "RemoteLogSegmentMetadataSnapshot",
        segmentId=content["segmentId"],
        startOffset=content["startOffset"],
        endOffset=content["endOffset"],
        maxTimestampMs=content["maxTimestampMs"],
        **_last_facts(content),
    )


def _last_facts(content: dict[str, Any]) -> dict[str, object]:
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in content["segmentLeaderEpochs"]}
    if not epochs:
        raise ProtocolError("the segment has no leader epoch")
    shown = ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs))
    return {
        "segmentLeaderEpochs": f"{{{shown}}}",
        "segmentSizeInBytes": content["segmentSizeInBytes"],
        "customMetadata": _custom(content),
        "state": _state(_SEGMENT_STATES, content["remoteLogSegmentState"]),
        "txnIdxEmpty": "true" if content.get("txnIndexEmpty") else "false",
    }


def _update(content: dict[str, Any]) -> str:
    return _object(
        "RemoteLogSegmentMetadataUpdate",
        remoteLogSegmentId=_segment_id(content),
        customMetadata=_custom(content),
        state=_state(_SEGMENT_STATES, content["remoteLogSegmentState"]),
        eventTimestampMs=content["eventTimestampMs"],
        brokerId=content["brokerId"],
    )


def _partition_delete(content: dict[str, Any]) -> str:
    return _object(
        "RemotePartitionDeleteMetadata",
        topicPartition=_partition(content),
        state=_state(_PARTITION_STATES, content["remotePartitionDeleteState"]),
        eventTimestampMs=content["eventTimestampMs"],
        brokerId=content["brokerId"],
    )


_SHOWN: Final = {0: _segment, 1: _update, 2: _partition_delete, 3: _snapshot}


def _segment_id(content: dict[str, Any]) -> str:
    inner = content["remoteLogSegmentId"]
    return _object("RemoteLogSegmentId", topicIdPartition=_partition(inner), id=inner["id"])


def _partition(content: dict[str, Any]) -> str:
    inner = content["topicIdPartition"]
    return f"{inner['id']}:{inner['name']}-{inner['partition']}"


def _custom(content: dict[str, Any]) -> str:
    """Return opaque bytes in base64."""
    text = content["customMetadata"]
    if text is None:
        return "Optional.empty"
    size = len(text) // 4 * 3 - text.count("=")
    return f"Optional[CustomMetadata{{{size} bytes}}]"


def _state(names: tuple[str, ...], number: int) -> str:
    if not 0 <= number < len(names):
        raise ProtocolError(f"there is no state {number}")
    return names[number]
