"""The short way of a Produce request: versions 3-13, plain batches for any number of partitions.

Nearly every request of a producer has this shape. `produce.handle` makes some eighty calls for each
partition, through generated messages. Here ten are enough: the bytes that name a topic are looked
up as they are (`appends/routes`), and the answer is the same bytes with four numbers behind each
partition. A request of any other shape gives None before anything is appended, and takes the
general way. That is the reference: a test compares the two byte for byte.

    request body after the header (9-12)              answer after the correlation id
    transactional_id null, acks, timeout              tags
    [n] topic name [n] partition index   ── same ──►  [n] topic name [n] partition index
                       records                                           error, base offset, append
                       tags                                              time, log start, no record
                       ...                                               errors, no message, tags
        tags                                              tags
    tags                                              throttle 0, tags

A request for one partition is the most frequent of all and takes fewer steps: its partition is
found by all bytes from the topic to the index, and its answer is one object.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812  a class, named as the others are
from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.appends.failures import fail
from minibroker.broker.handlers.appends.routes import (
    COMPACT_HEAD,
    FIRST_FLEXIBLE,
    FIRST_WITH_TOPIC_IDS,
    LONE_BYTES,
    ProduceRoutes,
)
from minibroker.broker.partitions.checking import ReceivedBatch
from minibroker.broker.partitions.cold_reads import ColdError
from minibroker.broker.partitions.partition import ACKS_ALL
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.errors import KafkaError, answer_error
from minibroker.kafka.protocol.header import response_header
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from minibroker.kafka.protocol.primitives import Writer
from minibroker.kafka.records.batch import (
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_FIELD_END,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from minibroker.kafka.records.produce_rules import FIRST_VERSION_OF_ZSTD, LargeBatchError

if TYPE_CHECKING:
    from minibroker.broker.handlers.appends.routes import LoneRoute
    from minibroker.broker.handlers.common.context import RequestContext, Services
    from minibroker.broker.handlers.common.handler import Handler, ShortWayOf
    from minibroker.broker.partitions.partition import Partition

FIRST_VERSION: Final = 3
BATCHES_MAX: int = 256
"""A request with more batches gives the loop back in between (`produce`)."""
_TOPICS_MAX: Final = 126
"""Most topics of a flexible request here: their number fits one byte, here and in the answer."""
_PARTITION_COUNT_END: Final = 1 << 14
"""Beyond what two bytes say of partitions, which is one more than there are."""

_HEAD: Final = Struct(">hhii")
"""Versions 3-8: length of transactional_id, acks, timeout_ms, number of topics."""
_NAME_LENGTH: Final = Struct(">h")
_INDEX_SIZE: Final = Struct(">ii")
_INDEX_AND_SIZE: Final = Struct(">iBB")
"""Index of a partition, and the first two bytes that say how long its records are."""
_UNPACK_HEADER: Final = HEADER.unpack_from
_INT32: Final = Struct(">i")

_VALUES: Final = Struct(">hqqq")
"""error_code, base_offset, log_append_time_ms, log_start_offset."""
_VALUES_BEFORE_5: Final = Struct(">hqq")
_NO_ERRORS_AND_TAGS: Final = (b"\x01\0\0", b"\0\0\0\0\0\0")
_NO_ERRORS: Final = (b"\0\0\0\0\xff\xff", b"\0\0\0\0")
_NOTHING: Final = (b"", b"\0\0\0\0")
_ENDS: Final = (*[_NOTHING] * 8, _NO_ERRORS, *[_NO_ERRORS_AND_TAGS] * 5)
"""By version: what ends a partition (no record errors, null message, tags), and what ends the
answer (tags of the last topic, throttle time, tags)."""
_FORBIDDEN: Final = (
    *[TRANSACTIONAL_FLAG | CODEC_MASK] * FIRST_VERSION_OF_ZSTD,
    *[TRANSACTIONAL_FLAG] * (len(_ENDS) - FIRST_VERSION_OF_ZSTD),
)
"""By version: attributes that no batch may have here: of a transaction, of a codec too early."""
_START: Final = Struct(">ii")
"""Frame size, correlation id."""
_LONE_HEAD: Final = b"\0\x02"
"""Tags of the header, one topic."""
_LONE_START: Final = Struct(f"{_START.format}{len(_LONE_HEAD)}s")
_LONE_END: Final = b"".join(_NO_ERRORS_AND_TAGS)
"""With throttle time 0."""
_LONE_REST: Final = Struct(f"{_VALUES.format}{len(_LONE_END)}s")
_LONE_BYTES_AROUND: Final = 4 + len(_LONE_HEAD) + _LONE_REST.size
_NO_TAGS: Final = bytes(3)
"""Empty tags of the partition, its topic and the request."""
_NAME_AT: Final = COMPACT_HEAD.size
_UUID_BYTES: Final = 16


class BatchAnswer(ReceivedBatch["Partition"]):
    """A batch, and the answer to it; `AppendQueue.commit` may still turn that into an error."""

    __slots__ = (
        "base_offset",
        "error_code",
        "lead",
        "log_append_time_ms",
        "log_start_offset",
        "refusal",
    )

    base_offset: int
    log_append_time_ms: int
    log_start_offset: int

    def __init__(
        self, partition: Partition, records: memoryview, header: BatchHeader, lead: bytes
    ) -> None:
        self.partition = partition
        self.records = records
        self.header = header
        self.checked = None
        self.lead = lead
        """Bytes before its numbers in the answer."""
        self.error_code = 0
        self.refusal: PartitionProduceResponse | None = None
        """Set if the append was refused: it may have Kafka's messages."""


