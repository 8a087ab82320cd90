"""The partitions of OffsetCommit, TxnOffsetCommit and OffsetDelete requests that exist.

Those that do not are answered first, the group coordinator's answers follow, and a topic has one
entry in the response even when it has both.

Source: Kafka KafkaApis (3.9 and 4.4), the builders of these APIs' responses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from minibroker.broker.cluster.image import TopicImage
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.cluster.image import MetadataImage
    from minibroker.broker.handlers.common.permissions import Allowed
    from minibroker.broker.slices import Steps


class KnownTopic(NamedTuple):
    """A topic of the request, and those of its requested partitions that exist."""

    image: TopicImage
    partitions: list[Any]


class TopicAnswers:
    """Fills the topics of a response; `classes` are the API's own for a topic and a partition."""

    __slots__ = ("_by_key", "_has_ids", "_partition_class", "_topic_class", "_topics")

    def __init__(self, topics: list[Any], classes: tuple[Any, Any], *, has_ids: bool) -> None:
        """`has_ids`: the version names topics by id."""
        self._topics = topics
        self._topic_class, self._partition_class = classes
        self._has_ids = has_ids
        self._by_key: dict[str | bytes, Any] = {}

    def add(self, name: str, topic_id: bytes, index: int, code: ErrorCode = ErrorCode.NONE) -> Any:
        """Add a partition's entry and return it, for whoever learns of its error later."""
        entry = self._partition_class(partition_index=index, error_code=int(code))
        self.topic(name, topic_id).partitions.append(entry)
        return entry

    def topic(self, name: str, topic_id: bytes) -> Any:
        """Return a topic's entry, also of one without partitions."""
        key = topic_id if self._has_ids else name
        topic = self._by_key.get(key)
        if topic is None:
            topic = self._by_key[key] = self._topic_class(name=name)
            if self._has_ids:
                topic.topic_id = topic_id
            self._topics.append(topic)
        return topic

    def add_known(self, topics: Iterable[KnownTopic], code: ErrorCode) -> Steps[None]:
        """Answer one error for all partitions that exist: the group refuses the request as a
        whole.
        """
        for topic in topics:
            for partition in topic.partitions:
                self.add(topic.image.name, topic.image.topic_id, partition.partition_index, code)
                yield


def known_partitions(
    image: MetadataImage,
    topics: Iterable[Any],
    answers: TopicAnswers,
    *,
    has_ids: bool,
    may_read: Allowed,
) -> Steps[list[KnownTopic]]:
    """Return the topics of a request with the partitions that exist; the others are answered.

    UNKNOWN_TOPIC_ID where `has_ids`, TOPIC_AUTHORIZATION_FAILED for a topic that is not in
    `may_read`, UNKNOWN_TOPIC_OR_PARTITION.
    """
    existing_topics = []
    for number, topic in enumerate(topics):
        if number:
            yield
        in_image = (
            image.topic_by_id.get(topic.topic_id) if has_ids else image.topics.get(topic.name)
        )
        if (in_image is not None or not has_ids) and _topic_name(topic, in_image) not in may_read:
            name = _topic_name(topic, in_image)
            topic_id = topic.topic_id if has_ids else ZERO_TOPIC_ID
            answers.topic(name, topic_id)
            for partition in topic.partitions:
                yield
                index = partition.partition_index
                answers.add(name, topic_id, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        if in_image is None:
            name, topic_id, code = topic.name, ZERO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if has_ids:
                name, topic_id, code = "", topic.topic_id, ErrorCode.UNKNOWN_TOPIC_ID
            answers.topic(name, topic_id)
            for partition in topic.partitions:
                yield
                answers.add(name, topic_id, partition.partition_index, code)
            continue
        count = len(in_image.partitions)
        existing = []
        for place, partition in enumerate(topic.partitions):
            if place:
                yield
            if 0 <= partition.partition_index < count:
                existing.append(partition)
            else:
                answers.add(
                    in_image.name,
                    in_image.topic_id,
                    partition.partition_index,
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
        if existing:
            existing_topics.append(KnownTopic(in_image, existing))
    return existing_topics


def _topic_name(topic: Any, in_image: TopicImage | None) -> str:
    """Return the name of a topic in a request, by its id if the image knows it."""
    name: str = topic.name if in_image is None else in_image.name
    return name


def is_too_long(metadata: str | None, units_max: int) -> bool:
    """Return whether metadata exceeds `offset.metadata.max.bytes`, counted in UTF-16 code units."""
    if metadata is None or len(metadata) * 2 <= units_max:
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > units_max
