"""A stored record as JSON, in the form of Kafka's generated converters.

Names in Kafka's spelling (`group_id` → `groupId`), bytes in base64, ids in URL-safe base64 without
padding, one line. A field that the version does not have is left out, and so is a tagged field with
its default value. The tables below list both, because the generated classes do not have them.

Source: Kafka's generated …JsonConverter classes; Jackson's ObjectNode.toString.
"""

import base64
import json
import re
from typing import Final

from minibroker.kafka.ids import topic_id_to_text
from minibroker.kafka.protocol.message import Message

_SINCE: Final = {
    ("OffsetCommitValue", "leader_epoch"): (3, 99),
    ("OffsetCommitValue", "expire_timestamp"): (1, 1),
    ("GroupMetadataValue", "current_state_timestamp"): (2, 99),
    ("MemberMetadata", "group_instance_id"): (3, 99),
    ("MemberMetadata", "rebalance_timeout"): (1, 99),
    ("ConsumerProtocolSubscription", "owned_partitions"): (1, 99),
    ("ConsumerProtocolSubscription", "generation_id"): (2, 99),
    ("ConsumerProtocolSubscription", "rack_id"): (3, 99),
}
"""(class, field) → first and last version of the field, if not every version has it."""

_TAGGED: Final[dict[tuple[str, str], object]] = {
    ("OffsetCommitValue", "topic_id"): "AAAAAAAAAAAAAAAAAAAAAA",
    ("ConsumerGroupMetadataValue", "metadata_hash"): 0,
    ("ConsumerGroupMemberMetadataValue", "classic_member_metadata"): {
        "sessionTimeoutMs": 0,
        "supportedProtocols": [],
    },
    ("ConsumerGroupTargetAssignmentMetadataValue", "assignment_timestamp"): 0,
    ("TopicPartitions", "assignment_epochs"): [],
}
"""(class, field) → the default that is left out, in the form of JSON."""

_UUIDS: Final = frozenset({"topic_id"})
_CONTROL: Final = re.compile(r"\\u00[0-9a-f]{2}")

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def to_json(message: Message, version: int) -> dict[str, Json]:
    """Return the fields that `message` has in `version`, in order."""
    kind = type(message).__name__
    found: dict[str, Json] = {}
    for name in message.__slots__:
        first, last = _SINCE.get((kind, name), (0, 99))
        if not first <= version <= last:
            continue
        value = _value(name, getattr(message, name), version)
        if (kind, name) not in _TAGGED or value != _TAGGED[kind, name]:
            found[_camel(name)] = value
    return found


def to_line(content: Json) -> str:
    """Return compact JSON like Jackson's: not only ASCII, and `\u001f` with capital digits."""
    line = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return _CONTROL.sub(lambda found: "\\u" + found[0][2:].upper(), line)


def _value(name: str, value: object, version: int) -> Json:
    if isinstance(value, Message):
        return to_json(value, version)
    if isinstance(value, list):
        return [_value(name, item, version) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        if name in _UUIDS:
            return topic_id_to_text(bytes(value))
        return base64.b64encode(value).decode("ascii")
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{name} is a {type(value).__name__}")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