class LoneAnswer(BatchAnswer):
    """The answer to a request for one partition, versions 9-13.

    Its maker sets the two fields of the request: a constructor for them would be one more call for
    each request.
    """

    __slots__ = ("correlation_id", "handler")

    handler: Handler
    correlation_id: int

    @property
    def parts(self) -> list[BatchAnswer]:
        """Return the answer itself, which has one batch."""
        return [self]

    def encode(self, throttle_time_ms: int) -> list[bytes]:
        """Return the whole frame. `throttle_time_ms`: how long the client has to wait."""
        lead = self.lead
        end = _LONE_END
        if throttle_time_ms:
            end = _NO_ERRORS_AND_TAGS[0] + _answer_end(FIRST_FLEXIBLE, throttle_time_ms)
        rest = _LONE_REST.pack(
            self.error_code, self.base_offset, self.log_append_time_ms, self.log_start_offset, end
        )
        start = _LONE_START.pack(_LONE_BYTES_AROUND + len(lead), self.correlation_id, _LONE_HEAD)
        return [start + lead + rest]


class FastAnswer:
    """The answer to such a request."""

    __slots__ = ("_topic_count", "_version", "correlation_id", "handler", "parts", "response")

    def __init__(
        self, handler: Handler, context: RequestContext, parts: list[BatchAnswer], topics: int
    ) -> None:
        self.handler = handler
        self.correlation_id = context.correlation_id
        self.response: ProduceResponse | None = None
        """Set where a partition was refused: then the answer is sent the general way."""
        self._version = context.version
        self.parts = parts
        """One for each batch, in the order of the request."""
        self._topic_count = topics

    @property
    def error_code(self) -> int:
        """Return the first error in it, or 0."""
        return next((part.error_code for part in self.parts if part.error_code), 0)

    def refuse(self, context: RequestContext, part: BatchAnswer, error: KafkaError) -> None:
        """Answer `error` for one partition."""
        if self.response is None:
            self.response = ProduceResponse()
        partition = part.partition
        result = PartitionProduceResponse(
            index=partition.index, log_start_offset=partition.log_start_offset
        )
        fail(context, self.response, partition.topic, result, error)
        part.refusal = result
        part.error_code = result.error_code

    def encode(self, throttle_time_ms: int) -> list[bytes]:
        """Return the whole frame. `throttle_time_ms`: how long the client has to wait."""
        if self.response is not None:
            self.response.throttle_time_ms = throttle_time_ms
            return self._encode_refused(self.response)
        version = self._version
        count = self._topic_count
        pieces = [bytes((0, count + 1)) if version >= FIRST_FLEXIBLE else _INT32.pack(count)]
        end, tail = _ENDS[version]
        if throttle_time_ms:
            tail = _answer_end(version, throttle_time_ms)
        if version >= 5:
            pack = _VALUES.pack
            for part in self.parts:
                values = pack(
                    part.error_code,
                    part.base_offset,
                    part.log_append_time_ms,
                    part.log_start_offset,
                )
                pieces += part.lead, values, end
        else:
            for part in self.parts:
                values = _VALUES_BEFORE_5.pack(
                    part.error_code, part.base_offset, part.log_append_time_ms
                )
                pieces += part.lead, values, end
        pieces.append(tail)
        body = b"".join(pieces)
        return [_START.pack(4 + len(body), self.correlation_id) + body]

    def _encode_refused(self, response: ProduceResponse) -> list[bytes]:
        """Return the frame with errors, messages and leaders, encoded like any other answer."""
        version = self._version
        response.responses = []
        for part in self.parts:
            partition = part.partition
            if not response.responses or response.responses[-1].name != partition.topic:
                response.responses.append(TopicProduceResponse(name=partition.topic))
                if version >= FIRST_WITH_TOPIC_IDS:
                    response.responses[-1].topic_id = partition.topic_id
            result = part.refusal or PartitionProduceResponse(
                index=partition.index,
                error_code=part.error_code,
                base_offset=part.base_offset,
                log_append_time_ms=part.log_append_time_ms,
                log_start_offset=part.log_start_offset,
            )
            response.responses[-1].partition_responses.append(result)
        writer = Writer()
        writer.append(response_header(self.handler.api_key, version, self.correlation_id))
        response.write(writer, version)
        return [b"".join(writer.frame_parts())]


