"""The subject of a message: a short text of its topics, partitions, offsets, group, transaction.

The generated messages say it by the names of their fields, so each API and version has a subject
and none is described by hand:

| fields                                                       | text                             |
|--------------------------------------------------------------|----------------------------------|
| a struct with a topic (`topic`, `name`, `topic_id`) and partitions | `orders-0 @42, orders-1 @7` |
| a partition with records                                     | `orders-0 @42 3 records 210 B`   |
| a partition with an error                                    | `orders-0 NOT_LEADER_OR_FOLLOWER` |
| a field of `LABELS`                                          | `group g`, `producer 4`          |
| other lists                                                  | their size, or their first items |

Every text in it is foreign: it is shortened, and characters without a glyph are escaped. The work
and the length are bounded: a topic behind the first few is counted and not looked at.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.foreign_text import printable
from minibroker.kafka.ids import topic_id_to_text
from minibroker.kafka.protocol.answer_error import error_name
from minibroker.kafka.protocol.message import Message
from minibroker.kafka.protocol.primitives import ZERO_UUID
from minibroker.trace.batches import BatchesText, count_of, summary_of
from minibroker.trace.embedded import assignment_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SUBJECT_MAX: Final = 240
"""Characters of the text of one message."""
NAME_MAX: Final = 60
"""Characters of a name in it; Kafka's member ids have 49 and a client id."""
ITEMS_MAX: Final = 4
"""Topics, partitions of a topic, or other items that are shown."""
DEPTH_MAX: Final = 4

LABELS: Final = {
    "acks": "acks",
    "broker_id": "broker",
    "client_software_name": "software",
    "controller_id": "controller",
    "entity_name": "entity",
    "entity_type": "entity",
    "epoch": "epoch",
    "feature": "feature",
    "generation_id": "generation",
    "generation_id_or_member_epoch": "generation",
    "group_id": "group",
    "group_instance_id": "instance",
    "group_state": "state",
    "groups_names": "groups",
    "instance_id": "instance",
    "key": "key",
    "leader": "leader",
    "leader_id": "leader",
    "log_dir": "directory",
    "mechanism": "mechanism",
    "member_epoch": "member epoch",
    "member_id": "member",
    "node_id": "broker",
    "path": "directory",
    "principal": "principal",
    "principal_name": "principal",
    "producer_epoch": "epoch",
    "producer_id": "producer",
    "protocol_name": "protocol",
    "resource_name": "resource",
    "resource_name_filter": "resource",
    "share_session_epoch": "session epoch",
    "subscribed_topic_regex": "pattern",
    "token_id": "token",
    "transaction_state": "state",
    "transactional_id": "transaction",
    "transactional_id_pattern": "pattern",
    "user": "user",
    "v3_and_below_producer_epoch": "epoch",
    "v3_and_below_producer_id": "producer",
    "v3_and_below_transactional_id": "transaction",
}
"""Field → the word before its value."""
LISTS: Final = {
    "coordinator_keys": "keys",
    "group_ids": "groups",
    "groups": "groups",
    "groups_names": "groups",
    "mechanisms": "mechanisms",
    "subscribed_topic_names": "topics",
    "topic_names": "topics",
    "transactional_ids": "transactions",
}
"""List of texts → the word before its items."""
COUNTED: Final = frozenset(
    {
        "acls",
        "api_keys",
        "assignments",
        "brokers",
        "configs",
        "credential_infos",
        "current_voters",
        "finalized_features",
        "listeners",
        "live_brokers",
        "live_leaders",
        "members",
        "node_endpoints",
        "nodes",
        "observers",
        "ops",
        "protocols",
        "renewers",
        "supported_features",
    }
)
"""Lists of structs of which only the size is shown."""
DECISIONS: Final = {"committed": ("abort", "commit"), "transaction_result": ("abort", "commit")}
"""Truth value → its two words."""

