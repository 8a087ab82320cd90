"""The short way of a Produce request: versions 3-13, one topic, one partition, one batch.

Nearly every request of a producer that lingers little has this shape. What `produce.handle` does in
eighty calls through generated messages is done here in ten: the bytes that name topic and partition
are looked up as they are, and the answer is the same bytes with four numbers put between. Anything
that is not exactly this shape gives None and takes the general way, which is the reference: a
property test compares the two byte for byte.

    request body after the header (9-12)              answer after the correlation id
    transactional_id null, acks, timeout              tags
    [1] topic name [1] partition index   ── key ──►   [1] topic name [1] partition index
    records                                           error, base offset, append time, log start
    tags                                              no record errors, no message, throttle 0, tags
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812  a class, named as the others are
from typing import TYPE_CHECKING, Final

from minibroker.cluster.image import INTERNAL_TOPICS
from minibroker.errors import answer_error
from minibroker.handlers.produce import refused
from minibroker.records.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    HEADER_BYTES,
    LENGTH_AT,
    LENGTH_FIELD_END,
    MAGIC_AT,
    TRANSACTIONAL_FLAG,
)
from minibroker.records.produce_rules import FIRST_VERSION_OF_ZSTD, LargeBatchError

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.handlers.registry import Handler
    from minibroker.partitions.partition import Partition
    from minibroker.protocol.messages.produce import ProduceResponse

FIRST_VERSION: Final = 3
_FLEXIBLE_FROM: Final = 9
_TOPIC_IDS_FROM: Final = 13
_ROUTES_MAX: Final = 10_000
"""Known requests are forgotten all at once beyond this: a name costs about 300 bytes."""

_HEAD: Final = Struct(">hhii")
"""Versions 3-8: length of transactional_id, acks, timeout_ms, number of topics."""
_COMPACT_HEAD: Final = Struct(">BhiB")
"""Versions 9-13: the same with compact lengths."""
_NAME_LENGTH: Final = Struct(">h")
_COUNT_INDEX_SIZE: Final = Struct(">iii")
_INT32: Final = Struct(">i")
_NO_TAGS: Final = b"\0\0\0"

_VALUES: Final = Struct(">hqqq")
"""error_code, base_offset, log_append_time_ms, log_start_offset."""
_VALUES_BEFORE_5: Final = Struct(">hqq")
_START: Final = Struct(">ii")
"""Frame size, correlation id."""


class FastAnswer:
    """The answer to such a request; `PartitionManager.commit` may still turn it into an error."""

    __slots__ = (
        "base_offset",
        "correlation_id",
        "error_code",
        "handler",
        "log_append_time_ms",
        "log_start_offset",
        "route",
    )

    def __init__(self, handler: Handler, correlation_id: int, route: Route) -> None:
        self.handler = handler
        self.correlation_id = correlation_id
        self.route = route
        self.error_code = 0
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.log_start_offset = -1

    def encode(self) -> list[bytes]:
        """The whole frame."""
        route = self.route
        if route.has_log_start:
            values = _VALUES.pack(
                self.error_code, self.base_offset, self.log_append_time_ms, self.log_start_offset
            )
        else:
            values = _VALUES_BEFORE_5.pack(
                self.error_code, self.base_offset, self.log_append_time_ms
            )
        start = _START.pack(route.size_bytes, self.correlation_id)
        return [b"".join((start, route.head, values, route.tail))]


class Route:
    """Where requests with the same topic and partition bytes go, and what their answers repeat."""

    __slots__ = ("has_log_start", "head", "partition", "size_bytes", "tail")

    def __init__(self, partition: Partition, version: int, key: bytes) -> None:
        self.partition = partition
        self.has_log_start = version >= 5
        if version >= _FLEXIBLE_FROM:
            self.head = b"\0\x02" + key
            # no record errors, null message, tags of partition and topic, throttle time, tags
            self.tail = b"\x01\0\0\0\0\0\0\0\0"
        else:
            self.head = b"\0\0\0\x01" + key
            self.tail = b"\0\0\0\0" if version < 8 else b"\0\0\0\0\xff\xff\0\0\0\0"
        values = _VALUES if self.has_log_start else _VALUES_BEFORE_5
        self.size_bytes = 4 + len(self.head) + values.size + len(self.tail)


def handle_fast(
    context: RequestContext, handler: Handler, frame: memoryview, position: int
) -> FastAnswer | ProduceResponse | None:
    """Answer the request whose body begins at `position` of `frame`; None: take the general way.

    A refused append comes back as the general response, which has room for Kafka's messages.
    """
    version = context.version
    if version >= _FLEXIBLE_FROM:
        found = _split_compact(frame, position, version)
    elif version >= FIRST_VERSION:
        found = _split(frame, position)
    else:
        return None
    if found is None:
        return None
    acks, key, records = found
    attributes = records[ATTRIBUTES_AT + 1]
    if (
        records[MAGIC_AT] != 2
        or _INT32.unpack_from(records, LENGTH_AT)[0] != len(records) - LENGTH_FIELD_END
        or attributes & TRANSACTIONAL_FLAG
        or (version < FIRST_VERSION_OF_ZSTD and attributes & CODEC_MASK)
    ):
        return None
    services = context.services
    routes = services.partitions.routes[version]
    route = routes.get(key)
    if route is None:
        route = _find_route(context, key)
        if route is None:
            return None
    answer = FastAnswer(handler, context.correlation_id, route)
    try:
        appended = route.partition.append(
            records, acks, services.clock.now_ms(), answer, is_bounded=True
        )
    except LargeBatchError:
        return None
    except Exception as error:
        refusal = answer_error(error, f"appending to {route.partition}")
        return refused(context, route.partition, refusal)
    answer.base_offset = appended.first_offset
    answer.log_append_time_ms = appended.append_time_ms
    answer.log_start_offset = appended.log_start_offset
    return answer


def _split_compact(
    frame: memoryview, position: int, version: int
) -> tuple[int, bytes, memoryview] | None:
    """Versions 9-13: (acks, bytes from the topic to the partition index, records)."""
    try:
        id_length, acks, _, topic_count = _COMPACT_HEAD.unpack_from(frame, position)
        start = position + _COMPACT_HEAD.size
        name_length = 16 if version >= _TOPIC_IDS_FROM else frame[start]
        count_at = start + name_length
        if id_length or topic_count != 2 or name_length > 127 or frame[count_at] != 2:
            return None
        key_end = count_at + 5
        size = frame[key_end]
        at = key_end + 1
        shift = 7
        if size > 127:
            size &= 127
            while (byte := frame[at]) > 127 and shift < 28:
                size |= (byte & 127) << shift
                shift += 7
                at += 1
            size |= byte << shift
            at += 1
    except (IndexError, StructError):
        return None
    end = at + size - 1
    if acks not in (1, -1) or size <= HEADER_BYTES or bytes(frame[end:]) != _NO_TAGS:
        return None
    return acks, bytes(frame[start:key_end]), frame[at:end]


def _split(frame: memoryview, position: int) -> tuple[int, bytes, memoryview] | None:
    """Versions 3-8: (acks, bytes from the topic to the partition index, records)."""
    try:
        id_length, acks, _, topic_count = _HEAD.unpack_from(frame, position)
        start = position + _HEAD.size
        count_at = start + 2 + _NAME_LENGTH.unpack_from(frame, start)[0]
        partition_count, _, size = _COUNT_INDEX_SIZE.unpack_from(frame, count_at)
    except StructError:
        return None
    key_end = count_at + 8
    at = key_end + 4
    if (
        id_length != -1
        or topic_count != 1
        or partition_count != 1
        or acks not in (1, -1)
        or size < HEADER_BYTES
        or at + size != len(frame)
        or count_at < start + 2
    ):
        return None
    return acks, bytes(frame[start:key_end]), frame[at:]


def _find_route(context: RequestContext, key: bytes) -> Route | None:
    """The partition that these bytes name, remembered; None if it is not led here, or internal."""
    version = context.version
    services = context.services
    if version >= _TOPIC_IDS_FROM:
        known = services.cluster.image.topic_by_id.get(key[:16])
        name = known.name if known is not None else ""
    else:
        prefix, suffix = (1, 5) if version >= _FLEXIBLE_FROM else (2, 8)
        name = key[prefix:-suffix].decode("utf-8", "replace")
    partition = services.partitions.find(name, _INT32.unpack_from(key, len(key) - 4)[0])
    if partition is None or name in INTERNAL_TOPICS:
        return None
    routes = services.partitions.routes[version]
    if len(routes) >= _ROUTES_MAX:
        routes.clear()
    route = routes[key] = Route(partition, version, key)
    return route
