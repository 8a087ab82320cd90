"""Pairs on which minibroker's registry and Apicurio's differ, with the documentation that decides.

Each line must differ, with exactly this answer of ours; a stale line fails the test.
"""

from __future__ import annotations

from typing import Final, NamedTuple

GUIDE: Final = "Protocol Buffers' language guide, Updating A Message Type"
PROTOBUF: Final = "Confluent's documentation, Schema Evolution, Protobuf"
JSON: Final = "Confluent's documentation, Schema Evolution, JSON Schema"


class Difference(NamedTuple):
    """Our answer, and why it is right."""

    backward: bool
    forward: bool
    source: str
    reason: str


_UNKNOWN = "old readers skip a field that they do not know"
_SAME_BYTES = "both types have the same bytes"

DIFFERENCES: Final = {
    "JSON: a type gets null": Difference(
        True, False, JSON, "a type may get wider: every old document is valid"
    ),
    "JSON: an open schema gets any property": Difference(
        True, True, JSON, "a property with an empty schema may be added to an open content model"
    ),
    "JSON: a closed schema gets a required property with a default": Difference(
        True, False, JSON, "a required property with a default may be added to a closed model"
    ),
    "JSON: a property with a default becomes required": Difference(
        True, True, JSON, "a default stands in for a property that is missing"
    ),
    "JSON: a type becomes a sum": Difference(
        True, False, JSON, "a sum may get wider: the old type is one of its branches"
    ),
    "PROTOBUF: a field is added": Difference(True, True, GUIDE, _UNKNOWN),
    "PROTOBUF: a nested message gets a field": Difference(True, True, GUIDE, _UNKNOWN),
    "PROTOBUF: a field is renamed": Difference(
        True, True, GUIDE, "data carries numbers of fields, no names"
    ),
    "PROTOBUF: a field gets another number": Difference(
        True, True, GUIDE, "it is one field removed and another one added, and both are allowed"
    ),
    "PROTOBUF: int32 becomes int64": Difference(
        True, True, GUIDE, "int32, uint32, int64, uint64 and bool are compatible"
    ),
    "PROTOBUF: int32 becomes bool": Difference(
        True, True, GUIDE, "int32, uint32, int64, uint64 and bool are compatible"
    ),
    "PROTOBUF: values of a map are widened": Difference(
        True, True, GUIDE, "a map is a list of messages with a key and a value"
    ),
    "PROTOBUF: int32 becomes an enum": Difference(
        True, True, GUIDE, "an enum is compatible with int32, uint32, int64 and uint64"
    ),
    "PROTOBUF: fixed32 becomes sfixed32": Difference(True, True, GUIDE, _SAME_BYTES),
    "PROTOBUF: string becomes bytes": Difference(
        True, True, GUIDE, "string and bytes are compatible where the bytes are UTF-8"
    ),
    "PROTOBUF: string becomes repeated": Difference(
        True, True, GUIDE, "for strings, bytes and messages, singular is compatible with repeated"
    ),
    "PROTOBUF: int32 becomes repeated": Difference(
        True, False, GUIDE, "one number is read as a list; packed numbers are not read as one"
    ),
    "PROTOBUF: a field becomes optional": Difference(True, True, GUIDE, _SAME_BYTES),
    "PROTOBUF: a message is added": Difference(
        True, False, PROTOBUF, "a new message type is not forward compatible"
    ),
    "PROTOBUF: two fields move into a oneof": Difference(
        False, True, GUIDE, "several fields that can be set together may not move into a oneof"
    ),
    "PROTOBUF: a field moves into an old oneof": Difference(
        False, True, GUIDE, "a field may not move into a oneof that exists"
    ),
    "PROTOBUF: a constant is added": Difference(
        True, True, GUIDE, "an enum is open: a number without a name stays a number"
    ),
    "PROTOBUF: a constant is renamed": Difference(
        True, True, GUIDE, "data carries numbers of constants, no names"
    ),
    "PROTOBUF: a number is reserved": Difference(
        True, True, GUIDE, "the number of a removed field is to be reserved"
    ),
    "PROTOBUF: a service is added": Difference(
        True, True, PROTOBUF, "messages and fields are compared; a service has no data"
    ),
    "PROTOBUF: a package changes": Difference(
        False, False, PROTOBUF, "the package is part of each message's name, which is compared"
    ),
}
"""Title of a pair → our answer; Apicurio's is in `apicurio.json`."""