_TOPIC_NAMES: Final = ("topic", "topic_name", "name")
_PARTITIONS: Final = ("partition_index", "partition", "index", "partition_id")
_PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes"})
"""Lists of numbers of partitions."""
_OFFSETS: Final = {
    "fetch_offset": "@",
    "committed_offset": "@",
    "base_offset": "@",
    "offset": "@",
    "start_offset": "@",
    "low_watermark": "start ",
    "high_watermark": "end ",
    "end_offset": "end ",
    "leader_id": "leader ",
    "leader": "leader ",
}
"""The first of these that a partition has, and that is not negative, says its place."""
_TIMES: Final = {-1: "latest", -2: "earliest", -3: "newest time", -4: "earliest local"}
"""Timestamps of ListOffsets that are no times."""


class _TextPlan(NamedTuple):
    """The parts of a class that have a text, so that others cost nothing."""

    name: str | None
    """The field with the name of a topic."""
    has_topic_id: bool
    has_topic: bool
    """True if it has a field with a topic's name or id."""
    number: str | None
    """The field with the number of a partition."""
    offsets: tuple[tuple[str, str], ...]
    """Fields that say the place of a partition, with the sign before them."""
    has_timestamp: bool
    slots: tuple[str, ...]
    """All fields that have a text, in their order."""
    has_error: bool
    has_records: bool
    named_lists: tuple[str, ...]
    """Lists of structs that say names and ids of topics, or that have such lists."""


TopicNames = dict[bytes, str]
"""Topic id → name, as far as the conversation told it."""
TOPIC_NAMES_MAX: Final = 10_000
TOPIC_NAME_MAX: Final = 249
"""Characters of a topic's name, Kafka's own limit."""


def describe(message: Message, names: Mapping[bytes, str]) -> str:
    """Return the subject of a request or an answer, at most `SUBJECT_MAX` characters, one line."""
    return _joined(_first_parts(message, names))


def describe_both(
    request: Message | None, answer: Message | None, names: Mapping[bytes, str]
) -> str:
    """Return the subject of an exchange: that of the request, an arrow, and that of the answer.

    The answer's part leaves out what the request says: topics, partitions and ids that it repeats.
    """
    parts = [] if request is None else _first_parts(request, names)
    replies = [] if answer is None else _first_parts(answer, names)
    return joined_both(parts, replies)


def joined_both(parts: list[str], replies: list[str]) -> str:
    """Return the texts of a request, an arrow, and those of its answer that are new."""
    repeated = {*parts, *(part.partition(" ")[0] for part in parts)}
    reply = _joined([part for part in replies if part not in repeated])
    if not reply:
        return _joined(parts)
    return f"{_joined(parts)} → {reply}" if parts else f"→ {reply}"


class _SubjectParts(list[str]):
    """The texts of a message's fields, until they are longer than a subject."""

    __slots__ = ("room",)

    def __init__(self) -> None:
        super().__init__()
        self.room = SUBJECT_MAX
        """Characters that still have room; below 0, no more texts are made."""

    def add(self, text: str) -> bool:
        """Add a text. Return whether there is room for another one."""
        self.append(text)
        self.room -= len(text) + 2
        return self.room >= 0


def _first_parts(message: Message, names: Mapping[bytes, str]) -> list[str]:
    """Return the texts of a message's fields, until they are longer than a subject."""
    parts = _SubjectParts()
    _add_parts(message, names, 0, parts)
    return parts


def _joined(parts: list[str]) -> str:
    text = ", ".join(parts)
    return text if len(text) <= SUBJECT_MAX else f"{text[: SUBJECT_MAX - 1]}…"


def learn_names(message: Message, names: TopicNames) -> None:
    """Add the topics of which the message says both name and id, up to `TOPIC_NAMES_MAX`."""
    for slot in _plan(type(message)).named_lists:
        value = getattr(message, slot)
        if not isinstance(value, list) or not value or not isinstance(value[0], Message):
            continue
        if "topic_id" in value[0].__slots__:
            for struct in islice(value, max(TOPIC_NAMES_MAX - len(names), 0)):
                name = _name(struct)
                if name and len(name) <= TOPIC_NAME_MAX and struct.topic_id != ZERO_UUID:
                    names[struct.topic_id] = name
        else:
            for struct in value[:ITEMS_MAX]:
                learn_names(struct, names)


