"""The lines of plain exchanges of Produce and Fetch, without a message for each.

Most of a large capture is producers and consumers at work. Their line shows a topic, an offset and
the header of a batch, so nothing else is read here. Everything that is not plain is left to
`decode`, which gives the same line: errors, transactions, long lists, tagged fields, versions
before the flexible ones, damage, and every other API.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from minibroker.kafka.ids import topic_id_to_text
from minibroker.kafka.protocol.api_keys import FETCH, PRODUCE
from minibroker.kafka.protocol.primitives import ZERO_UUID
from minibroker.trace.batches import summary_of
from minibroker.trace.decode import decode, exchange_of
from minibroker.trace.subject import ITEMS_MAX, SUBJECT_MAX, joined_both, short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.trace.decode import Frame, FrameHead, Frames
    from minibroker.trace.exchange import Exchange
    from minibroker.trace.subject import TopicNames

    ReadPartition = Callable[[Frame, int, str], tuple[str, int]]
    Texts = tuple[list[str], list[str]]

_PRODUCE_FLEXIBLE: Final = 9
_FETCH_FLEXIBLE: Final = 12
_TOPIC_IDS: Final = 13
"""The version of both since which topics have ids in place of names."""
_REPLICA_IS_TAGGED: Final = 15
_UUID_BYTES: Final = 16
_MORE: Final = 0x80
"""The bit of a number with another byte behind it."""
_SIZES_MAX: Final = 4
"""Bytes of a size that is looked at: up to 268 MB."""

_CORRELATION_ID: Final = Struct(">i")
_PRODUCE_START: Final = Struct(">hi")
_PRODUCED: Final = Struct(">ihqqq")
_FETCH_START: Final = Struct(">iiibii")
_REPLICA: Final = Struct(">i")
_FETCHED_FROM: Final = Struct(">iiqiqi")
_FETCHED: Final = Struct(">ihqqq")
_FETCH_ANSWER: Final = Struct(">ihi")
_NUMBER: Final = Struct(">i")


class NotPlainError(Exception):
    """A field that `decode` has to read."""


def glance(frames: Frames, names: TopicNames) -> Exchange:
    """Return the exchange of two frames as `decode` does; one that is plain has no messages."""
    head, answer = frames.head, frames.answer
    if head is None or answer is None or head.problem is not None or frames.is_token:
        return decode(frames, names)
    reader = _READERS.get(head.api_key)
    if reader is None:
        return decode(frames, names)
    try:
        parts, replies = reader(head, frames.request, answer, names)
    except (NotPlainError, struct_error, IndexError, UnicodeDecodeError):
        return decode(frames, names)
    subject = joined_both(parts, replies)
    if len(subject) > SUBJECT_MAX:
        return decode(frames, names)
    return exchange_of(frames, head, subject)


def _produce(head: FrameHead, request: Frame, answer: Frame, names: Mapping[bytes, str]) -> Texts:
    """Return the texts of a Produce and of its answer. Raises NotPlainError."""
    version = head.version
    if version < _PRODUCE_FLEXIBLE:
        raise NotPlainError
    at = _behind_zero(request, head.body_at)  # no transactional id
    acks, _ = _PRODUCE_START.unpack_from(request, at)
    parts, at = _topics(request, at + _PRODUCE_START.size, version, names, _records_at)
    _check_end(request, _behind_zero(request, at))
    if acks != -1:
        parts.insert(0, f"acks {acks}")
    at = _answer_body(head, answer)
    replies, at = _topics(answer, at, version, names, _produced_at)
    _check_end(answer, _behind_zero(answer, at + _NUMBER.size))  # behind the throttle time
    return parts, replies


def _fetch(head: FrameHead, request: Frame, answer: Frame, names: Mapping[bytes, str]) -> Texts:
    """Return the texts of a Fetch and of its answer. Raises NotPlainError."""
    version, at = head.version, head.body_at
    if version < _FETCH_FLEXIBLE:
        raise NotPlainError
    if version < _REPLICA_IS_TAGGED:
        at += _REPLICA.size
    parts, at = _topics(request, at + _FETCH_START.size, version, names, _fetched_from)
    if request[at] != 1:  # forgotten topics
        raise NotPlainError
    rack_bytes, at = _size(request, at + 1)
    _check_end(request, _behind_zero(request, at + rack_bytes))
    at = _answer_body(head, answer)
    _, error, _ = _FETCH_ANSWER.unpack_from(answer, at)
    if error:
        raise NotPlainError
    replies, at = _topics(answer, at + _FETCH_ANSWER.size, version, names, _fetched_at)
    _check_end(answer, _behind_zero(answer, at))
    return parts, replies


_READERS: Final = {PRODUCE: _produce, FETCH: _fetch}


def _topics(
    frame: Frame, at: int, version: int, names: Mapping[bytes, str], read: ReadPartition
) -> tuple[list[str], int]:
    """Return the texts of a list of topics with partitions, and the position behind it.

    Raises NotPlainError, IndexError.
    """
    texts: list[str] = []
    topics = frame[at] - 1
    at += 1
    if not 0 <= topics <= ITEMS_MAX:
        raise NotPlainError
    for _ in range(topics):
        if version >= _TOPIC_IDS:
            end = at + _UUID_BYTES
            topic_id = bytes(frame[at:end])
            topic = names.get(topic_id) or topic_id_to_text(topic_id)
            if topic_id == ZERO_UUID:
                raise NotPlainError
        else:
            size_bytes, at = _size(frame, at)
            end = at + size_bytes
            topic = short(str(frame[at:end], "utf-8"))
        partitions = frame[end] - 1
        at = end + 1
        if not topic or not 0 < partitions <= ITEMS_MAX:
            raise NotPlainError
        for _ in range(partitions):
            text, at = read(frame, at, topic)
            texts.append(text)
        at = _behind_zero(frame, at)
    return texts, at


def _records_at(frame: Frame, at: int, topic: str) -> tuple[str, int]:
    """Return the text of records that are produced, and the position behind them."""
    (number,) = _NUMBER.unpack_from(frame, at)
    return _with_records(frame, at + _NUMBER.size, f"{topic}-{number}", None)


def _produced_at(frame: Frame, at: int, topic: str) -> tuple[str, int]:
    """Return the text of a partition in the answer to a Produce, and the position behind it."""
    number, error, offset, _, _ = _PRODUCED.unpack_from(frame, at)
    at += _PRODUCED.size
    if error or offset < 0 or frame[at] != 1 or frame[at + 1] or frame[at + 2]:
        raise NotPlainError
    return f"{topic}-{number} @{offset}", at + 3


def _fetched_from(frame: Frame, at: int, topic: str) -> tuple[str, int]:
    """Return the text of a partition that is asked for, and the position behind it."""
    number, _, offset, _, _, _ = _FETCHED_FROM.unpack_from(frame, at)
    if offset < 0:
        raise NotPlainError
    return f"{topic}-{number} @{offset}", _behind_zero(frame, at + _FETCHED_FROM.size)


def _fetched_at(frame: Frame, at: int, topic: str) -> tuple[str, int]:
    """Return the text of a partition in the answer to a Fetch, and the position behind it."""
    number, error, end_offset, _, _ = _FETCHED.unpack_from(frame, at)
    at += _FETCHED.size
    if error or end_offset < 0 or frame[at] > 1:  # aborted transactions
        raise NotPlainError
    at += 1 + _REPLICA.size
    return _with_records(frame, at, f"{topic}-{number}", f"end {end_offset}")


def _with_records(frame: Frame, at: int, place: str, outcome: str | None) -> tuple[str, int]:
    """Return the text of a partition with the records from `at` on, and the position behind it.

    `outcome`: the text without any records.
    """
    size_bytes, at = _size(frame, at) if frame[at] else (0, at + 1)
    end = _behind_zero(frame, at + size_bytes)
    if size_bytes:
        offset, summary = summary_of(memoryview(frame)[at : at + size_bytes])
        return f"{place} @{offset} {summary}" if offset > 0 else f"{place} {summary}", end
    if outcome is None:
        raise NotPlainError
    return f"{place} {outcome}", end


def _answer_body(head: FrameHead, answer: Frame) -> int:
    """Return where the body of an answer begins."""
    if _CORRELATION_ID.unpack_from(answer)[0] != head.correlation_id:
        raise NotPlainError
    return _behind_zero(answer, _CORRELATION_ID.size)


def _size(frame: Frame, at: int) -> tuple[int, int]:
    """Return a size that is not null, and the position behind it."""
    value = frame[at]
    at += 1
    if value & _MORE:
        value &= ~_MORE
        for shift in range(7, 7 * _SIZES_MAX, 7):
            byte = frame[at]
            at += 1
            value |= (byte & ~_MORE) << shift
            if not byte & _MORE:
                break
        else:
            raise NotPlainError
    if not value:
        raise NotPlainError
    return value - 1, at


def _behind_zero(frame: Frame, at: int) -> int:
    """Return the position behind a byte that is 0: no text, no tagged fields."""
    if frame[at]:
        raise NotPlainError
    return at + 1


def _check_end(frame: Frame, at: int) -> None:
    """Raise NotPlainError if something stands behind what was read."""
    if at != len(frame):
        raise NotPlainError
