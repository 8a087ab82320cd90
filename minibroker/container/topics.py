"""`KAFKA_CREATE_TOPICS`: the topics that a container creates at start.

Two forms, which may be mixed, separated by commas (or by `KAFKA_CREATE_TOPICS_SEPARATOR`):

    orders:6:1              name:partitions:replicas, as the wurstmeister/kafka image has it
    users:3:1:compact       … with cleanup.policy as the fourth part
    orders:6:segment.ms=60000, audit, users:cleanup.policy=compact    as after `--topic`
"""

from __future__ import annotations

from typing import Final

from minibroker.broker.config.topic_option import TopicToCreate, parse_topic
from minibroker.kafka.errors import ConfigError

_POLICIES: Final = ("compact", "delete")


def parse_topics(text: str, separator: str = ",") -> list[TopicToCreate]:
    """Return the topics of the variable's value; blanks and line breaks around an entry are
    ignored.
    Raises ConfigError with the entry that cannot be read.
    """
    entries = filter(None, (entry.strip() for entry in text.split(separator or ",")))
    return [_parse_entry(entry) for entry in entries]


def _parse_entry(entry: str) -> TopicToCreate:
    name, *parts = (part.strip() for part in entry.split(":"))
    if name in _POLICIES and not parts:
        raise ConfigError(
            f"KAFKA_CREATE_TOPICS: {entry!r} stands alone: two cleanup policies need another "
            "separator, for instance KAFKA_CREATE_TOPICS_SEPARATOR=';'"
        )
    if len(parts) < 2 or "=" in parts[0] or "=" in parts[1]:
        try:
            return parse_topic(":".join((name, *parts)))
        except ConfigError as error:
            raise ConfigError(f"KAFKA_CREATE_TOPICS: {error}") from None
    partitions, replicas, *policy = parts
    if not name or not _is_count(partitions) or not _is_count(replicas) or len(policy) > 1:
        raise ConfigError(
            f"KAFKA_CREATE_TOPICS: {entry!r}: expected name:partitions:replicas[:cleanup.policy], "
            "for instance orders:6:1 or users:3:1:compact"
        )
    configs = {"cleanup.policy": policy[0]} if policy and policy[0] else {}
    return TopicToCreate(name, int(partitions), configs, int(replicas))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0
