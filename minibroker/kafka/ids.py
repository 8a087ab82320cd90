"""Types of the plain values that every layer uses.

A topic id is sixteen bytes, big-endian, as on the wire; sixteen zero bytes mean "none".
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final, NamedTuple, NewType

if TYPE_CHECKING:
    from collections.abc import Iterable

TopicId = NewType("TopicId", bytes)

ZERO_TOPIC_ID: Final = TopicId(bytes(16))
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_BROKER_EPOCH: Final = -1
"""The epoch of a broker whose registration is not known, or not checked."""
PRODUCER_EPOCH_MAX: Final = 2**15 - 1
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
"""Not times: in ListOffsets they stand for the end and the start of a log."""
ANONYMOUS: Final = "User:ANONYMOUS"
"""Principal of a client that has not proved who it is, and need not."""


class TopicPartition(NamedTuple):
    """A partition of a topic; prints like its directory, `<topic>-<partition>`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return topic → its partitions, both in the order of `places`."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    return topics


def may_be_same_topic(first_id: bytes, second_id: bytes) -> bool:
    """Return whether two topics of one name may be the same; zero stands for an unknown id."""
    return first_id == second_id or ZERO_TOPIC_ID in (first_id, second_id)


def topic_id_to_text(topic_id: bytes) -> str:
    """Return the 22 characters that Kafka prints (URL-safe base64 without padding)."""
    return urlsafe_b64encode(topic_id).decode("ascii").rstrip("=")


def topic_id_from_text(text: str) -> TopicId:
    """Return the sixteen bytes of a text made by `topic_id_to_text`. Raises ValueError."""
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"topic id {text!r} holds {len(raw)} bytes, expected 16")
    return TopicId(raw)