def _answer_end(version: int, throttle_time_ms: int) -> bytes:
    """Return the bytes that end an answer, as `_ENDS` has them for no throttle."""
    throttle = _INT32.pack(throttle_time_ms)
    return b"\0" + throttle + b"\0" if version >= FIRST_FLEXIBLE else throttle


def short_way(services: Services) -> ShortWayOf:
    """Return the short way of a broker, with routes of its own."""
    routes = ProduceRoutes(services.partitions, services.cluster)

    def answer(
        context: RequestContext, handler: Handler, frame: memoryview, position: int
    ) -> LoneAnswer | FastAnswer | None:
        """Answer the request whose body begins at `position` of `frame`; None: take the general
        way.
        """
        version = context.version
        if version < FIRST_VERSION:
            return None
        try:
            if version >= FIRST_FLEXIBLE:
                has_ids = version >= FIRST_WITH_TOPIC_IDS
                at = (
                    position + LONE_BYTES + (_UUID_BYTES if has_ids else frame[position + _NAME_AT])
                )
                head = bytes(frame[position:at])
                lone = routes.lone_by_version[version].get(head) or routes.find_lone(version, head)
                if lone is not None:
                    return _answer_lone(context, handler, frame, at, lone)
                request = _split_compact(frame, position, version, routes)
            else:
                request = _split(frame, position, version, routes)
        except (IndexError, StructError):
            return None
        return None if request is None else _append_all(context, handler, request)

    return answer