def _name(struct: Message) -> str | None:
    """Return the topic that the struct says by name."""
    slot = _plan(type(struct)).name
    return None if slot is None else getattr(struct, slot)


def topics_of(message: Message, names: Mapping[bytes, str]) -> Iterator[str]:
    """Yield the topics of a message, all of them, as they came; one may come several times."""
    topic = _topic(message, _plan(type(message)), names)
    if topic is not None:
        yield topic
    for slot in message.__slots__:
        value = getattr(message, slot)
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], Message):
            for struct in value:
                yield from topics_of(struct, names)
        elif slot in {"topic_names", "subscribed_topic_names"} or (
            slot == "topics" and isinstance(value[0], str)
        ):
            yield from value


def _add_parts(
    message: Message, names: Mapping[bytes, str], depth: int, parts: _SubjectParts
) -> bool:
    """Add the texts of a struct's fields, in their order; return whether there is room for more."""
    plan = _PLANS.get(type(message)) or _note_plan(type(message))
    if plan.has_topic:
        topic = _topic(message, plan, names)
        if topic is not None:
            return _add_topic(message, plan, topic, parts)
    for slot in plan.slots:
        value = getattr(message, slot)
        if isinstance(value, list):
            has_room = not value or _add_list(slot, value, names, depth, parts)
        elif isinstance(value, Message):
            has_room = depth >= DEPTH_MAX or _add_parts(value, names, depth + 1, parts)
        else:
            text = _value_text(slot, value)
            has_room = text is None or parts.add(text)
        if not has_room:
            return False
    return True


def _value_text(slot: str, value: Any) -> str | None:
    """Return the text of a field that is no list and no struct, None if it has none."""
    if slot == "assignment" and isinstance(value, bytes):
        text = assignment_text(value)
        if text is None:
            return None
        return f"gets {text if len(text) <= SUBJECT_MAX else text[: SUBJECT_MAX - 1] + '…'}"
    if slot in DECISIONS:
        return DECISIONS[slot][bool(value)]
    if slot == "topics" and value is None:
        return "all topics"
    if slot in LABELS and value not in {"", None, -1}:
        return f"{LABELS[slot]} {short(value)}"
    return None


def _add_list(
    slot: str, items: list[Any], names: Mapping[bytes, str], depth: int, parts: _SubjectParts
) -> bool:
    """Add the first items of a list, or its size; return whether there is room for more.

    A broker's own answer may have parts that are bytes already; nothing is known of those.
    """
    if not isinstance(items[0], Message):
        if slot in LISTS and isinstance(items[0], str):
            texts = " ".join(short(item) for item in items[:ITEMS_MAX])
            return parts.add(f"{LISTS[slot]} {texts}{_more(len(items))}")
        return True
    count = len(items)
    if slot in COUNTED or depth >= DEPTH_MAX:
        return parts.add(count_of(count, slot.replace("_", " ").removesuffix("s")))
    first = len(parts)
    for item in items if count <= ITEMS_MAX else items[:ITEMS_MAX]:
        if isinstance(item, Message) and not _add_parts(item, names, depth + 1, parts):
            return False
    if len(parts) == first:
        return parts.add(count_of(count, slot.replace("_", " ").removesuffix("s")))
    return count <= ITEMS_MAX or parts.add(f"{count - ITEMS_MAX} more")


_PLANS: Final[dict[type[Message], _TextPlan]] = {}


def _plan(message_class: type[Message]) -> _TextPlan:
    return _PLANS.get(message_class) or _note_plan(message_class)


def _note_plan(message_class: type[Message]) -> _TextPlan:
    slots = message_class.__slots__
    names = (slot for slot in _TOPIC_NAMES if slot in slots)
    name = next(names, None)
    is_named = "Topic" in message_class.__name__ and "value" not in slots
    texts = LABELS.keys() | LISTS.keys() | DECISIONS.keys() | {"assignment", "topics"}
    kinds = {field: kind for field, kind, *_ in message_class.JSON_FIELDS}
    if name == "name" and not is_named:
        name = None
    plan = _PLANS[message_class] = _TextPlan(
        name=name,
        has_topic_id="topic_id" in slots,
        has_topic=name is not None or "topic_id" in slots,
        number=next((slot for slot in _PARTITIONS if slot in slots), None),
        offsets=tuple((slot, sign) for slot, sign in _OFFSETS.items() if slot in slots),
        has_timestamp="timestamp" in slots and "offset" not in slots,
        slots=tuple(
            slot
            for slot in slots
            if slot in texts or kinds[slot][0].isupper() or slot in _PARTITION_LISTS
        ),
        has_error="error_code" in slots,
        has_records="records" in slots,
        named_lists=tuple(_named_lists(message_class)),
    )
    return plan


