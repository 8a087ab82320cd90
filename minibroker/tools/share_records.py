"""`dump-log --share-group-state-decoder`: the records of `__share_group_state`.

The number in front of a key says whether it is a snapshot of a share-partition or an update of one.

Source: Kafka DumpLogSegments.ShareGroupStateMessageParser, ShareCoordinatorRecordSerde.
"""

from typing import Final

from minibroker.errors import CorruptionError, ProtocolError
from minibroker.protocol.primitives import Reader
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import LogRecord
from minibroker.tools.record_schemas import Schema, line_of

_KEY: Final = "groupId:string topicId:uuid partition:int32"
_BATCHES: Final = (
    "deliveryCompleteCount:int32#0=-1 {}"
    "stateBatches:[]{{firstOffset:int64 lastOffset:int64 deliveryState:int8 deliveryCount:int16}}"
)
KINDS: Final = {
    0: (
        Schema("ShareSnapshotKey", _KEY, is_flexible=False),
        Schema(
            "ShareSnapshotValue",
            "snapshotEpoch:int32 stateEpoch:int32 leaderEpoch:int32 startOffset:int64 "
            + _BATCHES.format("createTimestamp:int64 writeTimestamp:int64 "),
        ),
    ),
    1: (
        Schema("ShareUpdateKey", _KEY, is_flexible=False),
        Schema(
            "ShareUpdateValue",
            "snapshotEpoch:int32 leaderEpoch:int32 startOffset:int64 " + _BATCHES.format(""),
        ),
    ),
}
_DELETED: Final = "<DELETE>"


def decode_share_record(record: LogRecord) -> Decoded:
    """Key and value as JSON; what cannot be decoded is said in place of the key.

    Raises CorruptionError for a record without a key, which is none of this topic.
    """
    if record.key is None:
        raise CorruptionError(f"the record at offset {record.offset} has no key")
    try:
        key = Reader(record.key)
        kind = key.int16()
        if kind not in KINDS:
            return Decoded(f"Unknown record type {kind} at offset {record.offset}, skipping.", None)
        key_schema, value_schema = KINDS[kind]
        shown = line_of({"type": str(kind), "data": key_schema.read(key, 0)})
        if record.value is None:
            return Decoded(shown, _DELETED)
        value = Reader(record.value)
        version = value.int16()
        content = value_schema.read(value, version)
        return Decoded(shown, line_of({"version": str(version), "data": content}))
    except ProtocolError as error:
        return Decoded(f"Error at offset {record.offset}, skipping. {error}", None)
