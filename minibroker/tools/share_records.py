"""`dump-log --share-group-state-decoder`: the records of `__share_group_state`.

The number at the start of a key says whether the record is a snapshot or an update of a
share-partition.

Source: Kafka DumpLogSegments.ShareGroupStateMessageParser, ShareCoordinatorRecordSerde.
"""

from typing import Final

from minibroker.kafka.errors import CorruptionError, ProtocolError
from minibroker.kafka.protocol.primitives import Reader
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
    """Return key and value as JSON; the key of an unknown record is a sentence.

    Raises CorruptionError for a record without a key: this topic has none.
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