def _named_lists(message_class: type[Message]) -> Iterator[str]:
    definer = next(base for base in message_class.__mro__ if "JSON_FIELDS" in vars(base))
    module = sys.modules[definer.__module__]
    for field, kind, *_ in message_class.JSON_FIELDS:
        if kind[0].isupper():
            slots = getattr(module, kind).__slots__
            is_named = "topic_id" in slots and any(slot in slots for slot in _TOPIC_NAMES)
            if is_named or "topics" in slots:
                yield field


def _topic(struct: Any, plan: _TextPlan, names: Mapping[bytes, str]) -> str | None:
    """Return the topic that the struct is about, None if it is about none."""
    if plan.name is not None:
        name: str | None = getattr(struct, plan.name)
        if name:
            return name
    if not plan.has_topic_id:
        return None
    topic_id: bytes = struct.topic_id
    if topic_id == ZERO_UUID:
        return None
    return names.get(topic_id) or topic_id_to_text(topic_id)


def _add_topic(struct: Any, plan: _TextPlan, topic: str, parts: _SubjectParts) -> bool:
    """Add a text for each of the first partitions of a topic; the topic itself without any.
    Return whether there is room for more.
    """
    topic = short(topic)
    if plan.number is not None:
        return parts.add(_partition(topic, struct))
    for slot in plan.slots:
        partitions = getattr(struct, slot)
        if not isinstance(partitions, list) or not partitions or not _has_places(partitions):
            continue
        count = len(partitions)
        for partition in partitions if count <= ITEMS_MAX else partitions[:ITEMS_MAX]:
            if not parts.add(_partition(topic, partition)):
                return False
        return count <= ITEMS_MAX or parts.add(f"{count - ITEMS_MAX} more of {topic}")
    error = struct.error_code if plan.has_error else 0
    return parts.add(f"{topic} {error_name(error)}" if error else topic)


def _has_places(items: list[Any]) -> bool:
    """Return whether the items are numbers, or structs that have the number of a partition."""
    first = items[0]
    if isinstance(first, Message):
        return _plan(type(first)).number is not None
    return isinstance(first, int)


def _partition(topic: str, partition: Any) -> str:
    """Return `orders-0 @42 3 records 210 B`; `partition` is a struct or a number."""
    if isinstance(partition, int):
        return f"{topic}-{partition}"
    plan = _plan(type(partition))
    text = f"{topic}-{getattr(partition, plan.number or '')}"
    records = partition.records if plan.has_records else None
    if plan.has_error and partition.error_code:
        text = f"{text} {error_name(partition.error_code)}"
    elif not records:
        return f"{text}{_place(partition, plan)}"
    if not records:
        return text
    offset, summary = records if isinstance(records, BatchesText) else summary_of(records)
    return f"{text} @{offset} {summary}" if offset > 0 else f"{text} {summary}"


def _place(partition: Any, plan: _TextPlan) -> str:
    """Return the offset, the watermark, the leader or the time that a partition is about."""
    for slot, sign in plan.offsets:
        value = getattr(partition, slot)
        if value >= 0:
            return f" {sign}{value}"
    if not plan.has_timestamp:
        return ""
    timestamp = partition.timestamp
    return " " + _TIMES.get(timestamp, f"from time {timestamp}")


def short(value: object) -> str:
    """Return a foreign text of at most `NAME_MAX` characters and their escapes."""
    text = str(value)
    return printable(text if len(text) <= NAME_MAX else f"{text[: NAME_MAX - 1]}…")


def _more(count: int) -> str:
    return f" and {count - ITEMS_MAX} more" if count > ITEMS_MAX else ""
