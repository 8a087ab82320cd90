"""Bytes inside a message that have a form of their own, as far as people ask for them.

Classic consumers put their topics into the bytes of JoinGroup and SyncGroup, which brokers do not
need to read. Records are in batches (`batches`); here their keys and values become text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import CorruptionError, KafkaError, ProtocolError
from minibroker.kafka.foreign_text import printable
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import ConsumerProtocolAssignment
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from minibroker.kafka.records.batch import HEADER_BYTES, iterate_headers
from minibroker.kafka.records.record import decode_records

if TYPE_CHECKING:
    from minibroker.kafka.protocol.primitives import Buffer
    from minibroker.kafka.records.record import Record

RECORDS_MAX: Final = 20
"""Records of a partition that are shown in full."""
UNPACKED_BYTES_MAX: Final = 1 << 20
"""A larger batch is not unfolded to be shown."""
TEXT_MAX: Final = 200
"""Characters of a key or a value."""
PROTOCOL_BYTES_MAX: Final = 1 << 16
"""Larger bytes of a group are not looked at."""


def assignment_text(data: bytes) -> str | None:
    """Return the partitions that a classic consumer is given, None for other bytes."""
    if not data:
        return "nothing"
    if len(data) > PROTOCOL_BYTES_MAX:
        return None
    try:
        assignment = ConsumerProtocolAssignment.from_bytes(data)
    except ProtocolError:
        return None
    places = [
        f"{printable(part.topic)}-{number}"
        for part in assignment.assigned_partitions
        for number in part.partitions
    ]
    return " ".join(places) or "nothing"


def subscription_text(data: bytes) -> str | None:
    """Return the topics that a classic consumer asks for, None for other bytes."""
    if not data or len(data) > PROTOCOL_BYTES_MAX:
        return None
    try:
        subscription = ConsumerProtocolSubscription.from_bytes(data)
    except ProtocolError:
        return None
    owned = [
        f"{printable(part.topic)}-{number}"
        for part in subscription.owned_partitions
        for number in part.partitions
    ]
    topics = " ".join(printable(topic) for topic in subscription.topics)
    return f"{topics}, has {' '.join(owned)}" if owned else topics


def record_lines(data: Buffer) -> list[str]:
    """Return a text for each of the first records: offset, key, value, number of headers."""
    lines: list[str] = []
    try:
        for position, header in iterate_headers(data):
            if header.magic != 2 or header.size_bytes - HEADER_BYTES > UNPACKED_BYTES_MAX:
                break
            records = decode_records(
                data, position, header=header, size_bytes_max=UNPACKED_BYTES_MAX
            )
            for record in records:
                if len(lines) == RECORDS_MAX:
                    return [*lines, "…"]
                lines.append(_record(record))
    except (CorruptionError, KafkaError):
        lines.append("…")
    return lines


def _record(record: Record) -> str:
    text = f"{record.offset}: {_bytes(record.key)} → {_bytes(record.value)}"
    return f"{text} ({len(record.headers)} headers)" if record.headers else text


def _bytes(data: bytes | None) -> str:
    """Return text in quotes, hexadecimal digits for bytes that are no text, `null`."""
    if data is None:
        return "null"
    more = "…" if len(data) > TEXT_MAX else ""
    start = data[:TEXT_MAX]
    try:
        text = start.decode("utf-8", "strict" if not more else "ignore")
    except UnicodeDecodeError:
        return f"0x{start.hex()}{more}"
    return f"'{printable(text)}{more}'"
