"""Finds, splits, merges and fails the topics and partitions of any request or answer.

A place is a topic, or a partition of it. Kafka's messages name places in a few ways only: a list of
topics (`name`, `topic` or `topic_name`, or an id), and in some a list of partitions (structures
with an index, or plain numbers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.kafka.error_codes import ErrorCode

    TopicName = Callable[[bytes], str | None]
    Covers = Callable[[str, int | None], bool]

_TOPIC_FIELDS: Final = ("name", "topic", "topic_name")
_PARTITION_FIELDS: Final = ("index", "partition_index", "partition", "partition_id")
_PLAIN_PARTITIONS: Final = ("partitions", "partition_indexes")
_ERROR_FIELDS: Final = ("error_code", "partition_error_code")
_NOTHING: Final = memoryview(b"")
_CLEARED: Final = {
    "records": _NOTHING,
    "high_watermark": -1,
    "last_stable_offset": -1,
    "log_start_offset": -1,
    "base_offset": -1,
    "offset": -1,
    "timestamp": -1,
    "committed_offset": -1,
    "node_id": -1,
    "leader_id": -1,
}
"""Values of the fields beside an error."""


_GROUP_FIELDS: Final = ("group_id", "group", "key")


def group_in(message: Message) -> str | None:
    """Return the group that a request names, None if it names none."""
    for field in _GROUP_FIELDS:
        value = getattr(message, field, None)
        if isinstance(value, str) and value:
            return value
    return None


def topic_of(message: Message, name_of_id: TopicName) -> str | None:
    """Return the topic that a structure is about, None if it is about none."""
    slots = message.__slots__
    if any(field in slots for field in _PARTITION_FIELDS):
        return None
    for field in _TOPIC_FIELDS:
        if field in slots:
            value = getattr(message, field)
            if isinstance(value, str) and value:
                return value
    topic_id = getattr(message, "topic_id", ZERO_TOPIC_ID)
    return name_of_id(topic_id) if topic_id != ZERO_TOPIC_ID else None


def _partition_of(message: Message) -> int | None:
    for field in _PARTITION_FIELDS:
        if field in message.__slots__:
            value = getattr(message, field)
            if isinstance(value, int):
                return value
    return None


def _lists(message: Message) -> Iterator[tuple[str, list[Any]]]:
    for field in message.__slots__:
        value = getattr(message, field)
        if isinstance(value, list) and value:
            yield field, value


def places_in(message: Message, name_of_id: TopicName) -> Iterator[tuple[str, int | None]]:
    """Yield (topic, partition) of every place in a request; None for a topic without partitions."""
    for _, parts in _lists(message):
        for part in parts:
            if not isinstance(part, Message):
                continue
            topic = topic_of(part, name_of_id)
            if topic is None:
                yield from places_in(part, name_of_id)
                continue
            is_met = False
            for field, inner in _lists(part):
                for inner_part in inner:
                    index = _index_in(field, inner_part)
                    if index is not None:
                        is_met = True
                        yield topic, index
            if not is_met:
                yield topic, None


def _index_in(field: str, part: Any) -> int | None:
    if isinstance(part, Message):
        return _partition_of(part)
    return part if isinstance(part, int) and field in _PLAIN_PARTITIONS else None


def take_out(message: Message, covers: Covers, name_of_id: TopicName) -> Message | None:
    """Take the covered places out of a request; return a request of those alone, None for none."""
    covered_message = _copy(message)
    is_met = False
    for field, parts in list(_lists(message)):
        if not any(isinstance(part, Message) and topic_of(part, name_of_id) for part in parts):
            continue
        out, rest = [], []
        for topic in parts:
            covered, uncovered = _split_topic(topic, covers, name_of_id)
            out += covered
            rest += uncovered
        setattr(message, field, rest)
        setattr(covered_message, field, out)
        is_met = is_met or bool(out)
    return covered_message if is_met else None


def _split_topic(
    topic: Message, covers: Covers, name_of_id: TopicName
) -> tuple[list[Message], list[Message]]:
    """Return ([the covered part], [the rest]) of one topic of a request."""
    name = topic_of(topic, name_of_id) or ""
    for field, parts in _lists(topic):
        if all(_index_in(field, part) is not None for part in parts):
            out = [part for part in parts if covers(name, _index_in(field, part))]
            rest = [part for part in parts if not covers(name, _index_in(field, part))]
            covered, uncovered = _copy(topic), _copy(topic)
            setattr(covered, field, out)
            setattr(uncovered, field, rest)
            return [covered] if out else [], [uncovered] if rest else []
    return ([topic], []) if covers(name, None) else ([], [topic])


def _copy(message: Message) -> Any:
    twin = message.__class__.__new__(message.__class__)
    for field in message.__slots__:
        setattr(twin, field, getattr(message, field))
    return twin


def has_places(message: Message, name_of_id: TopicName) -> bool:
    """Return whether a request still names any place."""
    return any(True for _ in places_in(message, name_of_id))


def merge(answer: Message, more: Message) -> None:
    """Merge the topics of `more` into `answer`; a topic of both gets all partitions."""
    for field, parts in _lists(more):
        value = getattr(answer, field)
        by_place = {_identity(part): part for part in value if isinstance(part, Message)}
        for part in parts:
            twin = by_place.get(_identity(part)) if isinstance(part, Message) else None
            if twin is None:
                value.append(part)
            else:
                merge(twin, part)


def _identity(part: Any) -> tuple[Any, ...]:
    names = (*_TOPIC_FIELDS, "topic_id", *_PARTITION_FIELDS)
    return tuple(getattr(part, name, None) for name in names)


def give_error(
    answer: Message, code: ErrorCode, covers: Covers, name_of_id: TopicName, *, whole: bool
) -> None:
    """Put an error into the covered places of an answer.

    `whole`: the rule names no place. Then every structure in the answer with an error field gets
    it, or the answer itself if there is no such structure.
    """
    if not _give(answer, code, covers, name_of_id, topic=None) and whole:
        _set(answer, code)


def _give(
    message: Message, code: ErrorCode, covers: Covers, name_of_id: TopicName, *, topic: str | None
) -> bool:
    """Return whether anything in `message` (not itself) could have an error."""
    is_given = False
    for _, parts in _lists(message):
        for part in parts:
            if not isinstance(part, Message):
                continue
            name = topic_of(part, name_of_id) or topic
            if _give(part, code, covers, name_of_id, topic=name):
                is_given = True
            elif any(field in part.__slots__ for field in _ERROR_FIELDS):
                is_given = True
                if name is None or covers(name, _partition_of(part)):
                    _set(part, code)
    return is_given


def _set(message: Message, code: ErrorCode) -> None:
    for field in message.__slots__:
        if field in _ERROR_FIELDS:
            setattr(message, field, int(code))
        elif field in _CLEARED:
            setattr(message, field, _CLEARED[field])