def _append_all(
    context: RequestContext, handler: Handler, request: tuple[int, int, list[BatchAnswer]]
) -> FastAnswer | None:
    """Append the batches of a request, and return its answer; None: take the general way.

    `request`: acks, number of topics, batches.
    """
    acks, topic_count, batches = request
    now_ms = context.services.clock.now_ms()
    if len(batches) > BATCHES_MAX:
        return None  # in steps
    is_bounded = len(batches) == 1
    if not is_bounded and not _check_several(batches, topic_count, now_ms):
        return None
    if acks == ACKS_ALL and any(batch.partition.replicas is not None for batch in batches):
        return None  # the answer waits for followers
    if context.writable is not None and not all(
        _may_write(context, topic)
        for topic in {batch.partition.topic for batch in batches} - context.writable
    ):
        return None
    answer = FastAnswer(handler, context, batches, topic_count)
    for batch in batches:
        partition = batch.partition
        try:
            appended = partition.append(
                batch.records,
                acks,
                now_ms,
                batch,
                "client",
                is_bounded,
                batch.header,
                batch.checked,
            )
        except (ColdError, LargeBatchError):
            return None  # it is the only one
        except Exception as error:
            answer.refuse(context, batch, answer_error(error, f"appending to {partition}"))
        else:
            batch.base_offset = appended.first_offset
            batch.log_append_time_ms = appended.append_time_ms
            batch.log_start_offset = appended.log_start_offset
    return answer


def _answer_lone(
    context: RequestContext,
    handler: Handler,
    frame: memoryview,
    at: int,
    route: LoneRoute,
) -> LoneAnswer | FastAnswer | None:
    """Append the only batch of a request, versions 9-13, and return its answer; None: take the
    general way. Its size begins at `at` of `frame`.

    Raises IndexError or struct.error where the frame ends too soon.
    """
    partition, acks, lead = route
    size, more = frame[at], frame[at + 1]
    if size > 127 >= more:
        size += (more << 7) - 128
        at += 2
    else:
        size, at = _size_at(frame, at)
    end = at + size - 1
    header = BatchHeader(*_UNPACK_HEADER(frame, at))
    header.size_bytes += LENGTH_FIELD_END
    if (
        header.magic != 2
        or header.size_bytes != size - 1
        or size <= HEADER_BYTES
        or header.attributes & _FORBIDDEN[context.version]
        or frame[end:] != _NO_TAGS
        or (acks == ACKS_ALL and partition.replicas is not None)
    ):
        return None
    writable = context.writable
    if (
        writable is not None
        and partition.topic not in writable
        and not _may_write(context, partition.topic)
    ):
        return None
    records = frame[at:end]
    answer = LoneAnswer(partition, records, header, lead)
    answer.handler = handler
    answer.correlation_id = context.correlation_id
    now_ms = context.services.clock.now_ms()
    try:
        appended = partition.append(records, acks, now_ms, answer, "client", True, header)
    except (ColdError, LargeBatchError):
        return None
    except Exception as error:
        refused = FastAnswer(handler, context, [answer], 1)
        refused.refuse(context, answer, answer_error(error, f"appending to {partition}"))
        return refused
    answer.base_offset = appended.first_offset
    answer.log_append_time_ms = appended.append_time_ms
    answer.log_start_offset = appended.log_start_offset
    return answer


def _may_write(context: RequestContext, topic: str) -> bool:
    """Return whether the client may write to a topic; after a no the general way asks again."""
    return context.authorize_once(
        context.writable, Operation.WRITE, ResourceType.TOPIC, topic, is_filter=True
    )


def _check_several(batches: list[BatchAnswer], topic_count: int, now_ms: int) -> bool:
    """Check batches before any is appended. Return False where one is large, or would not be the
    same when it is checked once more, or where a partition or a topic is named twice.
    """
    if len({batch.partition for batch in batches}) < len(batches):
        return False
    if topic_count > 1 and len({batch.partition.topic for batch in batches}) < topic_count:
        return False
    return all(batch.check_repeatably(now_ms) for batch in batches)


