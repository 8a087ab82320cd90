"""`dump-log --cluster-metadata-decoder`: the records of a KRaft controller's metadata log.

The content of its control records is here too; it is shown without any decoder.

Source: Kafka MetadataRecordSerde, ControlRecordUtils.
"""

import re
from typing import Any, Final

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.message import Message
from minibroker.kafka.protocol.primitives import Buffer, Reader
from minibroker.kafka.protocol.stored.cluster_metadata import RECORDS
from minibroker.kafka.protocol.stored.metadata_control import RECORDS as CONTROL_RECORDS
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import ControlRecord, LogRecord
from minibroker.tools.stored_json import Json, to_json, to_line

_CONTROL_NAMES: Final = {
    3: "SnapshotHeader",
    4: "SnapshotFooter",
    5: "KRaftVersion",
    6: "KRaftVoters",
}
"""Type of a control record → the name in Kafka's tool."""


def raft_content(control: ControlRecord) -> tuple[str, dict[str, Json]] | None:
    """Return the content of a control record of a metadata log or snapshot.

    Return None if Kafka's tool shows only the type. Raises ProtocolError.
    """
    name = _CONTROL_NAMES.get(control.type_id)
    if name is None or control.value is None:
        return None
    message = _read_whole(CONTROL_RECORDS[control.type_id], name, Reader(control.value), 0)
    return name, to_json(message, 0)


def decode_metadata_record(record: LogRecord) -> Decoded:
    """Return the value as JSON (there are no keys), or a sentence if it cannot be read."""
    try:
        message, version = read_framed(record.value, RECORDS)
    except ProtocolError as error:
        return Decoded(None, f"Error at {record.offset}, skipping. {error}")
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(message).__name__).upper()
    content: Json = {"type": name, "version": version, "data": to_json(message, version)}
    return Decoded(None, to_line(content))


def read_framed(data: Buffer | None, classes: dict[int, Any]) -> tuple[Message, int]:
    """Return (message, version) of a record in the frame of Kafka's metadata.

    `classes`: class of each type. Three varints at the start are the frame, the type and the
    version. Raises ProtocolError.

    Source: Kafka AbstractApiMessageSerde.
    """
    if data is None:
        raise ProtocolError("the record has no value")
    reader = Reader(data)
    frame = reader.uvarint()
    if frame != 1:
        raise ProtocolError(f"the record's frame has version {frame}, expected 1")
    kind, version = reader.uvarint(), reader.uvarint()
    if kind not in classes:
        raise ProtocolError(f"there is no record of type {kind}")
    return _read_whole(classes[kind], classes[kind].__name__, reader, version), version


def _read_whole(kind: Any, name: str, reader: Reader, version: int) -> Message:
    """Return the message that the rest of `reader` holds. Raises ProtocolError."""
    first, last = kind.VERSIONS
    if not first <= version <= last:
        raise ProtocolError(f"{name} has versions {first} to {last}, found {version}")
    message: Message = kind.read(reader, version)
    if reader.remaining:
        raise ProtocolError(f"{reader.remaining} bytes behind a {name}")
    return message
