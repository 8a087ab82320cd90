"""The short way of an OffsetCommit request: versions 7-10, one topic, no metadata, all goes well.

Nearly every commit of a consumer has this shape, and differs from the one before in partitions and
offsets only. The bytes before them (group, generation, member, topic) are looked up as they are
(`offset_commit_bytes` finds where they end); the first request with them is decoded the general way
and has to come out as the same bytes when it is encoded again, so that what was read from them
holds for every request that begins so. Whatever is not exactly of this shape, and whatever has to
be refused, gives None and takes the general way (`offset_commit`), which is the reference: a test
compares the two byte for byte, the records in the log too.

    request body after the header (7-10)             answer after the correlation id
    group, generation, member, instance              tags, throttle 0
    [1] topic        ── both: the route's key ──►    [1] topic
    [n] partition, offset, leader epoch, no metadata [n] partition, error
    tags                                             tags
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.broker.groups.offset_batches import template_of
from minibroker.broker.groups.offsets import NO_EXPIRY, CommittedOffset
from minibroker.broker.handlers.offset_commit import check_member
from minibroker.broker.handlers.offset_commit_bytes import (
    FIRST_VERSION,
    TOPIC_IDS_FROM,
    split,
)
from minibroker.broker.handlers.offset_commit_routes import CommitRoutes, Route
from minibroker.broker.partitions.journal_partition import coordinator_error
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.ids import NO_PRODUCER_ID
from minibroker.kafka.protocol.primitives import Reader, Writer

if TYPE_CHECKING:
    from minibroker.broker.handlers.context import RequestContext
    from minibroker.broker.handlers.offset_commit_bytes import Offset
    from minibroker.broker.handlers.registry import Handler

_INT32: Final = Struct(">i")
_NO_TAGS: Final = b"\0\0"
"""Empty tagged fields of the topic and of the request."""
_START: Final = Struct(">iii")
"""Frame size, correlation id, throttle time."""
_COMPACT_START: Final = Struct(">iixi")
"""The same, with the tags of the header."""
_CODE: Final = Struct(">ih")
_COMPACT_CODE: Final = Struct(">ihB")


class CommitAnswer:
    """The answer to such a request; also what the journal tells that it is written (`Staged`)."""

    __slots__ = (
        "base_offset",
        "correlation_id",
        "error_code",
        "first_offset",
        "handler",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "now_ms",
        "offsets",
        "route",
    )

    base_offset: int
    log_append_time_ms: int
    log_start_offset: int

    def __init__(
        self,
        handler: Handler,
        correlation_id: int,
        route: Route,
        offsets: list[Offset],
        now_ms: int,
    ) -> None:
        self.handler = handler
        self.correlation_id = correlation_id
        self.route = route
        self.offsets = offsets
        self.now_ms = now_ms
        self.error_code = 0
        self.first_offset = self.last_offset = -1

    @property
    def is_failed(self) -> bool:
        return self.error_code != 0

    def succeed(self) -> None:
        """Count the offsets, which are visible now."""
        if self.error_code:
            return
        route = self.route
        replay = route.shard.replay_offset
        record_offset = self.first_offset
        for partition, offset, leader_epoch in self.offsets:
            committed = CommittedOffset(
                offset, leader_epoch, "", self.now_ms, NO_EXPIRY, route.topic_id, record_offset
            )
            replay((route.group_id, route.topic, partition), committed, NO_PRODUCER_ID)
            record_offset += 1

    def encode(self, throttle_time_ms: int) -> list[bytes]:
        """Return the whole frame; from here on `error_code` is the code that the client gets.

        `throttle_time_ms`: how long the client has to wait.
        """
        route = self.route
        offsets = self.offsets
        if self.error_code:
            self.error_code = int(coordinator_error(ErrorCode(self.error_code)))
        code = self.error_code
        if route.is_flexible:
            start = _COMPACT_START
            count = bytes((len(offsets) + 1,))
            codes = [_COMPACT_CODE.pack(offset[0], code, 0) for offset in offsets]
            tail = _NO_TAGS
        else:
            start = _START
            count = _INT32.pack(len(offsets))
            codes = [_CODE.pack(offset[0], code) for offset in offsets]
            tail = b""
        body = b"".join((route.topic_head, count, *codes, tail))
        size_bytes = start.size - 4 + len(body)
        return [start.pack(size_bytes, self.correlation_id, throttle_time_ms) + body]


def handle_fast(
    context: RequestContext, handler: Handler, frame: memoryview, position: int
) -> CommitAnswer | None:
    """Answer the request whose body begins at `position` of `frame`; None: take the general way."""
    version = context.version
    services = context.services
    if version < FIRST_VERSION:
        return None
    found = split(frame, position, version)
    if found is None:
        return None
    key, offsets = found
    routes = services.commit_routes
    if routes is None:
        routes = services.commit_routes = CommitRoutes(services.groups)
    route = routes.of_version(version).get(key)
    if route is None:
        route = _find_route(context, handler, frame, position, len(offsets))
        if route is None:
            return None
        routes.add(version, key, route)
    partition_count = route.partition_count
    for offset in offsets:
        if not 0 <= offset[0] < partition_count:
            return None
    if services.authorizer is not None and not _is_allowed(context, route):
        return None
    shard = route.shard
    if shard.lags:
        return None  # the answer waits for followers, or for an fsync
    try:
        if check_member(context, route.request, shard) is not None:
            return None
        now_ms = services.clock.now_ms()
        answer = CommitAnswer(handler, context.correlation_id, route, offsets, now_ms)
        template = template_of(route.group_id, route.topic, route.topic_id, len(offsets))
        shard.stage_batch(template.fill(offsets, now_ms), now_ms, answer)
    except KafkaError:
        return None  # the general way finds it too and says why
    return answer


def _is_allowed(context: RequestContext, route: Route) -> bool:
    """Return whether the client may commit; the general way refuses."""
    return context.authorize(
        Operation.READ, ResourceType.GROUP, route.group_id, is_filter=True
    ) and context.authorize(Operation.READ, ResourceType.TOPIC, route.topic, is_filter=True)


def _find_route(
    context: RequestContext,
    handler: Handler,
    frame: memoryview,
    position: int,
    offset_count: int,
) -> Route | None:
    """Return what the bytes before the partitions say; None if the general way has to answer.

    The request has one topic with as many partitions as were split off behind these bytes, all of
    one size, and comes out the same when it is encoded: so the partitions begin where they end. (A
    length of more than one byte, of a member id, say, is taken for a short one by `split`.)
    """
    version = context.version
    services = context.services
    try:
        request = handler.request.read(Reader(frame, position), version)
    except ProtocolError:
        return None
    writer = Writer()
    request.write(writer, version)
    if writer.to_bytes() != frame[position:]:
        return None
    if len(request.topics) != 1 or len(request.topics[0].partitions) != offset_count:
        return None
    (wanted,) = request.topics
    image = services.cluster.image
    if version >= TOPIC_IDS_FROM:
        topic = image.topic_by_id.get(wanted.topic_id)
    else:
        topic = image.topics.get(wanted.name)
    try:
        shard = services.groups.shard_to_commit(request.group_id, may_be_empty=True)
    except KafkaError:
        return None
    if topic is None or not shard.takes_templates:
        return None
    return Route(shard, request, topic, version)