def _split_compact(  # noqa: PLR0912  a pass over all partitions: calls would cost more
    frame: memoryview, position: int, version: int, routes: ProduceRoutes
) -> tuple[int, int, list[BatchAnswer]] | None:
    """Return (acks, number of topics, batches) of a request, versions 9-13; None: take the general
    way.

    Raises IndexError or struct.error where the frame ends too soon.
    """
    id_length, acks, _, topic_count = COMPACT_HEAD.unpack_from(frame, position)
    if id_length or acks not in {1, -1} or not 1 < topic_count <= _TOPICS_MAX + 1:
        return None
    has_ids = version >= FIRST_WITH_TOPIC_IDS
    topic_routes = routes.by_version[version]
    forbidden = _FORBIDDEN[version]
    batches: list[BatchAnswer] = []
    at = position + COMPACT_HEAD.size
    for _ in range(topic_count - 1):
        start = at
        at += 16 if has_ids else frame[at]
        topic = bytes(frame[start:at])
        if not has_ids and (not topic or topic[0] > 127):
            return None
        partitions = topic_routes.get(topic, {})
        partition_count = frame[at]
        at += 1
        if partition_count > 127:
            partition_count = partition_count & 127 | frame[at] << 7
            at += 1
        if not 1 < partition_count < _PARTITION_COUNT_END:
            return None
        if batches:
            start -= 1  # with the tags of the topic before it
        for _ in range(partition_count - 1):
            index, size, more = _INDEX_AND_SIZE.unpack_from(frame, at)
            at += 4
            lead = bytes(frame[start:at])
            if size > 127 >= more:
                size += (more << 7) - 128
                at += 2
            else:
                size, at = _size_at(frame, at)
            end = at + size - 1
            header = BatchHeader(*_UNPACK_HEADER(frame, at))
            header.size_bytes += LENGTH_FIELD_END
            if (
                header.magic != 2
                or header.size_bytes != size - 1
                or size <= HEADER_BYTES
                or header.attributes & forbidden
                or frame[end]  # tags
            ):
                return None
            partition = partitions.get(index) or routes.find(version, topic, index)
            if partition is None:
                return None
            batches.append(BatchAnswer(partition, frame[at:end], header, lead))
            start = at = end + 1
        if frame[at]:
            return None
        at += 1
    if frame[at] or at + 1 != len(frame):
        return None
    return acks, topic_count - 1, batches


def _size_at(frame: memoryview, at: int) -> tuple[int, int]:
    """Return the compact length at `at` (bytes, plus one), and the position behind it."""
    size = frame[at]
    at += 1
    if size > 127:
        size &= 127
        shift = 7
        while (byte := frame[at]) > 127 and shift < 28:
            size |= (byte & 127) << shift
            shift += 7
            at += 1
        size |= byte << shift
        at += 1
    return size, at


def _split(
    frame: memoryview, position: int, version: int, routes: ProduceRoutes
) -> tuple[int, int, list[BatchAnswer]] | None:
    """Return what `_split_compact` returns, for versions 3-8. Raises struct.error."""
    id_length, acks, _, topic_count = _HEAD.unpack_from(frame, position)
    if id_length != -1 or acks not in {1, -1} or topic_count < 1:
        return None
    topic_routes = routes.by_version[version]
    forbidden = _FORBIDDEN[version]
    batches: list[BatchAnswer] = []
    at = position + _HEAD.size
    for _ in range(topic_count):
        start = at
        (name_length,) = _NAME_LENGTH.unpack_from(frame, at)
        if name_length < 1:
            return None
        at += _NAME_LENGTH.size + name_length
        topic = bytes(frame[start:at])
        partitions = topic_routes.get(topic, {})
        (partition_count,) = _INT32.unpack_from(frame, at)
        at += 4
        if partition_count < 1:
            return None
        for _ in range(partition_count):
            index, size = _INDEX_SIZE.unpack_from(frame, at)
            lead = bytes(frame[start : at + 4])
            at += _INDEX_SIZE.size
            end = at + size
            header = BatchHeader(*_UNPACK_HEADER(frame, at))
            header.size_bytes += LENGTH_FIELD_END
            if (
                header.magic != 2
                or header.size_bytes != size
                or size < HEADER_BYTES
                or header.attributes & forbidden
                or end > len(frame)
            ):
                return None
            partition = partitions.get(index) or routes.find(version, topic, index)
            if partition is None:
                return None
            batches.append(BatchAnswer(partition, frame[at:end], header, lead))
            start = at = end
    return (acks, topic_count, batches) if at == len(frame) else None
