"""Topics to make, as a person names them with `topics --create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import check_topic

if TYPE_CHECKING:
    from collections.abc import Mapping


class TopicToMake(NamedTuple):
    """A topic to make."""

    name: str
    partitions: int
    """-1: as many as the cluster's `num.partitions`."""
    replicas: int
    """-1: the cluster's `default.replication.factor`."""
    configs: Mapping[str, str]


def new_topic_of(text: str) -> TopicToMake:
    """Return the topic of `NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE…]`. Raises UsageError."""
    from minibroker.broker.config.topic_option import parse_topic  # noqa: PLC0415  not for a help page
    from minibroker.kafka.errors import ConfigError  # noqa: PLC0415  as above

    try:
        topic = parse_topic(text)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    return TopicToMake(
        check_topic(topic.name), topic.partitions, topic.replicas or -1, topic.configs
    )
